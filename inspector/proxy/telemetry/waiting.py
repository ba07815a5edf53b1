"""The bytes that wait to be recorded in each worker, in memory that it shares with the process that serves metrics."""

from __future__ import annotations

import mmap
import os
import struct
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

_NUMBER = struct.Struct("<q")


class Waiting:
    """A number of each worker."""

    def __init__(self, workers: int) -> None:
        self.descriptor = os.memfd_create("waiting")
        """What workers inherit."""
        os.ftruncate(self.descriptor, workers * _NUMBER.size)
        self._shared = mmap.mmap(self.descriptor, 0)

    def total(self) -> float:
        """Return the sum of all."""
        return float(sum(number for (number,) in _NUMBER.iter_unpack(self._shared[:])))

    def close(self) -> None:
        """Release the memory."""
        self._shared.close()
        os.close(self.descriptor)


def reporter(descriptor: int, worker: int) -> Callable[[int], None]:
    """Return what a worker reports its number with."""
    shared = mmap.mmap(descriptor, 0)
    return lambda number: _NUMBER.pack_into(shared, worker * _NUMBER.size, number)

"""Slows down what a master sends: it is passed on in small pieces."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

BEAT = 0.1
"""Seconds between two pieces, unless a byte takes longer."""


class Pace:
    """What has arrived and is not passed on yet."""

    def __init__(self, rate: int) -> None:
        """``rate``: bytes a second."""
        self._size = max(1, round(rate * BEAT))
        self._delay = self._size / rate
        self._data = bytearray()
        self.after: Callable[[], None] | None = None
        """What is to be done when nothing waits any more."""

    @property
    def pending(self) -> bool:
        """Whether something waits."""
        return bool(self._data)

    def add(self, data: bytes) -> bool:
        """Add what arrived; return whether nothing waited before."""
        first = not self._data
        self._data += data
        return first and bool(data)

    def piece(self) -> bytes:
        """Take the next piece."""
        piece = bytes(self._data[: self._size])
        del self._data[: self._size]
        return piece

    def clear(self) -> None:
        """Forget what waits: nobody takes it any more."""
        self._data.clear()

    def later(self, act: Callable[[], None]) -> None:
        """Call something when it is time for the next piece."""
        asyncio.get_running_loop().call_later(self._delay, act)

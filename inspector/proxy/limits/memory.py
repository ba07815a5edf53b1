"""Memory that is free within the process goes back to the system.

The C library keeps what many connections used, in case as many come again. After a flood that is unlikely.
"""

from __future__ import annotations

import asyncio
import ctypes

FLOOD = 64
"""Connections after which memory is given back."""
DELAY = 2.0
"""Seconds between their end and that: their tasks end, too."""


def trim() -> bool:
    """Give free memory back to the system; return whether there was any. Other C libraries than glibc do it anyway."""
    function = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return function is not None and bool(function(0))


class Peaks:
    """Gives memory back after a flood of connections has ended."""

    def __init__(self) -> None:
        self._most = 0

    def count(self, number: int) -> None:
        """Note how many connections there are."""
        self._most = max(self._most, number)
        if self._most >= FLOOD and number <= self._most // 4:
            self._most = 0
            loop = asyncio.get_running_loop()
            loop.call_later(DELAY, loop.run_in_executor, None, trim)

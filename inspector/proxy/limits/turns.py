"""Turns for work on connections without a verified certificate, so that much of it at once delays no other agent.

A handshake occupies the processor for milliseconds. Hundreds of them may be due in the same round of the event loop, in
which no other connection is served. In turns they get some time of each round: as much as all others took. The newest
work is done first: a handshake that has begun is completed before others begin, and a flood delays nobody who comes
later. A connection never has more than one piece of work from each side here, so nothing is done in the wrong order.
"""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

SLICE = 0.004
"""Seconds of a round at least: one handshake."""


class Turns:
    """Work that is due, some of which is done in each round of the event loop."""

    def __init__(self) -> None:
        self._due: list[Callable[[], None]] = []
        self._ended = 0.0
        """When the last turn ended."""

    def add(self, work: Callable[[], None]) -> None:
        """Do some work when it is due."""
        if not self._due:
            self._ended = time.monotonic()
            asyncio.get_running_loop().call_soon(self._run)
        self._due.append(work)

    def _run(self) -> None:
        now = time.monotonic()
        until = now + max(SLICE, now - self._ended)
        try:
            while self._due and now < until:
                self._due.pop()()
                now = time.monotonic()
        finally:
            self._ended = now
            if self._due:
                asyncio.get_running_loop().call_soon(self._run)

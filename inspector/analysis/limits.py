"""The last net under the analysis of one record: seconds of CPU time.

The limits that count depend on the record alone (bytes, depth, values: ``protocol.bodies``), so whoever analyzes it
gets the same. This one ends what they overlook. It works in the main thread of a process that has called ``arm``.
"""

from __future__ import annotations

import contextlib
import signal
from _thread import get_ident
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

SECONDS = 60.0
"""CPU time that one record may take: four times what the most expensive one that is known takes."""
REST = 1.0
"""CPU time for the rest of the work on a record that took too long."""


class TooLong(BaseException):
    """The work on a record takes too long. Not an Exception: what handles a mistake in one rule must not swallow it."""

    def __str__(self) -> str:
        return f"it took more than {SECONDS:g} s of CPU time"


class _Net:
    thread: int | None = None
    """The thread in which it works."""
    active = False


_net = _Net()


def arm() -> None:
    """Limit the analysis in this process from now on. Only the main thread may call it."""
    signal.signal(signal.SIGVTALRM, _raise)
    _net.thread = get_ident()


def begin(seconds: float) -> None:
    """Raise TooLong after some seconds of CPU time, unless ``end`` is called before."""
    if _net.thread is not None and get_ident() == _net.thread:
        _net.active = True
        signal.setitimer(signal.ITIMER_VIRTUAL, seconds)


def end() -> None:
    """Raise nothing any more."""
    if _net.active and get_ident() == _net.thread:
        _net.active = False
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


@contextlib.contextmanager
def limited() -> Iterator[None]:
    """Leave a block that takes too long."""
    try:
        begin(SECONDS)
        yield
    except TooLong:
        pass
    finally:
        end()


def _raise(_number: int, _frame: object) -> None:
    if _net.active:
        _net.active = False
        raise TooLong

"""What the processes beside a proxy have in common: they end with it, spend a limited time on a record, and are started
again whenever they end.

A record that takes such a process too long, or at which it ends twice, is left out; all others are processed.
"""

from __future__ import annotations

import contextlib
import os
import signal

from inspector import processes

NICE = 5
"""The proxy, and with it the agents, have priority."""
PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0)
"""Seconds until the process is started again, if it ends soon once more; the last one from then on."""
LONG = 60.0
"""Seconds after which a process that ends counts as the first one."""


class Restarts:
    """Decides when a process is started again, and which record it leaves out then."""

    def __init__(self) -> None:
        self.deaths = 0
        """Number of processes that ended, one soon after the other."""
        self._suspect = 0
        """The record at which the process ended the last time."""

    @property
    def pause(self) -> float:
        """Seconds to wait before the next start."""
        return PAUSES[min(self.deaths, len(PAUSES)) - 1]

    def note(self, lived: float) -> None:
        """Note that a process ended after some seconds."""
        self.deaths = 1 if lived > LONG else self.deaths + 1

    def gives_up(self, record: int, status: int) -> bool:
        """Whether to leave out the record at which the process ended (0: it was at none), given its exit status."""
        hopeless = bool(record) and (took_too_long(status) or record == self._suspect)
        self._suspect = record
        return hopeless


def took_too_long(status: int) -> bool:
    """Whether a process was ended because of the time that a record took."""
    return status == -signal.SIGPROF


def attend(proxy: int) -> None:
    """Make this process one beside a proxy, whose process number is given: end it when the proxy ends, whatever it is
    doing then."""
    processes.end_with(proxy, signal.SIGKILL)
    # The proxy handles Ctrl-C, and the SIGTERM that systemd sends to all processes of a service: it ends in order and
    # closes our input.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    with contextlib.suppress(OSError):
        os.nice(NICE)


def limit(seconds: float) -> None:
    """Let the kernel end this process after some seconds of CPU time: call it before each record.

    All work is linear in the size of a record, so this is the last net.
    """
    # Its default action ends the process, also while the interpreter is in a library.
    signal.setitimer(signal.ITIMER_PROF, seconds)

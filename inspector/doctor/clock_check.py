"""Compare this host's clock with a master's before a certificate or a CRL is called expired, or not yet valid."""

from __future__ import annotations

import contextlib
import socket
import time
from typing import TYPE_CHECKING

from inspector import clocks
from inspector.doctor import findings
from inspector.doctor.findings import OF_TIME
from inspector.doctor.tls_client import Target, Unreachable, open_session

if TYPE_CHECKING:
    from collections.abc import Callable

    from inspector.doctor.findings import Diagnosis
    from inspector.doctor.tls_client import HttpResponse

TIMEOUT = 10.0
"""Seconds for the question what time it is."""


def judged(
    examine: Callable[[float], list[Diagnosis]], now: float, master: Callable[[], float | None]
) -> list[Diagnosis]:
    """Return what ``examine`` finds at a time. Where a date is in question ``master`` returns the time by the master's
    clock: what is wrong only by this host's is one diagnosis about the clocks, which comes first. If that time is not
    known, the fixes say to compare the clocks."""
    found = examine(now)
    if not any(diagnosis.rule in OF_TIME for diagnosis in found):
        return found
    there = master()
    if there is None:
        return [findings.doubted(diagnosis) for diagnosis in found]
    if not findings.clocks_differ(now, there):
        return found
    follows = findings.only_now(found, examine(there))
    rest = [diagnosis for diagnosis in found if diagnosis not in follows]
    return findings.worst_first([findings.clocks_difference(now, there, follows), *rest])


def master_time(host: str, port: int) -> float | None:
    """Return the time by a master's clock, which any answer has; None if it is not known. Verifies nobody."""
    try:
        answer = open_session(Target(host, port, host, TIMEOUT), "/puppet-ca/v1/certificate/ca").answer
    except Unreachable:
        return None
    return time_of(answer, host, time.time()) if answer else None


def time_of(answer: HttpResponse, host: str, now: float) -> float | None:
    """Return the time by the clock of the host that answered; None if it is not known: the answer does not have it, or
    it is this host's own clock."""
    there = clocks.http_date(answer.headers.get("date", ""))
    if there is None or findings.clocks_differ(now, there) or not _is_here(host):
        return there
    return None


def _is_here(host: str) -> bool:
    """Whether a name or address is one of this host's."""
    with contextlib.suppress(OSError, UnicodeError):
        for family, kind, *_, place in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM):
            with contextlib.suppress(OSError), socket.socket(family, kind) as probe:
                probe.bind(place)  # the port is 0: any
                return True
    return False

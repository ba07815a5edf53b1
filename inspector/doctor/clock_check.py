"""Compare this host's clock with a master's before a certificate or a CRL is called expired, or not yet valid."""

from __future__ import annotations

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
    time = master()
    if time is None:
        return [findings.doubted(diagnosis) for diagnosis in found]
    if not findings.clocks_differ(now, time):
        return found
    follows = findings.only_now(found, examine(time))
    rest = [diagnosis for diagnosis in found if diagnosis not in follows]
    return findings.worst_first([findings.clocks_difference(now, time, follows), *rest])


def master_time(host: str, port: int, timeout: float = TIMEOUT) -> float | None:
    """Return the time by a master's clock, which any answer has; None if it is not known. Verifies nobody."""
    try:
        answer = open_session(Target(host, port, host, timeout), "/puppet-ca/v1/certificate/ca").answer
    except Unreachable:
        return None
    return time_of(answer) if answer else None


def time_of(answer: HttpResponse) -> float | None:
    """Return the time by the clock of who answered; None if the answer does not have it."""
    return clocks.http_date(answer.headers.get("date", ""))

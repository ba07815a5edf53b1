"""Wording of findings' messages, and values of requests and reports that several rules read."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

from inspector import clocks, regex
from inspector.protocol import documents as d
from inspector.remembering import remembered
from inspector.text import ERROR, READ, TAIL, beginning, decisive, ends, without_directories

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from inspector.model import Exchange
    from inspector.rules.cases import ExchangeCase

TEXT = ERROR
"""Most characters of captured text in a message."""
FIRST = 3
"""How many names of a long list a message contains."""
MANY = 10**12
"""A limit above which a number of things, or of seconds, is not plausible."""
_CALL = regex.compile(r" with \{:?[a-z_\"]{1,40}=>.*$")
GRAVE = frozenset({"err", "crit", "alert", "emerg"})
YEAR = 365 * clocks.DAY


def cut(text: object, limit: int = TEXT) -> str:
    """Return captured text on one line, truncated at the end if it is long."""
    joined = " ".join(str(text).split())
    return beginning(joined, limit)


def line(text: str, limit: int = TEXT) -> str:
    """Return the first line of a log's message (with --trace a backtrace follows), what is wrong first.

    For a failed change the values before and after are left out: the reason follows them; and the options of the
    request, in which old masters end.
    """
    first = _CALL.sub("", text.lstrip().partition("\n")[0][:READ])
    if first.startswith("change from "):
        first = first.partition(" failed: ")[2] or first
    return ends(decisive(" ".join(first.split())), limit, limit - TAIL)


def some(names: Sequence[str], first: int = FIRST) -> str:
    """Return the first names of a list, and how many more there are."""
    listing = ", ".join(cut(name, 100) for name in names[:first])
    return listing if len(names) <= first else f"{listing} and {len(names) - first} more"


def utc(time: float) -> str:
    """Return a point in time as messages show it."""
    return clocks.date(time).strftime("%Y-%m-%d %H:%M UTC")


def lasting(seconds: float) -> str:
    """Return a duration as messages show it: 12 s, 3 min, 2 h 5 min, 3 days, 6 years."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    if seconds >= 2 * clocks.DAY:
        return f"{seconds / clocks.DAY:.0f} days" if seconds < 2 * YEAR else f"{seconds / YEAR:.0f} years"
    minutes = int(seconds) // 60
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def whole(number: float | None) -> int:
    """Return a reported number as an integer; 0 if it is not plausible (YAML has infinity, JSON has no bounds)."""
    return int(number) if number is not None and abs(number) < MANY else 0


def errors(report: d.Report) -> list[d.LogLine]:
    """Return the log's lines of level err and above (2.7 writes levels as symbols)."""
    return [entry for entry in report.logs if entry.level.lstrip(":") in GRAVE]


def last_error(report: d.Report | None) -> str:
    """Return the agent's message why a run failed before any resource was applied; empty if it did not.

    That is the agent's last own error. The error that it skips the run is a consequence and counts only if alone.
    """
    lines = [entry.message for entry in errors(report) if entry.source == "Puppet"] if report else []
    reasons = [text for text in lines if "skipping run" not in text]
    return (reasons or lines)[-1] if lines else ""


def reason(report: d.Report | None) -> str:
    """Return the same, as messages show it."""
    return line(last_error(report))


def located(report: d.Report, ref: str) -> str:
    """Return a resource of a report, with its place in the manifest."""
    status = report.resource_statuses[ref]
    place = f"{cut(status.file)}:{cut(status.line, 20)}" if status.file and status.line else cut(status.file or "")
    return cut(ref, 100) + (f" ({without_directories(place)})" if place else "")


def failure(report: d.Report, ref: str) -> str:
    """Return the error message of a report about a failed resource; empty without one."""
    lines: Iterable[str] = (entry.message for entry in errors(report) if f"/{ref}" in (entry.source or ""))
    events: Iterable[str] = (event.message or "" for event in report.resource_statuses[ref].events or []
                             if event.status == "failure")  # fmt: skip
    nothing = without_provider(ref.partition("[")[0])
    of_type: Iterable[str] = (entry.message for entry in errors(report) if entry.message == nothing)
    return next(iter([*lines, *events, *of_type]), "")


def without_provider(kind: str) -> str:
    """Return what an agent logs, once and with no resource as its source, if nothing on the node can manage the
    resources of a type; these have no event."""
    return f"Could not find a suitable provider for {kind.lower()}"


def compile_error(case: ExchangeCase) -> str | None:
    """Return why the master compiled no catalog, in its words; None if it did not say so (S15: somebody else did)."""
    status, match, answer = case.status, case.step.match, case.step.response
    legacy = match is not None and match.dialect == "legacy"
    if status is None or status == 503 or (status < 500 and not (legacy and status == 400)):
        return None
    if isinstance(answer, d.ErrorDocument) and answer.html:
        return None
    return " ".join(case.answer.split())


def as_printed(case: ExchangeCase, text: str | None) -> str:
    """Return an error answer as agents print it; empty without a text."""
    return f"Error {case.status} on SERVER: {text}" if text else ""


def in_a_row(flags: Iterable[bool]) -> int:
    """Return how many flags are true before the first that is false."""
    return sum(1 for _ in takewhile(bool, flags))


def major(version: str | None) -> int:
    """Return the first number of a version, 0 if there is none."""
    number = (version or "").partition(".")[0]
    return int(number) if number.isascii() and number.isdigit() and len(number) < 4 else 0


def media_type(case: ExchangeCase) -> str | None:
    """Return the answer's media type without parameters, in lower case; None without the header."""
    response = case.exchange.response
    header = response.header("content-type") if response else None
    return None if header is None else _without_parameters(header)


@remembered(256)
def _without_parameters(header: str) -> str:
    return header.partition(";")[0].strip().lower()


def waited(exchange: Exchange) -> float:
    """Return the seconds from the complete request to the first byte of the answer, or to the end without an answer."""
    requested = exchange.request.ended or exchange.time
    response = exchange.response
    answered = response.started if response else exchange.failed
    return max(0.0, (answered or requested) - requested)


def retry_after(value: str | None, now: float) -> float | None:
    """Return the seconds to wait by a Retry-After header, a number or a date; None if agents cannot read it."""
    if value is None:
        return None
    if value.strip().isascii() and value.strip().isdigit():
        return min(float(value), YEAR)
    until = clocks.http_date(value)
    return None if until is None else min(max(0.0, until - now), YEAR)

"""What masters asked of PuppetDB, in lines and as JSON (docs/json/puppetdb.schema.json)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from inspector.columns import Count, Number, Utc
from inspector.explain.puppetdb import By
from inspector.model import Severity
from inspector.privacy import redact
from inspector.text import beginning, clean, clock, plural, seconds, size, utc

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inspector.explain.puppetdb import Call, Joined, Served
    from inspector.runs.run import Run

COLUMNS = ("record", "time", "answer", "sent", "received", "took", "request", "findings")
QUERY = 300
"""Characters of a query in a line."""


class PlainFinding(msgspec.Struct):
    """What a rule found in a request to PuppetDB."""

    rule: str
    severity: Severity
    message: str


class PlainCall(msgspec.Struct):
    """A request of a master to PuppetDB."""

    seq: Number
    """The record's number."""
    time: Utc
    master: str | None
    """The name in the master's certificate."""
    command: str | None
    """``replace facts``, ``replace catalog``, ``store report`` or another one; null for a query."""
    version: str | None
    """The command's."""
    certname: str | None
    """The node that it is about."""
    query: str | None
    """As it was sent, in PQL or as JSON behind its path, with masks instead of secrets; null for a command."""
    status: Count | None
    """Null: there was no answer."""
    sent_bytes: Count
    """Of the body, as on the wire."""
    unpacked_bytes: Count | None
    """The same without compression; null if the master does not say it."""
    received_bytes: Count
    duration_s: float
    """From the first byte of the request to the last of the answer, in seconds."""
    by: By | None
    """By what the run that caused it is known: ``transaction_uuid`` and ``name and time`` are certain; ``time``: it was
    the only one for which a master worked then. Null: the run is not known."""
    candidates: list[Number]
    """The numbers of the first runs of which any may have caused it."""
    findings: list[PlainFinding]


class PlainServed(msgspec.Struct):
    """A run, and what its master asked of PuppetDB for it."""

    run: Number | None
    """Its number; null for a request that is no agent's run."""
    certname: str | None
    outcome: str
    compile_s: float | None
    """The master's work on its catalog, in seconds; null if it asked for none."""
    puppetdb_s: float
    """Of these, the seconds in which PuppetDB was asked."""
    calls: list[PlainCall]


class PlainJoined(msgspec.Struct):
    """What masters asked of PuppetDB."""

    runs: list[PlainServed]
    others: list[PlainCall]
    """Requests whose run is not known, or not recorded."""


def fields(joined: Joined) -> PlainJoined:
    """Return all of it for JSON."""
    return PlainJoined(
        [
            PlainServed(
                served.run.number, served.run.certname, served.run.outcome, served.compile, served.compile_waited,
                list(map(_plain, served.calls)),
            )
            for served in joined.runs
        ],
        list(map(_plain, joined.others)),
    )  # fmt: skip


def _plain(call: Call) -> PlainCall:
    return PlainCall(
        call.seq, utc(call.time), call.master, call.command or None, call.version or None, call.certname or None,
        redact.text(call.query) if call.query else None, call.status, call.sent, call.unpacked, call.received,
        call.seconds, call.by, [run.number for run in call.candidates if run.number is not None],
        [PlainFinding(found.rule, found.severity, found.message) for found in call.findings],
    )  # fmt: skip


def head(served: Served) -> str:
    """Return what PuppetDB did for a run, in one line."""
    waited = ""
    if served.compile is not None:
        waited = f"; {seconds(served.compile_waited)} of the {seconds(served.compile)} of its catalog"
    number = plural(len(served.calls), "request")
    return f"{_run(served.run)}, {served.run.outcome}: {number} to PuppetDB, {seconds(served.seconds)}{waited}"


def others(joined: Joined) -> str:
    """Return the line above the requests whose run is not known."""
    number = plural(len(joined.others), "request")
    if not joined.recorded:
        return f"{number} to PuppetDB; no agent's run is recorded here: name the capture of the agents as well"
    return f"{number} to PuppetDB of no run that is known"


def row(call: Call) -> tuple[str, ...]:
    """Return a request's cells for ``COLUMNS``."""
    what = beginning(clean(redact.text(call.what)), QUERY)
    if call.candidates:
        what += f" (of {' or '.join(map(_run, call.candidates))})"
    packed = f" ({size(call.unpacked)})" if call.unpacked is not None else ""
    return (
        str(call.seq), clock(call.time), "none" if call.status is None else str(call.status), size(call.sent) + packed,
        size(call.received), seconds(call.seconds), what, " ".join(dict.fromkeys(f.rule for f in call.findings)),
    )  # fmt: skip


def found(calls: list[Call]) -> Iterator[str]:
    """Yield what was found in requests, one line each."""
    for call in calls:
        for each in call.findings:
            yield f"  {each.severity.upper()} {each.rule} in record {call.seq}: {clean(each.message)}"


def _run(run: Run) -> str:
    name = clean(run.certname or run.address or "an unnamed agent")
    return f"run {run.number} of {name}" if run.number is not None else f"requests of {name}"

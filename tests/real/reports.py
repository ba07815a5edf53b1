"""What two reports of the same run have in common: everything but times, ids and where the master was."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from inspector.model import Exchange
from inspector.protocol import documents as d
from inspector.protocol import endpoints
from inspector.protocol.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from inspector.model import Record
    from inspector.protocol.documents import Report

_VARYING = (
    (re.compile(r"\d+\.\d+ seconds"), "N seconds"),
    (re.compile(r"https://[^/\s]+"), "https://MASTER"),
    (re.compile(r"(?:[0-9A-F]{2}:){31}[0-9A-F]{2}"), "FINGERPRINT"),
    (re.compile(r"puppet-file\S+"), "puppet-file"),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ [+-]\d{4}"), "TIME"),
)


@dataclass(frozen=True, slots=True)
class Account:
    """A report without what varies."""

    status: str | None
    environment: str | None
    version: str
    noop: bool | None
    corrective: bool | None
    resources: dict[str, tuple[Any, ...]]
    """Of each resource: changed, failed, skipped, out of sync, and its events."""
    counts: dict[str, float]
    logs: list[tuple[str, str | None, str]]


def account(report: Report) -> Account:
    return Account(
        report.status, report.environment, str(report.configuration_version), report.noop, report.corrective_change,
        {
            ref: (status.changed, status.failed, status.skipped, status.out_of_sync, status.corrective_change, [
                (event.property, event.status, event.previous_value, event.desired_value, _same(event.message or ""))
                for event in status.events or ()
            ])
            for ref, status in report.resource_statuses.items()
        },
        report.counts,
        [(line.level, line.source, _same(line.message)) for line in report.logs],
    )  # fmt: skip


def _same(text: str) -> str:
    for pattern, word in _VARYING:
        text = pattern.sub(word, text)
    return text


def sent(records: Iterable[Record]) -> list[Account]:
    """The reports among records."""
    found = []
    for record in records:
        match = endpoints.match(record.request.method, record.request.target) if isinstance(record, Exchange) else None
        if match is not None and match.endpoint.kind is Kind.REPORT:
            assert isinstance(record, Exchange)
            report = match.endpoint.request(record.request)
            assert isinstance(report, d.Report), report
            found.append(account(report))
    return found

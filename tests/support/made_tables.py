"""A little directory of tables, made by hand, and what named queries answer from it."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING, Any

import msgspec

from inspector.fleet import sql
from inspector.fleet.directory import TableDirectory
from inspector.fleet.queries.named import named
from inspector.fleet.spools import Place, Spools
from inspector.fleet.tables import (
    AgentRow,
    CaptureRow,
    CertificateRow,
    ConnectionRow,
    CrlRow,
    ExchangeRow,
    FactRow,
    FindingRow,
    HandshakeRow,
    ResourceEventRow,
    RunRow,
)
from tests.support.fleets import judged

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.fleet.tables import TableRow

CAPTURE = "0123456789abcdef"
END = datetime.datetime(2026, 11, 21, 12)  # noqa: DTZ001 - as DuckDB returns it
"""When the recordings end (UTC)."""
HOUR, DAY = 1.0, 24.0


def ago(hours: float) -> datetime.datetime:
    """A time before the end, as a query returns it."""
    return END - datetime.timedelta(hours=hours)


def micros(hours: float) -> int:
    """A time before the end, as a row has it."""
    return round(ago(hours).replace(tzinfo=datetime.UTC).timestamp() * 1e6)


_numbers = iter(range(1, 10**6))


def run(certname: str | None, hours: float = 1, **given: Any) -> RunRow:
    """A complete run of an agent, some hours before the end."""
    values: dict[str, Any] = {"run": next(_numbers), "outcome": "complete", "agent_version": "8.10.0"} | given
    return judged(RunRow(capture=CAPTURE, certname=certname, time=micros(hours), **values))


def with_facts(of: RunRow) -> RunRow:
    """The run with facts of its own."""
    return msgspec.structs.replace(of, facts=of.run)


def exchange(certname: str | None, hours: float = 1, **given: Any) -> ExchangeRow:
    """A request that was answered."""
    values: dict[str, Any] = {"endpoint": "catalog", "phase": "catalog", "status": 200, "authenticated": True} | given
    return ExchangeRow(capture=CAPTURE, certname=certname, seq=next(_numbers), time=micros(hours), **values)


def finding(certname: str, rule: str, hours: float = 1, **given: Any) -> FindingRow:
    values: dict[str, Any] = {"severity": "error", "message": f"{rule} at {certname}"} | given
    return FindingRow(capture=CAPTURE, certname=certname, rule=rule, time=micros(hours), **values)


def connection(certname: str | None, hours: float = 1, **given: Any) -> ConnectionRow:
    values: dict[str, Any] = {"side": "agent", "tls": "TLSv1.3", "cipher": "AES"} | given
    return ConnectionRow(capture=CAPTURE, certname=certname, time=micros(hours), **values)


def handshake(certname: str | None, reason: str, hours: float = 1, **given: Any) -> HandshakeRow:
    values: dict[str, Any] = {"side": "agent"} | given
    return HandshakeRow(
        capture=CAPTURE, certname=certname, seq=next(_numbers), reason=reason, time=micros(hours), **values
    )


def certificate(certname: str | None, days_left: float, hours: float = 1, **given: Any) -> CertificateRow:
    """An agent's certificate that was presented."""
    subject = f"CN={certname}"
    values: dict[str, Any] = {
        "role": "agent",
        "fingerprint": f"{next(_numbers)}",
        "issuer": "CN=CA",
        "subject": subject,
    } | given
    return CertificateRow(
        capture=CAPTURE, certname=certname, time=micros(hours), last=micros(hours),
        not_after=micros(-24 * days_left), **values,
    )  # fmt: skip


def crl(issuer: str, days_left: float, made_hours: float = 48, **given: Any) -> CrlRow:
    values: dict[str, Any] = {"fingerprint": f"{next(_numbers)}", "last_update": micros(made_hours)} | given
    return CrlRow(
        capture=CAPTURE, time=micros(1), last=micros(1), issuer=issuer, next_update=micros(-24 * days_left), **values
    )


def fact(certname: str, path: str, value: str, hours: float = 1, **given: Any) -> FactRow:
    values: dict[str, Any] = {"type": "string"} | given
    return FactRow(capture=CAPTURE, certname=certname, path=path, value=value, time=micros(hours), **values)


def event(of: RunRow, title: str, status: str = "success", **given: Any) -> ResourceEventRow:
    """A change of a file's content in a run."""
    values: dict[str, Any] = {"type": "File", "property": "content", "file": "/site.pp", "line": 7} | given
    return ResourceEventRow(
        capture=CAPTURE, run=of.run, certname=of.certname, time=of.time, title=title, status=status, **values
    )


def tables(folder: Path, *rows: TableRow) -> Path:
    """Make a directory of tables with these rows, recorded until ``END``."""
    directory = TableDirectory.create(folder / "tables")
    with directory.working() as work:
        spools = Spools(work)
        capture = CaptureRow(capture=CAPTURE, time=micros(1), last=micros(0), name="a.sqlite", complete=True)
        for row in (*rows, *(() if any(isinstance(row, CaptureRow) for row in rows) else (capture,))):
            spools.add(row)
        named_runs = {row.run: row.certname for row in rows if isinstance(row, AgentRow | RunRow) and row.run}
        for number, certname in named_runs.items():
            spools.add_place(Place(number, number, certname))
        spools.close()
        directory.put(CAPTURE, "here", spools, work, last=0)
    return directory.root


def answer(root: Path, query: str, columns: str, *settings: str) -> list[tuple[Any, ...]]:
    """Return some columns of what a named query answers."""
    with sql.opened(root) as database, database.answer(named(query), settings) as result:
        names = [column.name for column in result.columns]
        rows = [dict(zip(names, row, strict=True)) for batch in result.batches for row in batch]
    return [tuple(row[name] for name in columns.split()) for row in rows]

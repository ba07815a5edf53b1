"""Tables of a fleet that was made up: rows without captures."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import msgspec

from inspector.fleet.directory import TableDirectory
from inspector.fleet.spools import Place, Spools
from inspector.fleet.tables import AgentRow, CaptureRow, CertificateRow, CrlRow, FindingRow, ResourceEventRow, RunRow

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.fleet.tables import TableRow
    from inspector.runs.snapshot import Outcome

START = 1_795_046_400.0
"""2026-11-19, 00:00 UTC."""
DAY = 86_400


def micros(seconds: float) -> int:
    return round((START + seconds) * 1e6)


def tables_with(folder: Path, *rows: TableRow, capture: str = "0" * 16, until: float = DAY) -> TableDirectory:
    """Tables with these rows, which are in one capture of a day. A run's number is its place."""
    directory = TableDirectory.create(folder / "tables")
    with directory.working() as work:
        spools = Spools(work)
        places = {row.run: row.certname for row in rows if isinstance(row, AgentRow | RunRow) and row.run}
        for place, certname in places.items():
            spools.add_place(Place(place, place, certname))
        for row in rows:
            spools.add(row)
        spools.add(CaptureRow(capture=capture, time=micros(0), last=micros(until), name="a.sqlite", records=25))
        spools.close()
        directory.put(capture, "paris", spools, work, last=0)
    return directory


def run_row(number: int, certname: str | None, at: float, outcome: Outcome = "complete", **given: Any) -> RunRow:
    values: dict[str, Any] = {"capture": "0" * 16, "duration": 10.0} | given
    return judged(RunRow(run=number, certname=certname, time=micros(at), outcome=outcome, **values))


def judged(row: RunRow) -> RunRow:
    """A run with what its node was after it, unless it says that itself."""
    if row.tool or row.command or row.state or row.run_state != "over":
        return row
    state = {"complete": "well", "waiting": "waiting"}.get(row.outcome, "failing")
    found = {"state": state, "standing_since": row.time}
    if state != "well":
        found |= {"standing_cause": row.cause, "standing_reason": row.reason}
    return msgspec.structs.replace(row, **found)


def fleet(folder: Path, nodes: int, days: int = 3, runs: int = 2, name: str = "web{:05}.example") -> TableDirectory:
    """A fleet in which some nodes fail, some fell silent, and one resource never settles."""
    chance = random.Random(7)  # noqa: S311 - it need not be secret
    rows: list[TableRow] = []
    number = 0
    for node in range(nodes):
        certname = name.format(node)
        for turn in range(days * runs):
            if node % 50 == 3 and turn > runs:
                continue
            number += 1
            at, failed = turn * DAY / runs + node % 1800, node % 40 == 1
            took = chance.lognormvariate(0.5, 0.4)
            rows.append(
                run_row(
                    number, certname, at, "failed" if failed else "complete", cause="S01" if failed else None,
                    reason=f"no catalog for {certname}" if failed else None, agent_version=f"{7 + node % 2}.10.0",
                    environment="production", compiler=f"c{node % 3}.example", master_version="7.9.5",
                    compile_time=took, catalog_time=took, report_status="changed",
                    catalog_format="application/vnd.puppet.rich+json",
                )
            )  # fmt: skip
            common: dict[str, Any] = {"capture": "0" * 16, "run": number, "certname": certname, "time": micros(at)}
            if failed:
                rows.append(FindingRow(**common, rule="S01", severity="error", message="no catalog", cause=True))
            if node % 20 == 0:
                rows.append(ResourceEventRow(**common, type="File", title="/etc/motd", status="success", line=3))
        rows.append(
            CertificateRow(
                capture="0" * 16, time=micros(0), last=micros(DAY), fingerprint=certname, role="agent",
                certname=certname, subject=f"CN={certname}", serial=f"0x{node:04X}", issuer="CN=CA", key=certname,
                not_after=micros(DAY * (10 + node % 900)),
            )
        )  # fmt: skip
    rows.append(
        CrlRow(capture="0" * 16, time=micros(0), last=micros(0), fingerprint="f", issuer="CN=CA", number="1",
               next_update=micros(40 * DAY))
    )  # fmt: skip
    return tables_with(folder, *rows, until=days * DAY)

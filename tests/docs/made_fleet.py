"""Tables of a fleet in which some nodes are not well, for a picture: made, as the samples are of two nodes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inspector.fleet.tables import FindingRow
from tests.support.fleets import DAY, micros, run_row, tables_with

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.fleet.directory import TableDirectory
    from inspector.fleet.tables import TableRow

WELL, RUNS = 180, 4
"""Nodes, and runs of each: one a day."""
CLASS = (
    "no catalog: 500, Evaluation Error: Error while evaluating a Function Call, Could not find class "
    "::profile::mail (file: /etc/puppetlabs/code/environments/production/manifests/site.pp, line: 12)"
)
CAUSES = (
    ("mail", 5, "failed", "S01", CLASS),
    ("db", 3, "waiting", "B18", "the CA has a certificate for this name, made for another key than the agent's"),
    ("old", 1, "refused", "T05", "the certificate of the node is revoked: the master refuses it"),
)
"""Nodes since yesterday: their name and number, how their run ended, why."""


def made(folder: Path) -> TableDirectory:
    """Make the tables in a folder."""
    rows: list[TableRow] = []
    about: dict[str, Any] = {"agent_version": "8.10.0", "master_version": "8.7.0", "server": "puppet.example",
             "environment": "production", "report_status": "unchanged"}  # fmt: skip
    for node in range(WELL):
        for run in range(RUNS):
            if node > 1 or run < 1:  # the first two fell silent
                rows.append(run_row(len(rows) + 1, f"web{node:03}.example", run * DAY + node * 60,
                                    compile_time=1.0 + (node * 7 + run) % 10 / 10, **about))  # fmt: skip
    for name, number, outcome, rule, reason in CAUSES:
        for node in range(1, number + 1):
            run, certname, at = len(rows) + 1, f"{name}{node}.example", 3 * DAY + node * 300
            rows.append(run_row(run, certname, at, outcome, cause=rule, reason=reason, **about))  # type: ignore[arg-type]
            rows.append(FindingRow(capture="0" * 16, run=run, certname=certname, time=micros(at), rule=rule,
                                   severity="error", message=reason, cause=True))  # fmt: skip
    return tables_with(folder, *rows, until=4 * DAY)

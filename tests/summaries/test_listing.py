"""A stored capture record by record, with all that is known."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from inspector.analysis.analyzer import Analyzer
from inspector.capture.store import Capture
from inspector.model import Gap, Severity
from inspector.runs.examples import ca, catalog, crl, csr, issued, report, talk, wait
from inspector.summaries import listing
from inspector.summaries.source import Source
from tests.support.briefs import all_briefs
from tests.support.captures import save
from tests.support.conversations import START, Agent, together
from tests.support.json_output import valid
from tests.tui.screens import indexed

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.model import Record
    from tests.conftest import Run


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return save(tmp_path / "c.sqlite", *together(Agent().run()))


def failing() -> list[Record]:
    agent = Agent("b.example", "192.0.2.2", time=START + 60)
    agent.leg = "run"
    agent.plugins().catalog(status=500).report("failed")
    return together(agent)


def test_list_gives_a_numbered_line_a_record(run: Run, path: Path) -> None:
    save(path, *failing(), Gap(START + 99, "the disk is full"))
    status, out, err = run("list", path)
    lines = out.splitlines()
    assert (status, err) == (0, "")
    assert [int(line.split()[0]) for line in lines] == list(range(1, 13))
    assert re.fullmatch(r" +4  \d\d:\d\d:\d\d\.\d{3}  a\.example +catalog +POST catalog/~ +200 +67 B +50 ms", lines[3])
    assert lines[-1].endswith("-- gap: the disk is full")
    assert run("list", path, "--filter", "phase:catalog status:>=400")[1].splitlines() == [lines[9]]
    nothing = f"Nothing matches the filter, of 12 records in {path}.\n"
    assert run("list", path, "--filter", "agent:nobody") == (0, nothing, "")


def test_list_knows_what_only_the_whole_run_shows(run: Run, tmp_path: Path) -> None:
    refused = Agent("x.example", "192.0.2.7").refused(own=True)
    path = save(tmp_path / "c.sqlite", *together(Agent().ca().crl().csr().issued("other"), refused))
    with Capture.open(path) as capture:
        analyzer = Analyzer()
        early = {
            record.seq: [finding.rule for finding in analyzer.feed(record).findings] for record in capture.records()
        }
        proved = {(finding.rule, seq) for run in analyzer.finish() for finding in run.findings for seq in finding.seqs}
    rows = valid("list", run("list", path, "--json")[1])
    assert {(finding["rule"], row["seq"]) for row in rows for finding in row["findings"]} == proved
    late = next(rule for rule, seq in proved if rule not in early[seq])
    shown = valid("list", run("list", path, "--json", "--filter", f"rule:{late}")[1])
    assert {row["seq"] for row in shown} == {seq for rule, seq in proved if rule == late}
    # The first requests say no name; whose they are is known in the end.
    assert rows[0]["certname"] == "a.example"


def test_list_as_json_fits_the_schema(run: Run, path: Path) -> None:
    refused = Agent("c.example", "192.0.2.3", time=START + 90).refused("revoked\x1b[2J", own=True).catalog(status=None)
    save(path, *together(refused), Gap(START + 99, "full", 3))
    rows = valid("list", run("list", path, "--json")[1])
    assert [row["kind"] for row in rows] == ["exchange"] * 6 + ["handshake", "exchange", "gap"]
    assert rows[3] | {"time": "", "findings": []} == {
        "capture": str(path),
        "seq": 4, "kind": "exchange", "time": "", "run": 1, "certname": "a.example", "phase": "catalog",
        "method": "POST", "path": "/puppet/v3/catalog/a.example", "status": 200,
        "bytes": {"sent": 230, "received": 67}, "ms": 50.0, "reason": None, "not_analyzed": None, "injected": None,
        "findings": [],
    }  # fmt: skip
    assert (rows[6]["reason"], rows[6]["certname"], rows[6]["bytes"]) == ("revoked\x1b[2J", "c.example", None)
    assert (rows[7]["status"], rows[7]["reason"]) == (None, "the master closed the connection")
    assert (rows[8]["run"], rows[8]["reason"], rows[8]["ms"]) == (None, "full", None)
    assert run("list", path, "--json", "--filter", "status:418")[1] == "[]\n"


def test_runs_takes_the_same_filter(run: Run, path: Path) -> None:
    save(path, *failing())
    everyone = run("runs", path)[1].splitlines()
    status, out, _ = run("runs", path, "--filter", "phase:catalog status:>=400")
    assert (status, [line.split() for line in out.splitlines()[:2]]) == (0, [everyone[0].split(), everyone[2].split()])
    assert "run 2: b.example" in out
    assert "a.example" not in out
    only = valid("runs", run("runs", path, "--json", "--filter=-status:>=400")[1])
    assert [row["certname"] for row in only] == ["a.example"]
    assert valid("runs", run("runs", path, "--json", "--filter", "'no catalog'")[1])[0]["certname"] == "b.example"
    assert run("runs", path, "--filter", "since:10s")[1].splitlines()[1].split() == everyone[2].split()
    assert run("runs", path, "--filter", "run:9") == (0, f"Nothing matches the filter, of 2 runs in {path}.\n", "")


def test_a_later_fault_marks_no_record_of_a_run_that_went_well(tmp_path: Path) -> None:
    """The evidence for two keys is the first request as well, but nothing was wrong then."""
    taken = csr(key="other", status=400, text="already has a signed certificate")
    parts = (ca(), crl(), csr(), issued(), catalog(), report(), wait(3600), ca(), crl(), taken, issued())
    path = save(tmp_path / "c.sqlite", *talk(*parts))
    records = {brief.seq: (run.number if run else None, brief.signs) for brief, run in listing.listed(path)}
    healthy = {sign.severity for number, signs in records.values() if number == 1 for sign in signs}
    faulty = {sign.rule for number, signs in records.values() if number == 2 for sign in signs}
    assert healthy == {Severity.NOTICE}, "B01 and B45 are its own"
    assert {"B18", "B20", "B22", "B23"} <= faulty
    with Source(indexed(path)) as source:
        assert {brief.seq: brief.signs for brief in all_briefs(source)} == {
            seq: signs for seq, (_, signs) in records.items()
        }

"""Rows of runs, exchanges, findings, connections and handshakes."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

import pytest

from inspector.fleet.rows import HELD
from inspector.runs.examples import catalog, plugins, report, talk, together, unanswered
from tests.support import conversations
from tests.support.conversations import START, Agent
from tests.support.nodes import uncompiled, well
from tests.support.tables_of import asked, of_records

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from inspector.model import Record

TOKEN = "ghp_" + "a1" * 18


@pytest.mark.slow
def test_a_run_that_began_without_a_name_is_one_run(tmp_path: Path) -> None:
    agent = Agent().bootstrap(polls=2).run()
    directory = of_records(tmp_path, conversations.together(agent))
    assert asked(directory, "SELECT run, certname, outcome, requests, connections > 1 FROM runs") == [
        (1, "a.example", "complete", len(agent.records), True)
    ]
    # Also the first requests, which name nobody, are rows of this run and this node.
    assert asked(directory, "SELECT DISTINCT run, certname FROM exchanges") == [(1, "a.example")]
    assert asked(directory, "SELECT certificates_time > 0, files_time IS NULL, report_time > 0 FROM runs") == [
        (True, False, True)
    ]


def test_an_exchange_is_what_list_shows_of_it(tmp_path: Path) -> None:
    agent = Agent().ask("GET", f"/puppet/v3/file_content/modules/m/{TOKEN}?environment=x", body=b"abc", own=True)
    agent.ask("GET", "/favicon.ico", status=None)
    directory = of_records(tmp_path, conversations.together(agent))
    rows = asked(
        directory,
        "SELECT seq, phase, endpoint, method, path, environment, status, received, format, authenticated, error, "
        "round(duration, 2), round(waited, 2), time FROM exchanges ORDER BY seq",
    )
    path = rows[0][4]
    assert path.startswith("/puppet/v3/file_content/modules/m/ghp_MASKED")
    assert TOKEN not in path
    assert rows[0][:4] == (1, "files", "file_content", "GET")
    assert rows[0][5:11] == ("x", 200, 3, "text/plain", True, None)
    assert [float(value) for value in rows[0][11:13]] == [0.05, 0.01] or rows[0][11] > 0
    began = datetime.datetime.fromtimestamp(START + 0.1, datetime.UTC).replace(tzinfo=None)
    assert abs((rows[0][13] - began).total_seconds()) < 1e-3
    assert rows[1][1:7] == ("other", None, "GET", "/favicon.ico", None, None)
    assert rows[1][10] == "the master closed the connection"


@pytest.mark.slow
def test_findings_name_their_run_their_evidence_and_what_they_are(tmp_path: Path) -> None:
    directory = of_records(
        tmp_path, talk(plugins(), catalog(status=500, text="no role"), report(result="failed"), certname="a.example")
    )
    (row,) = asked(
        directory, "SELECT run, certname, severity, seqs, cause, consequence FROM findings WHERE rule = 'S01'"
    )
    assert row == (1, "a.example", "error", [2], True, False)
    assert asked(directory, "SELECT outcome, cause, errors > 0, catalog, resources FROM runs") == [
        ("failed", "S01", True, None, None)
    ]
    assert asked(directory, "SELECT count(*) FROM findings WHERE consequence")[0][0] > 0


def test_failed_handshakes_are_rows(tmp_path: Path) -> None:
    directory = of_records(tmp_path, conversations.together(Agent().refused(own=True).refused()))
    rows = asked(directory, "SELECT seq, side, alert, alert_by, certificate IS NULL FROM handshakes ORDER BY seq")
    assert rows == [(1, "agent", "certificate_revoked", "proxy", False), (2, "agent", "unknown_ca", "agent", True)]


@pytest.mark.slow
def test_every_connection_is_a_row(tmp_path: Path) -> None:
    agent = Agent().ca().run()
    directory = of_records(tmp_path, conversations.together(agent))
    legs = {record.agent.id for record in agent.records}  # type: ignore[union-attr]
    rows = asked(directory, "SELECT connection, side, certname, address, tls FROM connections")
    assert {row[0] for row in rows} == legs
    assert {row[1:] for row in rows} == {
        ("agent", None, "192.0.2.1", "TLSv1.3"), ("agent", "a.example", "192.0.2.1", "TLSv1.3"),
    }  # fmt: skip


@pytest.mark.slow
def test_a_tool_has_no_run(tmp_path: Path) -> None:
    agent = Agent().ask("GET", "/status/v1/services", headers=(("User-Agent", "curl/8"),))
    directory = of_records(tmp_path, conversations.together(agent))
    assert asked(directory, "SELECT run FROM exchanges") == [(None,)]
    assert asked(directory, "SELECT * FROM runs") == []


@pytest.mark.slow
def test_runs_of_several_agents_are_not_mixed(tmp_path: Path) -> None:
    records = together(
        talk(plugins(), catalog(), report(), certname="a.example"),
        talk(plugins(), catalog(), report(), certname="b.example", address="192.0.2.8", after=0.5),
    )
    directory = of_records(tmp_path, records)
    assert asked(directory, "SELECT certname, requests FROM runs ORDER BY certname") == [
        ("a.example", 3), ("b.example", 3),
    ]  # fmt: skip
    assert asked(
        directory,
        "SELECT e.certname = r.certname, count(*) FROM exchanges e JOIN runs r USING (capture, run) GROUP BY 1",
    ) == [(True, 6)]


@pytest.mark.slow
@pytest.mark.parametrize("held", [HELD, 2])
def test_a_run_says_what_its_node_was_after_it_however_few_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, held: int
) -> None:
    monkeypatch.setattr("inspector.fleet.rows.HELD", held)

    def quiet(number: int, after: float) -> Sequence[Record]:
        name, address = f"web{number}.example", f"192.0.2.{number}"
        return talk(
            unanswered(plugins(), "something else"),
            unanswered(catalog(), "something else"),
            certname=name,
            address=address,
            after=after,
        )

    runs = together(well(1), uncompiled(2, 100), uncompiled(1, 600), well(2, 700), quiet(1, 1800), quiet(2, 1900))
    directory = of_records(tmp_path, sorted(runs, key=lambda record: record.time))
    found = asked(directory, "SELECT state, cause, standing_cause, run_state FROM runs ORDER BY certname, time")
    assert found == [
        ("well", None, None, "over"), ("failing", "S01", "S01", "over"), ("failing", None, "S01", "over"),
        ("failing", "S01", "S01", "over"), ("well", None, None, "over"), ("failing", None, None, "over"),
    ]  # fmt: skip
    since = "SELECT count(DISTINCT standing_since) FROM runs WHERE standing_cause = 'S01' GROUP BY certname"
    assert asked(directory, since) == [(1,), (1,)]

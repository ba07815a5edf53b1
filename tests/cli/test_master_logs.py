"""``--access-log`` and ``--server-log``: where the commands print, draw and export what they say."""

from __future__ import annotations

import json
import shutil
import sys
from typing import TYPE_CHECKING, Any

import pytest

from inspector.tui import app
from tests.support.json_output import valid
from tests.support.master_logs import access_line, answered, server_line, write
from tests.support.otlp import attributes, spans_of
from tests.support.pages import sample
from tests.support.recorded import records_of
from tests.support.terminals import pretend

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.explain.master_log.measured import MasterTimes
    from tests.conftest import Run

CAPTURE = sample("first-run")
REQUESTS = answered(records_of(CAPTURE))
CATALOG = next(exchange for exchange in REQUESTS if "/catalog/" in exchange.request.target)
CLIENT = 3
"""The kind of a span."""
FOUND = f"puppet-inspector: Access log: {len(REQUESTS)} of {len(REQUESTS)} requests found in it"


@pytest.fixture
def logs(tmp_path: Path) -> list[str | Path]:
    lines = [access_line(one, queue=0.3 * (one is CATALOG)) for one in REQUESTS]
    name = CATALOG.request.path.rpartition("/")[2]
    compiled = server_line(CATALOG.ended, f"Compiled catalog for {name} in environment production in 0.1 seconds")
    return ["--access-log", write(tmp_path / "access.log", lines),
            "--server-log", write(tmp_path / "puppetserver.log", [compiled])]  # fmt: skip


def test_runs_prints_where_the_time_went(run: Run, logs: list[str | Path]) -> None:
    status, out, err = run("runs", CAPTURE, *logs)
    assert status == 0
    assert err.startswith(FOUND)
    at = out.splitlines().index("Where the time went:")
    head, line = (out.splitlines()[at + number].split() for number in (1, 2))
    assert head[:3] == ["run", "agent", "whole"]
    assert "queue" in head
    assert "100 ms" in out.splitlines()[at + 2]
    assert line[-1] == "serve"
    (first,) = valid("runs", run("runs", CAPTURE, *logs, "--json")[1])
    assert first["times_s"]["compile"] == 0.1
    assert first["times_s"]["queue"] >= 0.29
    assert "times_s" not in valid("runs", run("runs", CAPTURE, "--json")[1])[0]


def test_of_several_captures_one_may_be_of_another_time(run: Run, logs: list[str | Path]) -> None:
    other = sample("compile-error")
    status, out, err = run("runs", other, CAPTURE, *logs)
    assert status == 0
    assert f"is about a request of {other}" in err
    assert f"{CAPTURE.name} where the time went:" in out
    assert run("runs", other, *logs)[0] == 2


def test_show_prints_it_of_one_record(run: Run, logs: list[str | Path]) -> None:
    status, out, _ = run("show", CAPTURE, CATALOG.seq, *logs)
    assert status == 0
    assert out.splitlines()[-2].startswith("Where its time went, since the run's record before: ")
    assert "queue (waiting for a JRuby) 2" in out.splitlines()[-1]
    shown = valid("show", run("show", CAPTURE, CATALOG.seq, *logs, "--json")[1])
    assert shown["times_s"]["compile"] == 0.1
    assert "Where its time" not in run("show", CAPTURE, CATALOG.seq)[1]


def test_a_trace_has_the_queue_as_a_slice(run: Run, logs: list[str | Path], tmp_path: Path) -> None:
    path = tmp_path / "a.trace.json"
    status, _, err = run("export", CAPTURE, "-o", path, *logs)
    assert status == 0
    assert err.startswith(FOUND)
    parts = [event for event in json.loads(path.read_text())["traceEvents"] if event.get("cat") == "part"]
    (longest,) = [event for event in parts if event["name"].startswith("queue") and event["dur"] > 250_000]
    compiled = [event for event in parts if event["name"] == "the master compiles"]
    assert longest["dur"] == pytest.approx(300_000, abs=20_000)
    assert [event["dur"] for event in compiled] == [pytest.approx(100_000, abs=2)]
    assert "the master works" not in {event["name"] for event in parts}


def test_spans_have_the_masters_seconds(run: Run, logs: list[str | Path], tmp_path: Path) -> None:
    path = tmp_path / "a.otlp.json"
    status, _, err = run("export", CAPTURE, "-o", path, *logs)
    assert (status, err.startswith(FOUND)) == (0, True)
    masters = [attributes(span) for span in spans_of(path.read_text()) if span.kind == CLIENT]
    (of_catalog,) = [each for each in masters if each["puppet.record"] == CATALOG.seq]
    assert of_catalog["puppet.master.queue"] == pytest.approx(0.3, abs=0.02)
    assert of_catalog["puppet.master.compile"] == pytest.approx(0.1)
    run("export", CAPTURE, "-o", tmp_path / "b.otlp.json")
    assert "puppet.master.queue" not in (tmp_path / "b.otlp.json").read_text()


@pytest.mark.parametrize("words", [["export", "--format", "har"], ["export", "-o", "a.mitm"], ["report", "--json"]])
def test_where_there_is_no_place_for_it_that_is_a_mistake(run: Run, words: list[str], logs: list[str | Path]) -> None:
    status, out, err = run(words[0], CAPTURE, *words[1:], *logs)
    assert (status, out) == (2, "")
    assert "what a master's logs say" in err


@pytest.mark.slow
def test_a_page_draws_it(run: Run, logs: list[str | Path], tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    status, _, err = run("report", CAPTURE, "-o", path, "--shared", *logs)
    assert status == 0
    assert err.startswith(FOUND)
    text = path.read_text()
    assert "Where the time went: serve " in text
    assert '<rect class="queue" x=' in text
    assert FOUND.partition(": ")[2] in text
    run("report", CAPTURE, "-o", tmp_path / "b.html")
    assert 'class="queue"' not in (tmp_path / "b.html").read_text()


def test_open_hands_it_to_the_inspector(
    run: Run, logs: list[str | Path], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    opened: list[MasterTimes] = []

    def runs(path: Path, *, times: MasterTimes, **_: Any) -> int:
        opened.append(times)
        return 0

    pretend(monkeypatch, 80)
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr(app, "run", runs)
    assert run("open", CAPTURE, *logs)[0] == 0
    assert opened[0].by_record[CATALOG.seq].compiled == 0.1
    status, _, err = run("open", tmp_path, *logs)
    assert (status, str(tmp_path) in err) == (2, True)
    shutil.copy(CAPTURE, tmp_path / "a.sqlite")
    assert run("open", tmp_path, *logs)[0] == 0
    assert opened[1].by_record == opened[0].by_record

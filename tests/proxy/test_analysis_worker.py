"""The process that understands what a proxy records: what it says, and what the proxy makes of it."""

from __future__ import annotations

import dataclasses
import math
import os
import re
import signal
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from inspector import installation
from inspector.capture.store import Capture
from inspector.model import Gap
from inspector.proxy import analysis_worker, side_process
from inspector.proxy.analysis_client import AnalysisClient, AnalysisResult
from inspector.proxy.recorder import Recorder
from inspector.proxy.workers import Workers
from inspector.rules import On, Ruleset, all_rules
from inspector.rules.cases import Statement
from inspector.runs.examples import ca, catalog, content, report, talk
from inspector.summaries import filters
from inspector.summaries.follow import Follower
from tests.support.captures import keep, save
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inspector.rules.cases import Case


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "c.sqlite"


def test_a_mistake_of_ours_comes_with_its_record(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_case: Case) -> Iterator[Statement]:
        raise RuntimeError("oh")
        yield Statement("")

    rules = [dataclasses.replace(rule, function=broken, at=()) if rule.id == "B01" else rule for rule in all_rules()]
    monkeypatch.setattr("inspector.analysis.analyzer.in_use", lambda: Ruleset(tuple(rules)))
    save(path, *talk(ca()))
    (result,) = analysis_worker.Results().of(Follower(path, filters.parse("")).look())
    assert result.seq == 1
    (error,) = result.errors
    assert re.fullmatch(r"rule B01 failed \(test_analysis_worker.py, line \d+\): RuntimeError\('oh'\)", error)


def test_a_mistake_of_ours_about_an_open_run_comes_with_its_summary(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_case: Case) -> Iterator[Statement]:
        raise RuntimeError("oh")
        yield Statement("")

    rules = [dataclasses.replace(rule, function=broken) if rule.on is On.RUN_END else rule for rule in all_rules()]
    monkeypatch.setattr("inspector.analysis.analyzer.in_use", lambda: Ruleset(tuple(rules)))
    save(path, *talk(catalog()))
    follower = Follower(path, filters.parse(""))
    list(follower.look())
    result, *_ = analysis_worker.Results().of(follower.sum_up())
    assert result.text.startswith("== run 1 of ")
    assert any(error.startswith("rule B02 failed (test_analysis_worker.py, line ") for error in result.errors)
    assert result.error_lines()[0].startswith("-- internal error while analyzing a run: rule ")


def test_the_mistakes_of_workers_are_recorded_too(path: Path) -> None:
    lines: list[str] = []
    made: Any = object.__new__(Workers)
    made._console, made._captures, made._lock = SimpleNamespace(write_line=lines.append), {path: None}, threading.Lock()
    made._metrics = None
    made._on_result(AnalysisResult("line", 7, [], ["rule B01 failed"]))
    with Capture.open(path) as capture:
        (gap,) = capture.records()
    assert isinstance(gap, Gap)
    assert gap.reason == "rule B01 failed"
    assert lines == ["line", "-- internal error while analyzing record 7: rule B01 failed"]


@pytest.mark.slow
def test_a_mistake_of_ours_is_recorded_as_a_gap(path: Path) -> None:
    lines: list[str] = []
    recording = Recorder(path, lines.append)
    recording.start()
    recording._on_result(AnalysisResult("line", 7, [], ["rule B01 failed"]))
    recording.finish()
    with Capture.open(path) as capture:
        (gap,) = capture.records()
    assert isinstance(gap, Gap)
    assert gap.reason == "rule B01 failed"
    assert lines[:2] == ["line", "-- internal error while analyzing record 7: rule B01 failed"]


@pytest.mark.slow
def test_what_a_record_means_comes_back_to_it_though_another_proxy_wrote_meanwhile(path: Path) -> None:
    heard: list[AnalysisResult] = []
    recording = Recorder(path, lambda _: None)
    save(path, *talk(catalog(), report()))  # another one's
    recording.start()
    recording.put(talk(ca())[0], heard.append)
    recording.finish()
    (result,) = heard
    assert result.seq == 3
    assert "B01" in [rule for rule, _, _ in result.findings]


@pytest.mark.slow
def test_recording_goes_on_when_it_dies_and_it_is_started_again(path: Path) -> None:
    lines: list[str] = []
    recording = Recorder(path, lines.append)
    recording.start()
    recording.put(talk(catalog())[0])
    assert eventually(lambda: len(lines) == 1)
    assert recording._analysis
    assert recording._analysis._process
    os.kill(recording._analysis._process.pid, signal.SIGKILL)
    assert eventually(lambda: len(lines) == 2)
    assert lines[1].startswith("-- the analysis has stopped; recording continues")
    recording.put(talk(report())[0])
    assert eventually(lambda: len(lines) >= 3)
    assert "report" in lines[2]
    recording.finish()
    assert sum("catalog/~" in line for line in lines) == 1, "what was printed before is not printed again"
    with Capture.open(path) as capture:
        assert len(list(capture.records())) == 2


_POISONED = """
import os, sys
sys.path.insert(0, {root!r})
from inspector.analysis.analyzer import Analyzer
from inspector.proxy import analysis_worker
feed = Analyzer.feed
def poisoned(self, record):
    while record.seq == 2:
        {deed}
    return feed(self, record)
Analyzer.feed = poisoned
analysis_worker.CPU = 0.5
sys.exit(analysis_worker.main(sys.argv[1:]))
"""


def poison(monkeypatch: pytest.MonkeyPatch, deed: str) -> None:
    """Make the analysis process do something at record 2."""
    monkeypatch.setattr(side_process, "PAUSES", (0.0,))
    code = _POISONED.format(root=str(installation.PACKAGE.parent), deed=deed)
    monkeypatch.setattr(installation, "command", lambda _module, *given: [sys.executable, "-P", "-c", code, *given])


@pytest.mark.slow
@pytest.mark.parametrize(
    ("deed", "ends"),
    [
        pytest.param(
            "pass",
            ["-- the analysis has stopped at record 2 (a record took too long); recording continues"],
            marks=pytest.mark.slow,
        ),
        ("os._exit(3)", ["-- the analysis has stopped at record 2; recording continues"] * 2),
    ],
    ids=["endless", "crash"],
)
def test_a_poisonous_record_is_left_out_and_the_others_are_analyzed(
    deed: str, ends: list[str], path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    poison(monkeypatch, deed)
    save(path, *talk(catalog(), content("a", b"x"), report()))
    results: list[AnalysisResult] = []
    analysis = AnalysisClient(lambda: path, 0, (), results.append)
    assert eventually(lambda: any(result.seq == 3 for result in results))
    assert analysis.close()
    assert [result.seq for result in results if result.seq] == [1, 2, 3]
    (left_out,) = [result for result in results if result.seq == 2]
    assert left_out.text.endswith("not analyzed: the analysis has ended at it")
    assert not left_out.findings
    messages = [result.text for result in results if result.text.startswith("-- ")]
    assert [text.partition(", and")[0] for text in messages[:-1]] == ends
    assert messages[-1] == "-- record 2 is not analyzed: `puppet-inspector show` shows it"
    assert analysis.analyzed == math.inf, "no more results will come"


@pytest.mark.slow
def test_it_is_started_again_for_ever(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also after a thousand times, and if no process can be started for a while."""
    monkeypatch.setattr(side_process, "PAUSES", (0.0,))
    results: list[AnalysisResult] = []
    starts = iter([OSError(11, "Resource temporarily unavailable"), None])
    save(path, *talk(catalog()))
    analysis = AnalysisClient(lambda: path, 0, (), results.append)
    launch = analysis._launch

    def launched() -> Any:
        if (error := next(starts, None)) is not None:
            raise error
        return launch()

    monkeypatch.setattr(analysis, "_launch", launched)
    analysis._restarts.deaths = 5000
    assert eventually(lambda: any(result.seq == 1 for result in results))
    assert analysis._process
    analysis._process.kill()
    with Capture.create(path) as capture:
        keep(capture, *talk(report()))
    assert eventually(lambda: any(result.seq == 2 for result in results))
    assert analysis.close()
    lines = [result.text for result in results if result.text.startswith("-- ")]
    assert lines[0].startswith("-- the analysis has stopped")
    assert lines[1:] == ["-- the analysis cannot be started (Resource temporarily unavailable); recording continues"]


_PROXY = """
import os, pathlib, signal, sys
sys.path.insert(0, {root!r})
from inspector import installation
from inspector.proxy.analysis_client import AnalysisClient
installation.command = lambda _module, *given: [sys.executable, "-P", "-c", {code!r}, *given]
client = AnalysisClient(lambda: pathlib.Path(sys.argv[1]), 0, (), lambda _: None)
print(client._process.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.slow
def test_it_ends_with_its_proxy_whatever_it_is_doing(path: Path) -> None:
    save(path, *talk(catalog(), report()))
    root = str(installation.PACKAGE.parent)
    code = _PROXY.format(root=root, code=_POISONED.format(root=root, deed="pass").replace("CPU = 0.5", "CPU = 600"))
    with subprocess.Popen(
        [sys.executable, "-c", code, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as proxy:
        assert proxy.stdout
        worker = int(proxy.stdout.readline())
        assert eventually(lambda: "R (running)" in _status(worker)), "it is busy with record 2"
        proxy.kill()
    assert eventually(lambda: "Z (zombie)" in _status(worker))


def _status(process: int) -> str:
    try:
        return Path(f"/proc/{process}/status").read_text()
    except OSError:
        return "Z (zombie)"


@pytest.mark.slow
def test_it_goes_on_in_another_capture(tmp_path: Path) -> None:
    first, second = talk(catalog(), report())
    one, two = save(tmp_path / "one.sqlite", first), tmp_path / "two.sqlite"
    with Capture.create(one) as capture:
        assert capture.continue_in(two) == two
        assert capture.continue_in(tmp_path / "three.sqlite") == two  # the first one decides
    with Capture.create(two, after=1) as capture:
        keep(capture, second)
    results: list[AnalysisResult] = []
    analysis = AnalysisClient(lambda: one, 0, (), results.append)
    assert analysis.close()
    # One run, of which the second capture alone would know the report only.
    assert [result.seq for result in results[:2]] == [1, 2]
    assert results[2].text.startswith("== run 1 of node1.example (7.23.0): complete")


@pytest.mark.slow
def test_what_is_known_already_is_not_reported_again(path: Path) -> None:
    save(path, *talk(catalog()))
    results: list[AnalysisResult] = []
    analysis = AnalysisClient(lambda: path, 1, (), results.append)
    with Capture.create(path) as capture:
        keep(capture, *talk(report()))
    assert analysis.close()
    assert results[0].seq == 2

"""The process that understands what a proxy records: what it says, and what the proxy makes of it."""

from __future__ import annotations

import dataclasses
import os
import signal
import threading
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from inspector.capture.store import Capture
from inspector.model import Exchange, Gap
from inspector.proxy import analysis_worker, recorder
from inspector.proxy.analysis_client import Commentary, Told
from inspector.proxy.fast.workers import Workers
from inspector.proxy.recorder import Recorder
from inspector.rules import On, all_rules
from inspector.runs.examples import ca, catalog, content, report, talk
from inspector.summaries import filters
from inspector.summaries.follow import Follower
from tests.support.captures import keep, save

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from inspector.rules import Case


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "c.sqlite"


def test_a_mistake_of_ours_comes_with_its_record(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_case: Case) -> Iterator[str]:
        raise RuntimeError("oh")
        yield ""

    rules = [dataclasses.replace(rule, look=broken, at=()) if rule.id == "B01" else rule for rule in all_rules()]
    monkeypatch.setattr("inspector.analysis.analyzer.all_rules", lambda: rules)
    save(path, *talk(ca()))
    (told,) = analysis_worker.tell(Follower(path, filters.parse("")).look())
    assert told.seq == 1
    assert told.trouble == ["rule B01 failed: RuntimeError('oh')"]


def test_a_mistake_of_ours_about_an_open_run_comes_with_its_summary(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_case: Case) -> Iterator[str]:
        raise RuntimeError("oh")
        yield ""

    rules = [dataclasses.replace(rule, look=broken) if rule.on is On.RUN_END else rule for rule in all_rules()]
    monkeypatch.setattr("inspector.analysis.analyzer.all_rules", lambda: rules)
    save(path, *talk(catalog()))
    follower = Follower(path, filters.parse(""))
    list(follower.look())
    told, *_ = analysis_worker.tell(follower.sum_up(ended=True))
    assert told.text.startswith("== run 1 of ")
    assert "rule B02 failed: RuntimeError('oh')" in told.trouble
    assert told.complaints()[0].startswith("-- puppet-inspector stumbled over a run: rule ")


def test_the_mistakes_of_workers_are_recorded_too(path: Path) -> None:
    lines: list[str] = []
    made: Any = object.__new__(Workers)
    made._console, made._captures, made._lock = SimpleNamespace(say=lines.append), {path: None}, threading.Lock()
    made._heard(Told("line", 7, [], ["rule B01 failed"]))
    with Capture.open(path) as capture:
        (gap,) = capture.records()
    assert isinstance(gap, Gap)
    assert gap.reason == "rule B01 failed"
    assert lines == ["line", "-- puppet-inspector stumbled over 7: rule B01 failed"]


def test_a_mistake_of_ours_is_recorded_as_a_gap(path: Path) -> None:
    lines: list[str] = []
    recording = Recorder(path, lines.append)
    recording.start()
    recording._heard(Told("line", 7, [], ["rule B01 failed"]))
    recording.finish()
    with Capture.open(path) as capture:
        (gap,) = capture.records()
    assert isinstance(gap, Gap)
    assert gap.reason == "rule B01 failed"
    assert lines[:2] == ["line", "-- puppet-inspector stumbled over 7: rule B01 failed"]


def test_what_a_record_means_comes_back_to_it_though_another_proxy_wrote_meanwhile(path: Path) -> None:
    heard: list[Told] = []
    recording = Recorder(path, lambda _: None)
    save(path, *talk(catalog(), report()))  # another one's
    recording.start()
    recording.put(talk(ca())[0], heard.append)
    recording.finish()
    (told,) = heard
    assert told.seq == 3
    assert "B01" in [rule for rule, _, _ in told.findings]


def test_recording_goes_on_when_it_dies(path: Path) -> None:
    lines: list[str] = []
    said = threading.Event()

    def say(line: str) -> None:
        lines.append(line)
        said.set()

    recording = Recorder(path, say)
    recording.start()
    recording.put(talk(catalog())[0])
    assert said.wait(20)
    said.clear()
    assert recording._commentary
    os.kill(recording._commentary._process.pid, signal.SIGKILL)
    assert said.wait(20)
    assert lines[-1].startswith("-- nothing more is told here, though all is recorded")
    recording.put(talk(report())[0])
    recording.finish()
    with Capture.open(path) as capture:
        assert len(list(capture.records())) == 2


def test_it_goes_on_in_another_capture(tmp_path: Path) -> None:
    first, second = talk(catalog(), report())
    one, two = save(tmp_path / "one.sqlite", first), tmp_path / "two.sqlite"
    with Capture.create(one) as capture:
        assert capture.continue_in(two) == two
        assert capture.continue_in(tmp_path / "three.sqlite") == two  # the first one decides
    with Capture.create(two, after=1) as capture:
        keep(capture, second)
    told: list[Told] = []
    commentary = Commentary(one, 0, None, told.append)
    assert commentary.end()
    # One run, of which the second capture alone would know the report only.
    assert [each.seq for each in told[:2]] == [1, 2]
    assert told[2].text.startswith("== run 1 of node1.example (7.23.0): complete")


def test_what_is_known_already_is_not_told_again(path: Path) -> None:
    save(path, *talk(catalog()))
    told: list[Told] = []
    commentary = Commentary(path, 1, None, told.append)
    with Capture.create(path) as capture:
        keep(capture, *talk(report()))
    assert commentary.end()
    assert told[0].seq == 2


def test_when_too_much_waits_detail_goes_before_exchanges_and_exchanges_before_runs(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (file,) = talk(content("app/large", b"x" * 5000))
    assert isinstance(file, Exchange)
    assert file.response
    weight = recorder._weight(file)
    monkeypatch.setattr(recorder, "QUEUE", 4 * weight)
    lines: list[str] = []
    recording = Recorder(path, lines.append)
    for _ in range(20):
        recording.put(file)
    recording.put(talk(catalog())[0])
    recording.start()
    recording.finish()
    with Capture.open(path) as capture:
        records = list(capture.records())
    gaps = [each for each in records if isinstance(each, Gap)]
    exchanges = [each for each in records if isinstance(each, Exchange)]
    whole = [each for each in exchanges if each.response and each.response.body]
    bare = [each for each in exchanges if each.response and each.response.lost]
    assert len(whole) == 3 + 1  # and the catalog, though it came last
    assert {each.response.lost for each in bare if each.response} == {5000}
    assert sum(gap.lost for gap in gaps) == 20 - 3 - len(bare) > 0
    assert {gap.reason.partition(" ")[2] for gap in gaps} == {
        recorder.DROPS[kind].partition("{} ")[2] for kind in ("file",)
    } | {f"bodies of {len(bare)} exchanges about files were not kept: more came in than could be recorded"}
    assert len([line for line in lines if line.startswith("-- ")]) == 2

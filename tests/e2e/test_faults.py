"""Nothing that breaks in the proxy, beside it or at either end stops an agent's run or loses a record unsaid.

Each fault of ``faults`` once; `make soak` plays them at length.
"""

from __future__ import annotations

import dataclasses
import os
import resource
import sqlite3
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from inspector.capture.store import Capture
from inspector.model import Connection, Exchange, Gap, Leg
from inspector.proxy import analysis_worker, recorder
from inspector.proxy.backlog import Item
from inspector.proxy.recorder import Recorder
from inspector.rules import Ruleset, all_rules
from inspector.rules.cases import Statement
from inspector.runs.examples import catalog, content, report, talk
from inspector.summaries import filters
from inspector.summaries.follow import Follower
from tests.bench import turmoil
from tests.e2e import faulty
from tests.e2e.faults import CUTS, FAULTS, FORMS, Scene, answers, cuts, drained, killed
from tests.support.captures import save
from tests.support.proxies import analyzed
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

BROKEN = {**faulty.OPEN, **faulty.CLOSED}


@pytest.fixture(scope="module", params=[False, True], ids=["mitmdump", "proxy"])
def scene(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scene]:
    with Scene(tmp_path_factory.mktemp("scene"), own=request.param) as started:
        yield started
    assert started.proxy.status == 0
    assert all(line.isprintable() for line in started.proxy.lines)
    analyzed(started.capture)


@pytest.mark.parametrize("name", [name for name in FAULTS if name not in FORMS])
def test_a_run_ends_as_without_the_proxy(scene: Scene, name: str) -> None:
    before = len(scene.proxy.lines)
    functions = BROKEN.get(name.removeprefix("exception in ").partition(":")[0])
    hook = functions[scene.own] if functions else ""
    if hook is None:
        return  # nothing of that kind is done
    tally = FAULTS[name](scene)
    assert tally.same == tally.tried > 0
    if not hook:
        assert tally.lost == 0
        assert not any("-- internal error" in line for line in scene.proxy.lines[before:])
    else:
        gaps = [gap for gap in tally.gaps if hook in gap.reason]
        assert len(gaps) >= tally.lost
        assert gaps
        assert any(hook in line for line in scene.proxy.lines[before:] if "-- internal error" in line)


def test_an_unusual_request_is_answered_as_without_the_proxy(scene: Scene) -> None:
    with scene.watched() as tally:
        for name, (number, data) in FORMS.items():
            assert answers(scene.peer(), number, data) == answers(scene.direct(), number, data), name
    assert tally.lost == 0


def test_nothing_of_all_that_stays_behind(scene: Scene) -> None:
    """After the other faults: a proxy that runs for months sees each of them."""
    leftover = ("exchanges", "bytes", "agents", "masters", "asked")

    def forgotten() -> bool:
        state = scene.state()
        return not any(state[kind] for kind in leftover)

    assert eventually(forgotten), scene.state()


# A connection that is reset before Python's ssl has made it its own stays open for the collector, at the lab's master.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", CUTS)
def test_a_reset_concerns_nobody_else(scene: Scene, name: str) -> None:
    before = len(scene.proxy.lines)
    tally = cuts(scene, *CUTS[name], step=197)
    assert tally.same == tally.tried > 8
    assert tally.lost == 0
    assert tally.gaps == []
    assert not any("-- internal error" in line for line in scene.proxy.lines[before:])


@pytest.mark.parametrize(("own", "after"), [(False, 0.4), (False, 1.5), (True, 0.3), (True, 1.3), (True, 2.0)])
def test_what_was_delivered_a_second_before_a_kill_is_in_the_capture(own: bool, after: float, tmp_path: Path) -> None:
    assert killed(tmp_path, own=own, after=after).lost == 0


def test_what_a_killed_proxy_started_ends_with_it(tmp_path: Path) -> None:
    with Scene(tmp_path, own=True) as scene:
        tasks = Path(f"/proc/{scene.proxy.process.pid}/task")

        def started() -> list[str]:
            return [child for task in tasks.iterdir() for child in (task / "children").read_text().split()]

        assert eventually(lambda: bool(started()))
        (other,) = started()
        scene.proxy.process.kill()
        assert eventually(lambda: not Path(f"/proc/{other}").exists())


@pytest.mark.parametrize("own", [False, True], ids=["mitmdump", "proxy"])
def test_what_is_under_way_is_answered_and_recorded_at_the_end(own: bool, tmp_path: Path) -> None:
    tally = drained(tmp_path, own=own)
    assert tally.same == tally.tried == 5
    assert tally.lost == 0


def test_a_connection_finds_a_free_descriptor(scene: Scene) -> None:
    least, most = resource.prlimit(scene.proxy.process.pid, resource.RLIMIT_NOFILE)
    assert least == most


def test_a_rule_that_raises_leaves_the_others_their_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Over its own examples: each record is told, with all else that is found in it."""

    def broken(*_: object, **__: object) -> Iterator[Statement]:
        raise RuntimeError("oh")
        yield Statement("")

    for rule in all_rules():
        without = [other for other in all_rules() if other is not rule]
        for number, records in enumerate((*rule.bad(), *rule.good())):
            path = save(tmp_path / f"{rule.id}-{number}.sqlite", *records)
            results = []
            for rules in (without, [*without, dataclasses.replace(rule, function=broken)]):
                monkeypatch.setattr("inspector.analysis.analyzer.in_use", lambda rules=rules: Ruleset(tuple(rules)))
                follower, made = Follower(path, filters.parse("")), analysis_worker.Results()
                results.append([*made.of(follower.look()), *made.of(follower.sum_up())])
            expected, despite = ([(result.seq, result.text, result.findings) for result in each] for each in results)
            assert despite == expected, rule.id
            troubles = [trouble for result in results[1] for trouble in result.errors]
            assert len(troubles) <= 1, rule.id
            assert all(trouble.startswith(f"rule {rule.id} failed (test_faults.py, line ") for trouble in troubles)


def test_a_record_that_can_never_be_written_keeps_no_other_from_it(tmp_path: Path) -> None:
    one, large, other = talk(catalog(), content("app/large", os.urandom(50_000)), report())
    lines: list[str] = []
    recording = Recorder(tmp_path / "c.sqlite", lines.append)
    recording._capture._db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, 40_000)
    recording.start()
    for record in (one, large, other):
        recording.put(record)
    recording.finish()
    with Capture.open(tmp_path / "c.sqlite") as capture:
        kinds = [(type(record), record.seq) for record in capture.records()]
        gap = capture.record(2)
    assert kinds == [(Exchange, 1), (Gap, 2), (Exchange, 3)]
    assert isinstance(gap, Gap)
    assert gap.lost == 1
    assert "too big" in gap.reason


def test_connections_are_not_kept_without_end_while_nothing_can_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recorder, "MEMORY", 5000)
    recording = Recorder(tmp_path / "c.sqlite", lambda _line: None)
    recording._failure = "the disk is full"
    for number in range(100):
        recording._process(Item(Connection(Leg(str(number), "agent", "192.0.2.1", number)), weight=1000))
    assert len(recording._capture._connections) == 5
    assert recording._lost == 0
    recording._capture.abandon()


def test_turmoil_costs_no_run_and_no_record(own: bool) -> None:
    """Resets, slow readers and restarts of the master, shortly; `make soak` plays ten minutes of it."""
    result = turmoil.play(12, 9, own=own)
    assert (result.failed, result.lost) == (0, 0)
    if own:  # mitmproxy does not always read what came right before a reset
        assert not result.missed
    assert result.restarts
    assert result.again
    assert result.answered > result.runs > 12

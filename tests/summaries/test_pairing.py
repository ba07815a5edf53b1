"""Which two runs are compared."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inspector.errors import InspectorError
from inspector.summaries import pairing, reading
from tests.support.captures import save
from tests.support.conversations import Agent, together

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.summaries.pairing import Pair
    from inspector.summaries.reading import CaptureRuns

HOUR = 3600


def failed(agent: Agent, uuid: str) -> Agent:
    agent.uuid, agent.leg = uuid, uuid
    return agent.plugins().catalog(status=500).report("failed")


def read(path: Path, *agents: Agent) -> CaptureRuns:
    return reading.read(save(path, *together(*agents)))


@pytest.fixture
def found(tmp_path: Path) -> CaptureRuns:
    """web: good 1, good 2, failed 3, good 4; db: failed once, later."""
    web = Agent("web.example").run("1").wait(HOUR).run("2").wait(HOUR)
    failed(web, "3").wait(HOUR).run("4")
    database = failed(Agent("db.example", "192.0.2.2").wait(4 * HOUR), "9")
    return read(tmp_path / "c.sqlite", web, database)


def numbers(pair: Pair) -> tuple[int, int]:
    return pair.before.brief.number, pair.after.brief.number


def test_the_last_failed_and_the_last_good_run(found: CaptureRuns) -> None:
    assert numbers(pairing.within(found, "web.example")) == (2, 3)


def test_the_failed_one_first(tmp_path: Path) -> None:
    agent = failed(Agent(), "1").wait(HOUR).run("2").wait(HOUR).run("3")
    assert numbers(pairing.within(read(tmp_path / "c.sqlite", agent), "a.example")) == (1, 3)


def test_without_a_failed_run_the_last_two(tmp_path: Path) -> None:
    agent = Agent().run("1").wait(HOUR).run("2").wait(HOUR).run("3")
    assert numbers(pairing.within(read(tmp_path / "c.sqlite", agent), "a.example")) == (2, 3)


def test_one_run_is_nothing_to_compare(found: CaptureRuns) -> None:
    with pytest.raises(InspectorError, match=r"only one run of db\.example"):
        pairing.within(found, "db.example")


def test_the_node_to_look_at_first(found: CaptureRuns, tmp_path: Path) -> None:
    assert pairing.failing(found) == ["db.example"]
    assert pairing.most_failing(found) == "web.example"  # db has nothing to compare with
    web = failed(Agent("web.example").run("1").wait(HOUR), "2")
    recovered = failed(Agent("ok.example", "192.0.2.2").wait(4 * HOUR), "9").wait(HOUR).run("10")
    good = Agent("good.example", "192.0.2.3").wait(9 * HOUR).run("7").wait(HOUR).run("8")
    assert pairing.failing(read(tmp_path / "d.sqlite", web, recovered, good)) == ["web.example"]
    assert pairing.most_failing(read(tmp_path / "e.sqlite", web, recovered, good)) == "web.example"
    assert pairing.most_failing(read(tmp_path / "f.sqlite", recovered, good)) == "ok.example"
    assert pairing.most_failing(read(tmp_path / "g.sqlite", good)) == "good.example"


def test_a_run_and_the_good_one_before_it(found: CaptureRuns) -> None:
    assert numbers(pairing.before_of(pairing.numbered(found, 3))) == (2, 3)
    assert numbers(pairing.before_of(pairing.numbered(found, 2))) == (1, 2)
    with pytest.raises(InspectorError, match=r"No earlier run of web\.example"):
        pairing.before_of(pairing.numbered(found, 1))
    with pytest.raises(InspectorError, match="has no run 77") as raised:
        pairing.numbered(found, 77)
    assert raised.value.hint == f"It has runs 1 to {len(found.runs)}. `puppet-inspector runs` lists them."


def test_a_capture_with_one_run_names_it(tmp_path: Path) -> None:
    with pytest.raises(InspectorError, match="has no run 2") as raised:
        pairing.numbered(read(tmp_path / "one.sqlite", Agent("web.example").run("1")), 2)
    assert raised.value.hint == "It has run 1. `puppet-inspector runs` lists them."


def test_agents_by_pattern(found: CaptureRuns) -> None:
    assert pairing.agents([found], "*") == ["web.example", "db.example"]
    assert pairing.agents([found], "d?.example") == ["db.example"]
    with pytest.raises(InspectorError, match="has no runs of 'x'") as raised:
        pairing.agents([found], "x")
    assert raised.value.hint == "It has runs of web.example, db.example."


def test_two_captures(found: CaptureRuns, tmp_path: Path) -> None:
    other = read(tmp_path / "d.sqlite", failed(Agent("web.example"), "1"), Agent("new.example", "192.0.2.3").run("2"))
    assert pairing.common(found, other, None) == (["web.example"], ["db.example"], ["new.example"])
    assert numbers(pairing.across(found, other, "web.example")) == (4, 1)
    assert numbers(pairing.across(other, found, "web.example")) == (1, 4)
    strangers = read(tmp_path / "e.sqlite", Agent("x.example").run("1"))
    with pytest.raises(InspectorError, match="no agent in common"):
        pairing.common(found, strangers, None)
    with pytest.raises(InspectorError, match=r"has no run of web\.example"):
        pairing.across(found, strangers, "web.example")


def test_history(found: CaptureRuns) -> None:
    pair = pairing.within(found, "web.example")
    assert [run.number for run in pairing.history([found, found], pair)] == [1, 4]


def test_an_empty_capture(tmp_path: Path) -> None:
    empty = read(tmp_path / "c.sqlite")
    with pytest.raises(InspectorError, match="There are no runs"):
        pairing.most_failing(empty)
    with pytest.raises(InspectorError, match="There are no runs"):
        pairing.agents([empty], None)


def test_the_run_before(found: CaptureRuns, tmp_path: Path) -> None:
    def before(number: int) -> int | None:
        chosen = pairing.previous(pairing.numbered(found, number))
        return chosen.brief.number if chosen else None

    assert [before(number) for number in (1, 2, 3, 4, 5)] == [None, 1, 2, 2, None]
    failing = failed(failed(Agent(), "1").wait(HOUR), "2")
    other = read(tmp_path / "f.sqlite", failing)
    chosen = pairing.previous(pairing.numbered(other, 2))
    assert chosen is not None
    assert chosen.brief.number == 1


def test_the_latest_first(found: CaptureRuns) -> None:
    runs = pairing.latest_first(found, ["web.example"])
    assert [chosen.brief.number for chosen in runs] == [4, 3, 2, 1]

"""The clocks of several places: compared by what both must have in common, and corrected where one was wrong."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from inspector.capture import merge, places
from inspector.capture.places import (
    BOTH,
    COUNTS,
    ORDER,
    PLACE,
    PLACES,
    PlaceClock,
    clocks_of,
    corrected,
    corrected_leg,
    several,
)
from inspector.capture.store import Capture
from inspector.model import Connection, Exchange, Gap, Handshake, Leg
from inspector.protocol.endpoints import match
from inspector.protocol.kinds import Kind
from inspector.runs.examples import stored, talk
from tests.support.apart import CA, ONE, TWO, apart, off, recorded, sampled
from tests.support.conversations import runs_of
from tests.support.records import read, unnumbered

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.model import Record

UUID = "4f9f15a5-5a7f-4796-b0e5-1cf0f1632126"
"""The transaction_uuid of the sample."""


@pytest.mark.parametrize("ahead", [-420.0, 0.0, 86_400.0])
def test_a_run_through_three_places_is_one_though_a_clock_is_wrong(tmp_path: Path, ahead: float) -> None:
    found = merge.merge(apart(tmp_path, ahead), target := tmp_path / "merged.sqlite")
    clocks = {clock.name: clock for clock in found.places}
    assert [clock.by for clock in found.places if clock.by == COUNTS] == [COUNTS]
    wrong = clocks[TWO]
    assert wrong.low is None or wrong.low <= ahead
    assert wrong.high is None or ahead <= wrong.high
    assert wrong.ahead == pytest.approx(ahead, abs=30 if ahead else 0)
    run, *others = runs_of(read(target))
    assert others == []
    assert (run.outcome, run.records) == ("complete", len(sampled()))
    with Capture.open(target) as merged:
        assert clocks_of(merged.meta()) == list(found.places)
        assert PLACE not in merged.meta()
    assert {leg.place for record in read(target) for leg in record.legs} == {CA, ONE, TWO}


def test_captures_of_one_place_are_left_as_they_are(tmp_path: Path) -> None:
    records = sampled()
    paths = [recorded(tmp_path / "1.sqlite", ONE, records[:8]), recorded(tmp_path / "2.sqlite", ONE, records[8:])]
    assert not several(paths)
    assert merge.merge(paths, tmp_path / "merged.sqlite").places == ()
    assert unnumbered(read(tmp_path / "merged.sqlite")) == records
    with Capture.open(tmp_path / "merged.sqlite") as merged:
        assert merged.meta()[PLACE] == ONE
        assert PLACES not in merged.meta()


def test_what_run_records_beside_a_proxy_is_read_by_itself(tmp_path: Path) -> None:
    records = sampled()
    paths = [recorded(tmp_path / "1.sqlite", "web1", records[:8]), recorded(tmp_path / "2.sqlite", ONE, records[8:])]
    assert not several(paths)
    assert several([*paths, recorded(tmp_path / "3.sqlite", TWO, [])])
    assert not several(paths[1:])


def test_a_capture_that_cannot_be_read_is_in_no_place(tmp_path: Path) -> None:
    paths = apart(tmp_path, 0.0)
    assert several(paths)
    paths[0].write_bytes(b"nothing")
    paths[1].write_bytes(b"nothing")
    assert not several(paths)


def nested(ahead: float) -> tuple[list[Record], list[Record]]:
    """A run as the proxy on its node has it, and as that before the master has it, whose clock is ahead."""
    outer: list[Record] = []
    inner: list[Record] = []
    for number, record in enumerate(sampled()):
        assert isinstance(record, Exchange)
        between = dataclasses.replace(record.agent, own_chain=(b"proxy",))
        beyond = dataclasses.replace(record.master or Leg("", "master"), id=f"m{number}", peer_chain=(b"master",))
        inner.append(off(dataclasses.replace(record, agent=between, master=beyond), ahead))
        there = Leg(f"o-{record.agent.id}", "master", "192.0.2.9", 8140, peer_chain=(b"proxy",),
                    own_chain=record.agent.peer_chain, connected=record.agent.connected)  # fmt: skip
        request = dataclasses.replace(record.request, started=(record.request.started or 0.0) - 0.002)
        assert record.response
        response = dataclasses.replace(record.response, ended=(record.response.ended or 0.0) + 0.002)
        here = dataclasses.replace(record.agent, id=f"n-{record.agent.id}")
        outer.append(dataclasses.replace(record, agent=here, master=there, request=request, response=response))
    return outer, inner


def test_what_two_proxies_recorded_one_behind_the_other_is_there_once(tmp_path: Path) -> None:
    outer, inner = nested(5.0)
    paths = [recorded(tmp_path / "1.sqlite", "web1", outer), recorded(tmp_path / "2.sqlite", ONE, inner)]
    found = merge.merge(paths, target := tmp_path / "merged.sqlite")
    assert (found.records, found.joined) == (len(outer), len(inner))
    clock = found.places[1]
    assert (clock.name, clock.by) == (ONE, f"{BOTH} as at web1")
    assert clock.low is not None
    assert clock.high is not None
    assert clock.low <= 5.0 <= clock.high <= clock.low + 0.005
    records = [record for record in read(target) if isinstance(record, Exchange)]
    assert {record.agent.place for record in records} == {"web1"}
    assert {(record.master.place, record.master.peer_chain) for record in records if record.master} == {
        (ONE, (b"master",))
    }


def kind_of(record: Record) -> Kind:
    assert isinstance(record, Exchange)
    found = match(record.request.method, record.request.target)
    assert found
    return found.endpoint.kind


@pytest.mark.parametrize(("command", "kind"), [("replace_catalog", Kind.CATALOG), ("store_report", Kind.REPORT)])
def test_what_puppetdb_stored_is_between_an_agents_request_and_its_answer(
    tmp_path: Path, command: str, kind: Kind
) -> None:
    """The clock of the place before PuppetDB, which no agent asks."""
    ahead, record = 420.0, next(each for each in sampled() if kind_of(each) is kind)
    assert isinstance(record, Exchange)
    assert record.response
    slow = dataclasses.replace(record, response=dataclasses.replace(record.response, ended=record.time + 9.0))
    (asked,) = talk(stored(command, transaction_uuid=UUID), certname="puppet.example")
    middle = off(asked, ahead + record.time + 4.0 - asked.time)
    paths = [recorded(tmp_path / "1.sqlite", ONE, [slow]), recorded(tmp_path / "2.sqlite", TWO, [middle])]
    clock = merge.merge(paths, tmp_path / "merged.sqlite").places[1]
    assert (clock.name, clock.by) == (TWO, f"{ORDER} as at {ONE}")
    assert clock.low is not None
    assert clock.high is not None
    assert clock.low <= ahead <= clock.high <= clock.low + 9.0
    assert clock.ahead == pytest.approx(ahead, abs=5)


def test_all_times_of_a_record_are_corrected() -> None:
    leg = Leg("a", "agent", connecting=1.0, connected=2.0, secured=None)
    assert corrected(Gap(10.0, "x"), 4.0) == Gap(6.0, "x")
    assert corrected(Handshake(leg, 10.0, "x", master_ahead=1.0), 4.0) == Handshake(leg, 6.0, "x", master_ahead=5.0)
    assert corrected_leg(Connection(leg), 1.0, "here").leg == dataclasses.replace(
        leg, connecting=0.0, connected=1.0, place="here"
    )
    record = sampled()[3]
    assert corrected(record, 0.0) is record
    earlier = corrected(record, 100.0)
    assert (earlier.time, earlier.ended) == (record.time - 100.0, record.ended - 100.0)


@pytest.mark.parametrize("text", ["", "[", "[1]", '[{"name": 3}]', "\udc80"])
def test_places_that_cannot_be_read_are_none(text: str) -> None:
    assert clocks_of({PLACES: text}) == []


@pytest.mark.parametrize(
    ("clock", "words"),
    [
        (PlaceClock("a", 0.0, None, None, None), "a: its clock could not be compared"),
        (PlaceClock("a", 0.0, None, None, COUNTS), f"a: {COUNTS}"),
        (PlaceClock("a", 0.0, -0.5, 0.25, "x as at b"), "a: its clock agrees (-0.500 to +0.250 s); by x as at b"),
        (PlaceClock("a", -7.0, None, -7.0, "x as at b"),
         "a: its clock was 7.0 s behind (at most -7.000 s), which is corrected; by x as at b"),
        (PlaceClock("a", 0.02, 0.02, None, "x as at b"),
         "a: its clock was 0.020 s ahead (at least +0.020 s), which is corrected; by x as at b"),
    ],
)  # fmt: skip
def test_words(clock: PlaceClock, words: str) -> None:
    assert str(clock) == words


@pytest.mark.parametrize("time", [1.7e308, float("inf"), -1e300])
def test_times_that_cannot_be_compare_nothing(tmp_path: Path, time: float) -> None:
    paths = apart(tmp_path, 0.0)
    records = [corrected(record, time) for record in sampled()[-4:]]
    odd = recorded(tmp_path / "odd.sqlite", "x" * 10_000, records)
    found = merge.merge([*paths, odd], target := tmp_path / "merged.sqlite")
    assert found.records == len(sampled()) + 4
    with Capture.open(target) as merged:
        names = [clock.name for clock in clocks_of(merged.meta())]
    assert names == [CA, ONE, TWO, "x" * places.LONGEST]


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places, "RUNS", 1)
    monkeypatch.setattr(places, "CONNECTIONS", 1)
    comparison = places.Comparison([ONE, TWO])
    for number, record in enumerate(sampled()):
        comparison.add(number % 2, record)
    assert len(comparison._courses) == 1
    assert [len(known) <= 1 for known in (comparison._asked, comparison._presented, comparison._dates)] == [True] * 3

"""Where the time of requests and runs went: nothing is counted twice, and nothing is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.explain.master_log.measured import NOTHING, MasterTime, MasterTimes
from inspector.explain.time_split import PARTS, SHORT, WORDS, Split, of_run
from inspector.explain.timeline import Work
from inspector.model import Phase
from inspector.summaries.summary import Brief, Times

SECONDS = st.floats(0, 1e5)
MAYBE = st.none() | SECONDS
MASTER = st.builds(MasterTime, MAYBE, MAYBE, MAYBE, st.booleans())


def brief(seq: int, at: float, took: float, times: Times, leg: str = "a") -> Brief:
    return Brief(
        seq=seq, kind="exchange", time=at, ended=at + took, phase=Phase.CATALOG, method="GET", target="/", status=200,
        leg=leg, master=f"{leg}-m", times=times,
    )  # fmt: skip


@st.composite
def briefs(draw: st.DrawFn) -> list[Brief]:
    """Exchanges whose times are as they may be: in any order, missing, at once."""
    found = []
    for seq in range(1, draw(st.integers(1, 6)) + 1):
        times = Times(*(draw(MAYBE) for _ in Times.__struct_fields__))
        found.append(brief(seq, draw(SECONDS), draw(SECONDS), times, draw(st.sampled_from("ab"))))
    return found


@pytest.mark.slow
@given(briefs(), st.dictionaries(st.integers(1, 6), MASTER))
def test_no_part_is_negative_and_a_run_is_the_sum_of_its_time(found: list[Brief], known: dict[int, MasterTime]) -> None:
    time = of_run(found, MasterTimes(known))
    assert set(time.records) == {one.seq for one in found}
    assert all(took >= 0 for split in (time.total, *time.records.values()) for took in split.parts().values())
    # What happens at once is counted once, in the whole run.
    assert time.total.whole <= sum(split.whole for split in time.records.values()) + 1e-3


@given(st.lists(st.tuples(st.floats(0, 10), st.floats(0.001, 10), SECONDS, MASTER), min_size=1, max_size=6))
def test_a_run_has_all_time_from_its_first_byte_to_its_last(
    given: list[tuple[float, float, float, MasterTime]],
) -> None:
    at, found, known = 100.0, [], {}
    for seq, (pause, took, wait, master) in enumerate(given, 1):
        at += pause
        sent = at + took / 3
        times = Times(
            request_began=at, request_ended=sent, response_began=min(at + took, sent + wait), response_ended=at + took
        )
        found.append(brief(seq, at, took, times))
        known[seq] = master
        at += took
    time = of_run(reversed(found), MasterTimes(known))
    assert time.total.whole == pytest.approx(at - found[0].time)
    assert sum(split.whole for split in time.records.values()) == pytest.approx(at - found[0].time)
    assert time.total.silence == pytest.approx(sum(pause for pause, *_ in given[1:]))
    for one in found:
        split = time.records[one.seq]
        assert split.whole - split.silence == pytest.approx(one.duration)


def test_a_queue_is_named() -> None:
    times = Times(10.0, 10.1, 10.2, 10.3, 10.3, 10.35, 10.4, 14.6, 14.6)
    (split,) = of_run([brief(1, 10.2, 4.4, times)], MasterTimes({1: MasterTime(4.2, 2.0, 1.9)})).records.values()
    expected = Split(network=0.15, tls=0.15, queue=2.2, compile=1.9, serve=0.1, silence=0.1)
    assert split.parts() == pytest.approx(expected.parts(), abs=1e-9)
    assert split.largest == "queue"
    assert split.words().startswith("queue (waiting for a JRuby) 2.2 s, compile 1.9 s, ")
    without = of_run([brief(1, 10.2, 4.4, times)], NOTHING).total
    assert without.whole == pytest.approx(split.whole)
    assert without.largest == "waiting"


def test_two_requests_at_once_are_counted_once_in_the_run() -> None:
    found = [brief(1, 10.0, 2.0, Times(request_began=10.0, response_ended=12.0)),
             brief(2, 11.0, 2.0, Times(request_began=11.0, response_ended=13.0))]  # fmt: skip
    time = of_run(found, NOTHING)
    assert [split.whole for split in time.records.values()] == pytest.approx([2.0, 2.0])
    assert time.total.whole == pytest.approx(3.0)


def test_every_activity_counts_as_a_part_that_has_words() -> None:
    assert set(PARTS) == set(Work.__value__.__args__)
    assert set(PARTS.values()) | {"silence"} == set(WORDS) == set(SHORT) == set(Split().parts())


def test_splits_are_added() -> None:
    assert Split(tls=1.0, queue=2.0) + Split(queue=3.0) == Split(tls=1.0, queue=5.0)

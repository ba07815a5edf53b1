"""Which line is about which exchange: clocks that differ, equal requests at once, lines of others."""

from __future__ import annotations

import math
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.clocks import SKEW
from inspector.explain.master_log import matching
from inspector.explain.master_log.matching import MOST, Logged, Matching, Wanted

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from inspector.explain.master_log.matching import Assigned

KEY = ("GET", "/puppet/v3/file_metadatas/plugins", 200)


def matched(
    wanted: Iterable[tuple[object, Wanted[str]]],
    lines: Sequence[Logged[str]],
    expected: float = 0.0,
    *,
    rounded: float = 1.0,
    within: bool = False,
) -> tuple[Assigned[str], float | None]:
    found: Matching[str] = Matching(rounded, within=within)
    for key, one in wanted:
        found.add(key, one)
    found.prepare()
    difference = found.difference(lines, expected, SKEW)
    if difference is not None:
        found.note(lines, difference)
    return found.assigned(), difference


def line(
    ended: float, name: str, took: float, key: object = KEY, ahead: float = 0.0, trace: str | None = None
) -> Logged[str]:
    """As a master whose clock is ahead logs a request: its time is cut to the second."""
    return Logged(key, math.floor(ended + ahead), name, took, trace=trace)


def many(ahead: float) -> tuple[list[tuple[object, Wanted[str]]], list[Logged[str]]]:
    """Different requests, 0.7 s apart, and their lines."""
    wanted: list[tuple[object, Wanted[str]]] = [
        (("GET", f"/{seq}", 200), Wanted(seq, 1000 + seq * 0.7, 1000.5 + seq * 0.7)) for seq in range(20)
    ]
    return wanted, [line(one.ended, str(one.seq), 0.4, key, ahead) for key, one in wanted]


@pytest.mark.parametrize("ahead", [0.0, 0.4, 3.2, -250.0, 299.0])
def test_the_difference_of_the_clocks_is_found(ahead: float) -> None:
    found, difference = matched(*many(ahead))
    assert difference == pytest.approx(ahead, abs=0.5)
    assert found.lines == {seq: str(seq) for seq in range(20)}


def test_a_clock_that_is_hours_off_is_found_if_it_is_expected() -> None:
    found, difference = matched(*many(7200.3), expected=7200.0)
    assert difference == pytest.approx(7200.3, abs=0.5)
    assert len(found.lines) == 20
    assert matched(*many(7200.3)) == (matching.Assigned({}, 0, 0, 0), None)


def test_lines_that_are_not_about_these_requests_do_not_move_the_clock() -> None:
    wanted, lines = many(3.0)
    # Somebody else asked for a fourth of them at other times.
    others = [line(one.ended, "other", 0.4, key, 40.0 + one.seq) for key, one in wanted[::4]]
    found, difference = matched(wanted, [*lines, *others])
    assert difference == pytest.approx(3.0, abs=0.5)
    assert found.lines == {seq: str(seq) for seq in range(20)}


def test_exchanges_without_a_line_do_not_vote_for_lines_of_others() -> None:
    # The log is of the first half; later the same is asked for again.
    early, lines = many(0.0)
    late = [(key, Wanted[str](100 + one.seq, one.began + 90, one.ended + 90)) for key, one in early]
    found, difference = matched([*early, *late], lines)
    assert difference == pytest.approx(0.0, abs=0.5)
    assert set(found.lines) == set(range(20))


def test_of_equal_requests_at_once_a_line_belongs_to_one_that_took_as_long() -> None:
    wanted: list[tuple[object, Wanted[str]]] = [(KEY, Wanted(1, 10.0, 10.1)), (KEY, Wanted(2, 8.0, 10.1))]
    found, _ = matched(wanted, [line(10.1, "long", 2.0), line(10.1, "short", 0.09)])
    assert found.lines == {1: "short", 2: "long"}
    assert found.by_duration == 0  # the long one fits one exchange only


def test_equal_requests_at_once_with_as_many_lines_are_paired_by_their_durations() -> None:
    wanted: list[tuple[object, Wanted[str]]] = [(KEY, Wanted(1, 10.0, 10.1)), (KEY, Wanted(2, 10.0, 10.13))]
    found, _ = matched(wanted, [line(10.1, "long", 0.12), line(10.1, "short", 0.09)])
    assert found.lines == {1: "short", 2: "long"}
    assert found.by_duration == 2


def test_equal_durations_do_not_bring_together_what_ended_at_different_times() -> None:
    # The line of the last one, of 11 s, does not fit the second one, which took as long and ended at 10.4.
    took = {101: (10.2, 0.31, 0.3), 102: (10.4, 0.4, 0.38), 103: (11.2, 0.5, 0.5), 104: (11.8, 0.4, 0.39)}
    wanted: list[tuple[object, Wanted[str]]] = [
        (KEY, Wanted(seq, end - measured, end)) for seq, (end, measured, _) in took.items()
    ]
    lines = [line(end, str(seq), logged) for seq, (end, _, logged) in took.items()]
    others, more = many(0)
    found, _ = matched([*wanted, *others], [*lines, *more])
    assert {seq: found.lines.get(seq) for seq in took} == {seq: str(seq) for seq in took}


@pytest.mark.parametrize("number", [1, 3])
def test_equal_requests_with_more_or_fewer_lines_are_not_matched(number: int) -> None:
    wanted: list[tuple[object, Wanted[str]]] = [(KEY, Wanted(1, 10.0, 10.1)), (KEY, Wanted(2, 10.0, 10.13))]
    found, _ = matched(wanted, [line(10.1, str(at), 0.05) for at in range(number)])
    assert found == matching.Assigned({}, 0, 0, 2)


def test_what_is_sure_leaves_less_to_choose_from() -> None:
    # The first exchange fits the first line only, so the second one's is the second.
    ends = {101: 10.1, 102: 11.05, 103: 12.1}
    wanted: list[tuple[object, Wanted[str]]] = [(KEY, Wanted(seq, end - 0.1, end)) for seq, end in ends.items()]
    others, lines = many(0)
    found, _ = matched([*wanted, *others], [*lines, *(line(end, f"of {seq}", 0.04) for seq, end in ends.items())])
    assert {seq: found.lines[seq] for seq in ends} == {seq: f"of {seq}" for seq in ends}
    assert found.by_duration == found.ambiguous == 0


def test_a_request_of_the_same_size_is_preferred() -> None:
    wanted: list[tuple[object, Wanted[str]]] = [(KEY, Wanted(1, 10.0, 10.1, sent=7))]
    lines = [Logged(KEY, 10.0, name, 0.05, sent) for name, sent in [("other", 8), ("same", 7)]]
    assert matched(wanted, lines)[0].lines == {1: "same"}


def test_a_line_that_took_longer_than_the_exchange_is_not_its() -> None:
    found, _ = matched([(KEY, Wanted(1, 10.0, 10.1))], [line(10.1, "other", 1.0)])
    assert found.lines == {}


def test_a_traceparent_is_exact() -> None:
    wanted: list[tuple[object, Wanted[str]]] = [
        (KEY, Wanted(seq, 10.0, 10.1, trace=f"t{seq}")) for seq in range(4)
    ]  # fmt: skip
    lines = [line(10.1, f"t{seq}", 0.05, trace=f"t{seq}") for seq in (3, 1, 0, 2)]
    found, _ = matched(wanted, lines)
    assert found == matching.Assigned({seq: f"t{seq}" for seq in range(4)}, 4, 0, 0)


def test_a_traceparent_that_occurs_twice_proves_nothing() -> None:
    wanted: list[tuple[object, Wanted[str]]] = [(KEY, Wanted(1, 10.0, 10.1, trace="t"))]
    found, _ = matched(wanted, [line(10.1, "a", 0.05, trace="t"), line(10.1, "b", 0.05, trace="t")])
    assert found == matching.Assigned({}, 0, 0, 1)


def test_lines_within_an_exchange() -> None:
    wanted: list[tuple[object, Wanted[str]]] = [("n", Wanted(1, 10.0, 14.0)), ("n", Wanted(2, 20.0, 24.0))]
    lines = [Logged("n", time, name, 2.0) for time, name in [(12.5, "first"), (22.1, "second"), (17.0, "between")]]
    found, _ = matched(wanted, lines, rounded=0.001, within=True)
    assert found.lines == {1: "first", 2: "second"}


def test_a_crowd_of_lines_is_not_stored() -> None:
    wanted = Wanted[str](1, 10.0, 10.1)
    found, _ = matched([(KEY, wanted)], [line(10.1, str(at), 0.05) for at in range(10 * MOST)])
    assert (found.lines, found.ambiguous, len(wanted.fits)) == ({}, 1, MOST)


@pytest.mark.parametrize("within", [False, True])
def test_equal_requests_by_the_thousand_are_not_gone_through_for_each_line(
    monkeypatch: pytest.MonkeyPatch, within: bool
) -> None:
    looked = Counter[str]()
    fits = Matching._fits

    def counted(found: Matching[str], one: Logged[str], time: float, wanted: Wanted[str]) -> bool:
        looked["fits"] += 1
        return fits(found, one, time, wanted)

    monkeypatch.setattr(Matching, "_fits", counted)
    counts = []
    for number in (500, 1000):
        looked.clear()
        wanted: list[tuple[object, Wanted[str]]] = [(KEY, Wanted(seq, 10.0, 10.1 + seq / 1e4)) for seq in range(number)]
        # One that hangs is about another node, and widens nobody else's window.
        wanted.append(("hangs", Wanted(number, 0.0, 3600.0)))
        matched(wanted, [line(10.1 + at / 1e4, str(at), 0.05) for at in range(number)], within=within)
        counts.append(looked["fits"])
    assert counts[1] <= 2.2 * counts[0]


@pytest.mark.slow
@given(
    st.lists(st.tuples(st.floats(0, 5), st.floats(0, 3)), min_size=1, max_size=12),
    st.lists(st.tuples(st.floats(0, 9), st.floats(0, 3)), max_size=12),
)
def test_no_line_is_given_away_twice_and_each_fits(
    exchanges: list[tuple[float, float]], logged: list[tuple[float, float]]
) -> None:
    wanted = {seq: Wanted[str](seq, began, began + took) for seq, (began, took) in enumerate(exchanges)}
    lines = {str(at): line(ended, str(at), took) for at, (ended, took) in enumerate(logged)}
    found, difference = matched([(KEY, one) for one in wanted.values()], list(lines.values()))
    assert len(set(found.lines.values())) == len(found.lines)
    assert found.by_duration + found.ambiguous <= len(wanted)
    for seq, name in found.lines.items():
        assert difference is not None
        assert (lines[name].took or 0) <= wanted[seq].ended - wanted[seq].began + matching.LONGER
        assert abs(lines[name].time + 0.5 - difference - wanted[seq].ended) <= 0.5 + matching.SLACK + 1e-6

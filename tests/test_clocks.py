"""How far the clocks are apart: every observation bounds it, together they narrow it."""

from __future__ import annotations

import math

import pytest

from inspector import clocks
from inspector.clocks import Offset

NOON = 1_791_979_200.0  # 2026-10-14 12:00:00 UTC


def test_times_as_agents_write_them(subtests: pytest.Subtests) -> None:
    for text, expected in [
        ("2026-10-14T12:00:00.250000000+00:00", NOON + 0.25),
        ("2026-10-14T14:00:00.250000000+02:00", NOON + 0.25),
        ("2026-10-14 12:00:00.250000000 +00:00", NOON + 0.25),
        ("2026-10-14 14:00:00 +0200", NOON),
        ("2026-10-14 12:00:00 UTC", NOON),
        ("2026-10-14T12:00:00Z", NOON),
        ("2026-99-14T12:00:00Z", None),
        ("noon", None),
        ("", None),
        (None, None),
    ]:
        with subtests.test(text=text):
            assert clocks.moment(text) == expected


def test_a_date_header_knows_whole_seconds() -> None:
    offset = clocks.of_date_header("Wed, 14 Oct 2026 12:00:00 GMT", NOON - 10.0, NOON - 9.8)
    assert offset is not None
    assert (offset.low, offset.high) == pytest.approx((9.8, 11.0))


@pytest.mark.parametrize("date", [None, "", "yesterday", "Wed, 14 Oct 999999 12:00:00 GMT"])
def test_a_date_header_that_says_nothing(date: str | None) -> None:
    assert clocks.of_date_header(date, NOON, NOON + 1) is None


def test_facts_without_a_fraction_are_cut_off() -> None:
    exact = clocks.of_timestamp("2026-10-14T12:00:00.5+00:00", NOON, NOON + 1)
    cut = clocks.of_timestamp("2026-10-14 12:00:00 +00:00", NOON, NOON + 1)
    assert exact == Offset(-0.5, 0.5)
    assert cut == Offset(-1.0, 1.0)


def test_observations_narrow_each_other() -> None:
    known = clocks.combined(Offset(-1.0, 2.0), Offset(0.5, 3.0))
    assert known == Offset(0.5, 2.0)
    assert (known.seconds, known.uncertainty, known.known) == (1.25, 0.75, True)


def test_a_clock_that_was_set_starts_anew() -> None:
    assert clocks.combined(Offset(-1.0, 1.0), Offset(59.0, 61.0)) == Offset(59.0, 61.0)


def test_what_is_bounded_on_one_side_is_not_known() -> None:
    bound = clocks.at_least(NOON, NOON - 5)
    assert bound == Offset(5.0, math.inf)
    assert not bound.known
    assert clocks.combined(bound, Offset(0.0, 10.0)) == Offset(5.0, 10.0)


def test_nothing_observed_nothing_known() -> None:
    assert clocks.combined(None, None) is None
    assert clocks.at_least(None, NOON) is None
    assert clocks.of_timestamp("2026-10-14T12:00:00Z", NOON, NOON - 1) is None


def test_nanoseconds_fit_into_what_other_tools_count_with(subtests: pytest.Subtests) -> None:
    for time, expected in [
        (NOON + 0.000001, 1_791_979_200_000_001_000),
        (None, 0),
        (math.nan, 0),
        (-math.inf, 0),
        (-5.0, 0),
        (math.inf, 9_000_000_000 * 10**9),
        (1e300, 9_000_000_000 * 10**9),
    ]:
        with subtests.test(time=time):
            assert clocks.nanoseconds(time) == expected < 2**63

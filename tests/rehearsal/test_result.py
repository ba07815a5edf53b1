"""Times of a rehearsal."""

from __future__ import annotations

from inspector.rehearsal.result import Result, Time


def test_percentiles_and_the_slowest() -> None:
    result = Result(times=[Time(f"n{number}", 1.0, float(number)) for number in range(1, 101)])
    assert [result.ratio(percentile) for percentile in (50, 90, 99)] == [51.0, 91.0, 100.0]
    assert [time.node for time in result.slowest][:2] == ["n100", "n99"]
    assert len(result.slowest) == 10


def test_without_times() -> None:
    assert Result().ratio(50) is None
    assert Time("n", 0.0, 1.0).ratio == 1.0


def test_each_node_is_kept_if_it_is_wanted() -> None:
    result = Result(each={})
    result.fail("a", "no key")
    assert result.each == {"a": "no key"}
    assert result.groups.failed[0].nodes == ("a",)
    Result().fail("a", "no key")

"""Values as tables hold them."""

from __future__ import annotations

import math

import pytest

from inspector.fleet.values import LONGEST, masked, message, micros, short

TOKEN = "ghp_" + "a1" * 18


@pytest.mark.parametrize(
    ("time", "expected"),
    [
        (1.5, 1_500_000),
        (0.0, 0),
        (-3.0, 0),
        (math.nan, 0),
        (math.inf, 253_402_300_799_000_000),
        (1e300, 253_402_300_799_000_000),
    ],
)
def test_a_time_is_within_the_years_that_a_table_can_hold(time: float, expected: int) -> None:
    assert micros(time) == expected


def test_long_texts_are_shortened() -> None:
    assert short(None) is None
    assert short("a" * LONGEST) == "a" * LONGEST
    assert short("a" * (LONGEST + 1)) == "a" * (LONGEST - 1) + "…"
    assert len(message("a" * 5000)) == 2000


@pytest.mark.parametrize("around", ["{}", "x" * 300 + " {}"])
def test_secrets_are_masked_whether_or_not_a_text_is_cached(around: str) -> None:
    assert TOKEN not in masked(around.format(TOKEN))
    assert masked("plain") == "plain"

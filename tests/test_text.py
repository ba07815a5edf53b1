"""How values are written: moments, plurals, and how long ones are shortened."""

from __future__ import annotations

import pytest

from inspector import text


@pytest.mark.parametrize("width", [10, 11])
def test_what_is_shortened_has_the_width_asked_for(width: int) -> None:
    long = "0123456789abcdef"
    assert text.beginning(long, width) == long[: width - 1] + "…"
    assert text.ends(long, width) == long[:4] + "…" + long[5 - width :]
    assert text.ends(long, width, 2) == "01…" + long[3 - width :]
    for shortened in (text.beginning(long, width), text.ends(long, width), text.ends(long, width, 2)):
        assert len(shortened) == width


def test_what_fits_is_not_shortened() -> None:
    assert text.beginning("0123", 4) == text.ends("0123", 4) == text.excerpt("0123", 4) == "0123"


def test_an_excerpt_says_how_long_the_text_is() -> None:
    assert text.excerpt("x" * 1234, 3) == "xxx… (1,234 characters)"


def test_moments_in_utc_are_cut_not_rounded() -> None:
    time = 1_795_788_359.9996
    assert text.utc(time) == "2026-11-27T14:05:59.999Z"
    assert text.utc_second(time) == "2026-11-27 14:05:59"
    assert text.utc_minute(time) == "2026-11-27 14:05"
    assert text.utc_day(time) == "2026-11-27"
    assert text.utc_in_name(time) == "20261127T140559Z"


def test_one_is_no_plural() -> None:
    assert [text.plural(number, "node") for number in (0, 1, 1000)] == ["0 nodes", "1 node", "1,000 nodes"]
    assert [text.plural(number, "file was", "files were") for number in (1, 2)] == ["1 file was", "2 files were"]

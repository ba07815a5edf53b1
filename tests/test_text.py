"""How long values are shortened."""

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

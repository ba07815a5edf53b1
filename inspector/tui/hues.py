"""Replacements for the colours of ``pages.styles`` where they are not readable: on a light theme, and without colour.

One filter over everything that is drawn: no view depends on the theme.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.filter import LineFilter

from inspector.pages import styles

if TYPE_CHECKING:
    from collections.abc import Mapping

    from textual.color import Color as Background

LIGHT = {
    style.rpartition(" ")[2]: darker
    for style, darker in (
        (styles.BAD, "#b00020"),
        (styles.DOUBT, "#7a5200"),
        (styles.GOOD, "#116329"),
        (styles.NOTE, "#0b4f9e"),
        (styles.VIOLET, "#7b2fb5"),
        (styles.CYAN, "#0b5f7d"),
        (styles.BLUE, "#2b4fb5"),
        (styles.YELLOW, "#7a4a00"),
        (styles.GREEN, "#3a5f00"),
        (styles.ORANGE, "#9c3009"),
        (styles.GREY, "#565656"),
        (styles.SLATE, "#465468"),
    )
}
"""Replacements of the bright colours on a light background."""
BARE = dict.fromkeys(LIGHT, "#ffffff")
BARE_LIGHT = dict.fromkeys(LIGHT, "#000000")
"""Without colour all of them would be a medium grey.

Maximum contrast is better, because letters and words carry the same information.
"""


class Hues(LineFilter):
    """A filter that replaces some colours of text."""

    def __init__(self, hues: Mapping[str, str]) -> None:
        super().__init__()
        self._hues = dict(hues)
        self._turned = lru_cache(1024)(self._turn)

    def apply(self, segments: list[Segment], background: Background) -> list[Segment]:
        """Replace the colours in a line."""
        return [
            Segment(text, self._turned(style), control) if style is not None else Segment(text, style, control)
            for text, style, control in segments
        ]

    def _turn(self, style: Style) -> Style:
        colour = style.color
        if colour is None or colour.triplet is None or style.bgcolor is None:
            return style
        other = self._hues.get(colour.triplet.hex)
        return style + Style.from_color(Color.parse(other)) if other else style


_FILTERS = {
    (True, False): Hues(BARE),
    (False, False): Hues(BARE_LIGHT),
    (False, True): Hues(LIGHT),
}


def of(*, dark: bool, colour: bool) -> Hues | None:
    """The filter for a theme; None if no colours have to be replaced."""
    return _FILTERS.get((dark, colour))

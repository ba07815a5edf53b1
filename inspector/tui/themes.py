"""The themes of the terminal inspector, and what makes the colours of ``pages.styles`` readable in each of them.

One filter over everything that is drawn replaces colours, on a light theme and without colour: no view depends on the
theme.
"""

from __future__ import annotations

import os
from functools import lru_cache
from typing import TYPE_CHECKING

from rich.color import Color
from rich.segment import Segment
from rich.style import Style
from textual.app import App
from textual.filter import LineFilter
from textual.theme import Theme

from inspector.pages import styles
from inspector.tui import user_state

if TYPE_CHECKING:
    from collections.abc import Mapping

    from textual.color import Color as Background
    from textual.driver import Driver

DARKER = {
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
BARE = dict.fromkeys(DARKER, "#ffffff")
BARE_LIGHT = dict.fromkeys(DARKER, "#000000")
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
    (False, True): Hues(DARKER),
}


def colour_filter(*, dark: bool, colour: bool) -> Hues | None:
    """Return the filter for a theme; None if no colours have to be replaced."""
    return _FILTERS.get((dark, colour))


def _hue(style: str, *, dark: bool) -> str:
    hue = style.rpartition(" ")[2]
    return hue if dark else DARKER[hue]


def _theme(name: str, *, dark: bool, ground: str, raised: str, text: str, quiet: str, mark: str, cursor: str) -> Theme:
    """A theme of few colours: what is bright on the screen is data.

    ``quiet`` is for borders, ``mark`` for what has the focus and for keys, ``cursor`` for the selected line.
    """
    bad, doubt, good = (_hue(style, dark=dark) for style in (styles.BAD, styles.DOUBT, styles.GOOD))
    variables: Mapping[str, str] = {
        "border": mark,
        "border-blurred": quiet,
        "block-cursor-background": cursor,
        "block-cursor-foreground": text,
        "block-cursor-blurred-background": raised,
        "block-cursor-blurred-foreground": text,
        "scrollbar": quiet,
        "scrollbar-hover": mark,
        "scrollbar-active": mark,
        "scrollbar-background": ground,
        "scrollbar-background-hover": ground,
        "scrollbar-background-active": ground,
        "scrollbar-corner-color": ground,
        "text-accent": mark,
    }
    return Theme(
        name,
        primary=mark,
        accent=mark,
        error=bad,
        warning=doubt,
        success=good,
        foreground=text,
        background=ground,
        surface=ground,
        panel=raised,
        boost=raised,
        dark=dark,
        variables=dict(variables),
    )


DARK = _theme(
    "dark", dark=True, ground="#14171c", raised="#1d222a", text="#d8dde4", quiet="#3c4653", mark="#6cb6ff",
    cursor="#1f3044",
)  # fmt: skip
LIGHT = _theme(
    "light", dark=False, ground="#fcfbf8", raised="#f1eee7", text="#1b1f24", quiet="#b9b4a8", mark="#0a58b0",
    cursor="#d6e6f8",
)  # fmt: skip
CONTRAST = _theme(
    "contrast", dark=True, ground="#000000", raised="#000000", text="#ffffff", quiet="#a0a0a0", mark="#ffe14d",
    cursor="#002e5c",
)  # fmt: skip
THEMES = {theme.name: theme for theme in (DARK, LIGHT, CONTRAST)}
_FILE = "theme"


def remembered() -> Theme:
    """The theme that was chosen last; by default the dark one."""
    return THEMES.get(user_state.read(_FILE).decode(errors="replace").strip(), DARK)


def remember(name: str) -> None:
    """Use this theme from now on."""
    user_state.write(_FILE, f"{name}{os.linesep}")


class ThemedApp[T](App[T]):
    """An application in the theme that its user chose last."""

    def __init__(self, *, driver: type[Driver] | None = None, theme: str | None = None) -> None:
        super().__init__(driver_class=driver)
        for one in THEMES.values():
            self.register_theme(one)
        self.theme = theme or remembered().name

    def action_theme(self) -> None:
        """Switch to the next theme, and remember it."""
        names = list(THEMES)
        self.theme = names[(names.index(self.theme) + 1) % len(names)]
        remember(self.theme)

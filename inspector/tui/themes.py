"""The themes of the terminal inspector, and the one that the user chose last."""

from __future__ import annotations

import contextlib
import os
from typing import TYPE_CHECKING

from textual.theme import Theme

from inspector import inputs
from inspector.pages import styles
from inspector.tui import hues, user_state

if TYPE_CHECKING:
    from collections.abc import Mapping


def _hue(style: str, *, dark: bool) -> str:
    hue = style.rpartition(" ")[2]
    return hue if dark else hues.LIGHT[hue]


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
    """The theme that was chosen last; by default the dark one. Never raises."""
    with contextlib.suppress(OSError, ValueError):
        name = inputs.read(user_state.folder() / _FILE, inputs.SMALL, links=False).decode().strip()
        return THEMES.get(name, DARK)
    return DARK


def remember(name: str) -> None:
    """Use this theme from now on. Never raises: a home that cannot be written to must not end the inspector."""
    user_state.write(_FILE, f"{name}{os.linesep}")

"""The themes: each colour can be read in each, and the one chosen last is used again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inspector.cli.main import main
from inspector.pages import styles
from inspector.tui import themes
from tests.tui.screens import play, sample, screen_text

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot
    from textual.theme import Theme

    from inspector.tui.app import Inspector


def contrast(one: str, other: str) -> float:
    """As WCAG defines it."""

    def light(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    brighter, darker = sorted((light(one), light(other)), reverse=True)
    return (brighter + 0.05) / (darker + 0.05)


def used() -> set[str]:
    """The colours of words and of what is drawn."""
    named = [getattr(styles, name) for name in dir(styles) if name.isupper()]
    return {style.rpartition(" ")[2] for style in named}


@pytest.mark.parametrize("theme", themes.THEMES.values(), ids=str)
def test_each_colour_can_be_read_in_each_theme(theme: Theme) -> None:
    assert used() == set(themes.DARKER)
    grounds = {theme.background, theme.panel, theme.variables["block-cursor-background"]}
    shown = used() if theme.dark else {*themes.DARKER.values()}
    assert theme.foreground
    for colour in (*shown, theme.primary, theme.foreground):
        assert min(contrast(colour, ground) for ground in grounds if ground) > 4.5
    bare = themes.BARE if theme.dark else themes.BARE_LIGHT
    assert min(contrast(colour, ground) for colour in bare.values() for ground in grounds if ground) > 7


@pytest.mark.slow
def test_the_theme_is_the_one_chosen_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    chosen: list[str] = []

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        chosen.append(app.theme)
        await pilot.press("T")
        chosen.append(app.theme)
        assert f"theme: {app.theme}" in screen_text(app)

    for _ in range(4):
        play(sample("first-run", tmp_path), act)
    assert chosen == ["dark", "light", "light", "contrast", "contrast", "dark", "dark", "light"]
    (tmp_path / "state" / "puppet-inspector" / "theme").write_bytes(b"\xff\x1b[31m")
    assert themes.remembered() is themes.DARK


def test_a_theme_that_there_is_not_is_refused_with_those_that_there_are(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["open", "--theme", "solarized"]) == 2
    message = capsys.readouterr().err
    assert all(name in message for name in themes.THEMES)

"""What all views share: the keys at the bottom, colours that can be read in every theme, a finding in full."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from rich.segment import Segment
from rich.style import Style
from textual.color import Color

from inspector.model import Finding, Phase, Severity
from inspector.pages import palette
from inspector.rules.fixes import advice
from inspector.summaries.summary import Conclusion, RunBrief
from inspector.tui import hues, panes
from inspector.tui.help import Help
from inspector.tui.keys import Keys
from inspector.tui.rows import Rows
from inspector.tui.run import RunView
from tests.tui.screens import SIZES, play, sample, screen_text

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot

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
    """The hues of words."""
    return {style.rpartition(" ")[2] for style in [*palette.SEVERITIES.values(), *palette.OUTCOMES.values()]}


def test_each_hue_of_the_palette_can_be_read_in_each_theme() -> None:
    assert used() == set(hues.LIGHT)
    assert min(contrast(hue, "#1e1e1e") for hue in used()) > 4.5
    assert min(contrast(hue, "#d8d8d8") for hue in hues.LIGHT.values()) > 4.5
    assert min(contrast(hue, "#e0e0e0") for hue in hues.BARE_LIGHT.values()) > 7


def test_only_the_hues_of_words_are_turned() -> None:
    dark, light = hues.of(dark=True, colour=True), hues.of(dark=False, colour=True)
    assert dark is None
    assert light is not None
    segments = [
        Segment("error", Style.parse("bold #ff5370 on #d8d8d8")),
        Segment("plain", Style.parse("#123456 on #d8d8d8")),
        Segment("P", Style.parse(palette.PHASES[Phase.PLUGINS][1])),
        Segment("none", None),
    ]
    turned = light.apply(segments, Color.parse("#d8d8d8"))
    assert [segment.text for segment in turned] == ["error", "plain", "P", "none"]
    assert turned[0].style == Style.parse("bold #b00020 on #d8d8d8")
    assert [segment.style for segment in turned[1:]] == [segment.style for segment in segments[1:]]


@pytest.mark.parametrize("size", SIZES)
def test_the_keys_that_fit_are_whole_and_the_page_of_all_is_first(tmp_path: Path, size: tuple[int, int]) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        for keys in ((), ("enter",)):
            await pilot.press(*keys)
            await pilot.pause()
            line = screen_text(app).splitlines()[-1]
            assert "? Help" in line
            output = [
                binding.binding.description for binding in app.screen.active_bindings.values() if binding.binding.show
            ]
            words = line.split("  ")
            assert all(any(word.endswith(description) for description in output) for word in words if word.strip())
            assert len(line) <= size[0]

    play(sample("first-run", tmp_path), act, size)


def test_a_key_at_the_bottom_can_be_clicked(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.click(Keys, offset=(2, 0))
        await pilot.pause()
        assert isinstance(app.screen, Help)

    play(sample("first-run", tmp_path), act)


def concluded(message: str, fix: str) -> Conclusion:
    return Conclusion(message=message, steps=(advice(fix),), certainty="certain", since=1.0)


def test_a_verdict_keeps_what_and_where_and_whole_commands() -> None:
    when = "since 2026-11-21 12:10:55 UTC"
    message = f"a.example failed: S01 no catalog: {'evaluation ' * 30}(file: /x/site.pp, line: 2), {when}"
    fix = f"Correct it: `puppet agent -t --noop`, {'then ' * 40}`puppet agent -t --verbose --debug`."
    run = RunBrief(number=1, verdict=concluded(message, fix))
    for width in (80, 100, 200):
        shown = panes.verdict_text(run, width).plain
        first, _, second = shown.partition("\nfix: ")
        assert first.startswith("a.example failed: S01 no catalog")
        assert first.endswith("line: 2)")
        assert second.count("`") % 2 == 0
        assert len(first) <= (width - 4) * panes.lines(width)
    whole = RunBrief(number=1, verdict=concluded("short, since 2026-11-21 12:10:55 UTC", "`do it`"))
    assert panes.verdict_text(whole, 80).plain == "short, since 2026-11-21 12:10:55 UTC\nfix: `do it`."


def test_what_is_shown_of_a_run_that_went_well() -> None:
    run = RunBrief(number=1, outcome="complete")
    assert panes.verdict_text(run, 100).plain == "complete, no deviations"
    findings = (Finding("B01", Severity.WARNING, "x"), Finding("R21", Severity.NOTICE, "y"),
                Finding("B45", Severity.NOTICE, "z"))  # fmt: skip
    run = RunBrief(number=1, outcome="complete", findings=findings)
    assert panes.verdict_text(run, 100).plain == "complete; 1 warning, 2 notices"


@pytest.mark.parametrize("size", SIZES)
def test_the_finding_under_the_cursor_is_shown_in_full(tmp_path: Path, size: tuple[int, int]) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press("enter")
        await pilot.pause()
        assert isinstance(app.screen, RunView)
        await pilot.press("tab", "tab")
        await app.workers.wait_for_complete()
        await pilot.pause()
        text = screen_text(app)
        assert "why:" in text
        assert "fix:" in text
        assert "S01" in text.split("why:")[0]
        await pilot.press("y")
        assert "puppetserver" in app.clipboard or "puppet" in app.clipboard

    play(sample("compile-error", tmp_path), act, size)


def test_on_the_cursors_line_words_have_its_own_colour_and_phases_keep_theirs(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        rows = app.screen.query_one("#runs", Rows)
        line = rows.render_line(rows.at + 1)
        cursor = {segment.text.strip(): segment.style for segment in line if segment.style}
        title = rows.get_component_rich_style("rows--cursor")
        assert cursor["failed"].color == title.color
        assert any(style.bgcolor != title.bgcolor for text, style in cursor.items() if text.startswith("P"))

    play(sample("compile-error", tmp_path), act)

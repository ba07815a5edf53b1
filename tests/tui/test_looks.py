"""What all views share: the keys at the bottom, colours that can be read in every theme, a finding in full."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from rich.segment import Segment
from rich.style import Style
from textual.color import Color

from inspector.pages import styles
from inspector.tui import panes, themes, view
from inspector.tui.exchange_pane import ExchangePane
from inspector.tui.keys import Help, Keys
from inspector.tui.rows import Rows
from inspector.tui.run import RunView
from tests.tui.screens import SIZES, look, screen_text, settled, shared_sample

if TYPE_CHECKING:
    from textual.pilot import Pilot

    from inspector.tui.app import Inspector


def test_only_our_own_colours_are_turned() -> None:
    dark, light = themes.colour_filter(dark=True, colour=True), themes.colour_filter(dark=False, colour=True)
    assert dark is None
    assert light is not None
    segments = [
        Segment("error", Style.parse(f"{styles.BAD} on #d8d8d8")),
        Segment("plain", Style.parse("#123456 on #d8d8d8")),
        Segment("none", None),
    ]
    turned = light.apply(segments, Color.parse("#d8d8d8"))
    assert [segment.text for segment in turned] == ["error", "plain", "none"]
    assert turned[0].style == Style.parse("bold #b00020 on #d8d8d8")
    assert [segment.style for segment in turned[1:]] == [segment.style for segment in segments[1:]]


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_each_pane_has_a_name_and_the_one_with_the_focus_is_marked(size: tuple[int, int]) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press("enter")
        await app.workers.wait_for_complete()
        await pilot.pause()
        text = screen_text(app)
        named = ["Exchanges", "Record 4", "Findings"] if size[0] >= panes.NARROW else ["Exchanges", "Exchange"]
        assert all(name in text for name in named)
        for _ in range(3):
            await pilot.press("tab")
            await pilot.pause()
            marked = [pane for pane in app.screen.query(panes.Pane) if pane.has_pseudo_class("focus-within")]
            assert [pane.id for pane in marked] == [app.screen.current] if isinstance(app.screen, RunView) else False

    look(shared_sample("compile-error"), act, size)


@pytest.mark.slow
def test_a_key_that_does_nothing_says_why() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        for keys, message in (
            ("n", "Nothing was searched for yet: / searches."),
            ("!", "This key does nothing here; ? lists the keys."),
            ("enter,x", "Show secret: Tab leads to its pane."),
            ("tab,x", "Show secret: not possible here."),
            ("w,ctrl+down", "This is the last run."),
        ):
            for key in keys.split(","):
                await pilot.press(key)
                await settled(pilot, app)
            assert message in screen_text(app)

    look(shared_sample("compile-error"), act)


@pytest.mark.slow
def test_digits_show_the_tabs_of_a_record_wherever_the_focus_is() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press("enter")
        await app.workers.wait_for_complete()
        assert isinstance(app.screen, RunView)
        for digit, name in (("2", "Request"), ("5", "Timing")):
            await pilot.press(digit)
            await app.workers.wait_for_complete()
            assert app.screen.query_one(ExchangePane).tab == name
            assert app.screen.timed.has_focus

    look(shared_sample("compile-error"), act)


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_the_keys_that_fit_are_whole_and_the_page_of_all_is_first(size: tuple[int, int]) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        for keys in ((), ("enter",)):
            await pilot.press(*keys)
            await pilot.pause()
            line = screen_text(app).splitlines()[-1]
            assert line.endswith("q Quit  ? All keys")
            assert line.startswith(" Enter Open  ")
            assert line.count(" Play") == 0  # the line above names it
            always, output = (
                [key.binding.description for key in app.screen.active_bindings.values() if key.binding.show or hidden]
                for hidden in (False, True)
            )
            words = line.removesuffix("? All keys").split("  ")
            assert len(words) == len(set(words))
            assert all(any(word.endswith(description) for description in output) for word in words if word.strip())
            assert len(line) <= size[0]
            # What is not always there comes after what is, where there is room.
            assert all(each in line for each in always) is (size[0] == 200)

    look(shared_sample("first-run"), act, size)


@pytest.mark.slow
def test_the_finding_under_the_cursor_is_shown_in_full() -> None:
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

    look(shared_sample("compile-error"), act)


def test_on_the_cursors_line_words_keep_their_colour_and_a_key_at_the_bottom_can_be_clicked() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        rows = app.screen.query_one("#runs", Rows)
        line = rows.render_line(rows.at + 1)
        cursor = {segment.text.strip(): segment.style for segment in line if segment.style}
        assert cursor["failed"].color == Style.parse(styles.BAD).color
        assert cursor["failed"].bgcolor == rows.get_component_rich_style("rows--cursor").bgcolor
        await pilot.click(Keys, offset=(screen_text(app).splitlines()[-1].index("? All"), 0))
        await pilot.pause()
        assert isinstance(app.screen, Help)

    look(shared_sample("compile-error"), act)


def test_each_key_is_one_line_of_the_page_of_keys_on_a_narrow_terminal() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press("question_mark")
        await pilot.pause()
        assert isinstance(app.screen, Help)
        for line in screen_text(app).split("Lists, trees and texts")[1].splitlines()[1:12]:
            beside = line[40:].strip(" │▁▂▃▄▅▆▇█")
            assert beside == "" or "  " in beside, "a key, and what it does"

    look(shared_sample("compile-error"), act, size=(80, 24))


@pytest.mark.slow
def test_a_message_goes_away_with_the_next_key_or_after_some_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press("Z")
        await pilot.pause()
        assert "This key does nothing here" in screen_text(app)
        await pilot.press("Z")
        await pilot.pause()
        assert "This key does nothing here" in screen_text(app), "and once more with this one"
        await pilot.press("down")
        await pilot.pause()
        assert "This key does nothing here" not in screen_text(app)
        monkeypatch.setattr(view, "NOTICE", 0.01)
        await pilot.press("Z")
        for _ in range(1000):
            await pilot.pause(0.01)
            if "This key does nothing here" not in screen_text(app):
                break
        assert "This key does nothing here" not in screen_text(app)

    look(shared_sample("out-of-sync"), act, SIZES[0])


@pytest.mark.slow
def test_a_message_about_what_is_shown_stays() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        app.show_message("could not be read", stays=True)
        await pilot.press("down", "Z", "up")
        app.show_message("could not be read", stays=True)
        await pilot.press("down", "up")
        await pilot.pause()
        assert "could not be read" in screen_text(app)
        app.show_message("")

    look(shared_sample("out-of-sync"), act, SIZES[0])

"""Bodies and files on the screen: in colours, on every theme, without colour, and of any size."""

from __future__ import annotations

import asyncio
from functools import cache
from typing import TYPE_CHECKING

import pytest
from rich.color import Color
from textual.app import App, ComposeResult

from inspector.pages import languages, styles
from inspector.pages.content import Content
from inspector.pages.highlight import Colours
from inspector.privacy.secrets import MASK
from inspector.runs.examples import bucket, catalog, content, report, talk
from inspector.tui import themes
from inspector.tui.bytes import Bytes
from inspector.tui.doc_widgets import Leaves
from inspector.tui.exchange import ExchangeView
from tests.tui.screens import look, play, screen_text, settled, shared_folder, written

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from pathlib import Path

    from textual.pilot import Pilot
    from textual.widget import Widget

    from inspector.tui.app import Inspector

SECRET = {"type": "File", "title": "/a", "parameters": {"content": "hunter2", "mode": None, "n": 4},
          "sensitive_parameters": ["content"]}  # fmt: skip


@cache
def capture() -> Path:
    """A catalog with a secret, two files and a backup, for tests that only look at them."""
    parts = [
        catalog(resources=[SECRET]), content("modules/demo/init.pp", b"# why\nfile { '/a': }\n"),
        content("modules/demo/run", b"#!/bin/sh\n# what\nexit 1\n"), bucket(b"# old\na = 1\n"), report(),
    ]  # fmt: skip
    folder = shared_folder() / "colours"
    folder.mkdir()
    return written(folder, talk(*parts))


def colours(widget: Widget) -> dict[str, str]:
    """The colour of each piece of text of a widget as it is drawn on the screen."""
    found: dict[str, str] = {}
    x, y, width, height = widget.region
    for strip in widget.screen._compositor.render_strips()[y : y + height]:
        for text, style, _ in strip.crop(x, x + width):
            if style and style.color and text.strip():
                found[text.strip()] = style.color.get_truecolor().hex
    return found


def hexed(style: str, *, light: bool = False) -> str:
    hue = style.rpartition(" ")[2]
    return Color.parse(themes.DARKER[hue] if light else hue).get_truecolor().hex


async def shown(pilot: Pilot[None], app: Inspector, seq: int, *keys: str) -> Widget:
    app.push_screen(ExchangeView([seq], seq))
    await settled(pilot, app)
    for key in keys:
        await pilot.press(key)
        await settled(pilot, app)
    return app.screen


@pytest.mark.slow
def test_files_have_the_colours_of_their_language_on_every_theme() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        for theme in (*themes.THEMES, "dark"):
            app.theme = theme
            light = theme == "light"
            screen = await shown(pilot, app, 2, "3", "]")
            assert colours(screen)["# why"] == hexed(styles.COMMENT, light=light)
            assert colours(screen)["'/a'"] == hexed(styles.STRING, light=light)
        for seq, tab, comment in ((3, "3", "# what"), (4, "2", "# old")):  # without an ending, and a backup
            assert colours(await shown(pilot, app, seq, tab, "]"))[comment] == hexed(styles.COMMENT)

    look(capture(), act, start="")


@pytest.mark.slow
def test_json_and_masked_values_have_colours_and_the_raw_body_too() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        screen = await shown(pilot, app, 1, "3", "]")
        found = colours(screen)
        assert {found['"mode"'], found[MASK], found["4"]} == {
            hexed(styles.KEY), hexed(styles.SECRET), hexed(styles.NUMBER)
        }  # fmt: skip
        assert found["null"] == hexed(styles.NULL)
        assert "hunter2" not in screen_text(app)
        screen = await shown(pilot, app, 1, "3", "]", "v")
        assert colours(screen)['"mode"'] == hexed(styles.KEY)

    look(capture(), act, start="")


@pytest.mark.slow
def test_on_a_line_without_a_value_all_of_the_body_is_copied() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        screen = await shown(pilot, app, 1, "3", "]")
        body = screen.query_one(Bytes)
        await pilot.press("home", "y")
        assert body.plain(0) == "{"
        assert app.clipboard.splitlines() == [body.plain(line) for line in body.items]
        assert "hunter2" not in app.clipboard
        assert MASK in app.clipboard
        await pilot.press("down", "y")
        assert app.clipboard == body.plain(1)

    look(capture(), act, start="")


@pytest.mark.slow
def test_without_colour_all_of_it_can_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        screen = await shown(pilot, app, 1, "3", "]")
        found = colours(screen)
        assert found['"mode"'] == found[MASK] == found["4"] == "#ffffff"

    play(capture(), act, start="")


@pytest.mark.slow
def test_a_tree_has_the_colours_of_its_values_also_under_the_cursor() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        screen = await shown(pilot, app, 1, "right", "down", "down", "down")
        tree = screen.query_one(Leaves)
        found = colours(tree)
        assert (found["n"], found["4"]) == (hexed(styles.KEY), hexed(styles.NUMBER))
        assert found["undef"] == hexed(styles.NULL)
        assert found["File[/a]"] == hexed(styles.REFERENCE)
        node = tree.cursor_node
        assert node is not None
        assert node.data is not None
        assert node.data.text == "n: 4"
        line = tree.render_line(tree.cursor_line - int(tree.scroll_y))
        assert line.cell_length >= tree.size.width
        grounds = {style.bgcolor for _, style, _ in [*line][-3:] if style}
        assert len(grounds) == 1, "the line is marked to its end"

    look(capture(), act, start="")


class Host(App[None]):
    """A body on a screen of its own."""

    def __init__(self, content: Content) -> None:
        super().__init__()
        self.content = content

    def compose(self) -> ComposeResult:
        yield Bytes(self.content)


def alone(content: Content, act: Callable[[Pilot[None], Bytes], Awaitable[None]]) -> None:
    async def go() -> None:
        app = Host(content)
        async with app.run_test(size=(80, 24)) as pilot:
            await app.workers.wait_for_complete()
            await pilot.pause()
            await act(pilot, app.query_one(Bytes))

    asyncio.run(go())


def styled(lines: Iterable[tuple[str, str]]) -> set[str]:
    return {style for _, style in lines if style}


@pytest.mark.slow
@pytest.mark.parametrize("unit", [b'"', b"a" * 79 + b"\n", b"{\x1b[2J", b"'/*", b"\xf0\x9f"])
def test_ten_hostile_megabytes_are_shown_from_end_to_end(unit: bytes) -> None:
    data = unit * (10_000_000 // len(unit))

    async def act(pilot: Pilot[None], body: Bytes) -> None:
        for key in ("end", "pageup", "home", "down", "G"):
            body.focus()
            await pilot.press(key)
            assert "\x1b" not in "".join(body.plain(line) for line in range(body.at - 5, body.at) if line >= 0)
        assert body.at == len(body.items) - 1

    alone(Content("x", data, colours=Colours(data, languages.PUPPET)), act)


def test_what_is_found_is_marked_within_a_coloured_line() -> None:
    data = b"# first\nfile { '/etc/motd': }\n"

    async def act(pilot: Pilot[None], body: Bytes) -> None:
        assert body.search("etc")
        line = body.line(body.items[body.at])
        pieces = [(line.plain[span.start : span.end], str(span.style)) for span in line.spans]
        assert [text for text, _ in pieces] == ["file", "'/", "etc", "/motd'"]
        assert len(styled(pieces)) == 3

    alone(Content("x", data, colours=Colours(data, languages.PUPPET)), act)

"""The line in which something is typed: completion, history, and where the focus goes afterwards."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from inspector.summaries import completion
from inspector.tui.prompt import MOST, History, Prompt
from inspector.tui.rows import Rows
from tests.tui.screens import look, screen_text, settled, shared_sample

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot

    from inspector.tui.app import Inspector


@pytest.fixture(autouse=True)
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own for what is remembered."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "puppet-inspector" / "history.json"


def prompt(app: Inspector) -> Prompt:
    return app.screen.query_one(Prompt)


def line(app: Inspector) -> str:
    return prompt(app)._line.value


def complete(text: str) -> list[str]:
    return completion.complete(text, {"agent": ["node1.example", "my node", "[bold]x[/] \x1b[2J"]})


@pytest.mark.slow
def test_enter_gives_what_was_typed_escape_and_a_click_elsewhere_drop_it_and_the_focus_goes_back() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        output: list[str] = []
        rows = app.screen.query_one(Rows)
        rows.focus()
        await pilot.pause()
        prompt(app).open("note: ", output.append, "old ")
        await pilot.pause()
        assert "note: " in screen_text(app)
        await pilot.press("n", "e", "w", "enter")
        assert (output, app.screen.focused) == (["old new"], rows)
        assert not prompt(app).display
        assert "note: " not in screen_text(app)
        output.clear()
        rows = app.screen.query_one(Rows)
        rows.focus()
        prompt(app).open("/", output.append)
        await pilot.pause()
        await pilot.press("x", "escape")
        assert (output, app.screen.focused, prompt(app).display) == ([], rows, False)
        app.screen.set_focus(None)
        prompt(app).open("/", output.append)
        await pilot.press("escape")
        assert (output, app.screen.focused) == ([], None)
        output.clear()
        prompt(app).open("/", output.append)
        await pilot.press("x")
        await pilot.click(Rows)
        await pilot.pause()
        assert not prompt(app).display
        assert isinstance(app.screen.focused, Rows)
        assert output == []

    look(shared_sample("out-of-sync"), act, (80, 24))


# -- completion -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_tab_completes_the_word_at_the_cursor() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        output: list[str] = []
        prompt(app).open("filter: ", output.append, "status:404 !ph", complete=complete)
        await pilot.pause()
        assert "  !phase:" in screen_text(app)
        await pilot.press("tab")
        assert line(app) == "status:404 !phase:"
        assert "  !phase:catalog" in screen_text(app)  # what it may be is shown at once
        await pilot.press("c")
        await pilot.press("tab")
        assert line(app) == "status:404 !phase:certificates"
        await pilot.press("tab")
        assert line(app) == "status:404 !phase:catalog"
        assert "> !phase:catalog" in screen_text(app)
        await pilot.press("tab")
        assert line(app) == "status:404 !phase:certificates"
        await pilot.press("shift+tab")
        assert line(app) == "status:404 !phase:catalog"
        await pilot.press("enter")
        assert output == ["status:404 !phase:catalog"]

    look(shared_sample("out-of-sync"), act, (80, 24))


@pytest.mark.slow
def test_completions_are_taken_by_keys_and_by_the_mouse() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        prompt(app).open("filter: ", print, "ou run:1", complete=complete)
        await pilot.press("home", "right", "right", "tab")
        assert line(app) == "outcome: run:1"
        await pilot.press("f", "a", "tab")
        assert line(app) == "outcome:failed run:1"
        await pilot.press("escape")
        await pilot.pause()
        prompt(app).open("filter: ", print, complete=complete)
        await pilot.pause()
        assert "agent:" in screen_text(app)
        await pilot.press("o", "u")
        await pilot.pause()
        assert "outcome:" in screen_text(app).splitlines()[-2]
        assert line(app) == "ou"
        await pilot.press("right")
        assert line(app) == "outcome:"
        await pilot.press("escape")
        await pilot.pause()
        output: list[str] = []
        prompt(app).open("filter: ", output.append, "agent:", complete=complete)
        await pilot.pause()
        await pilot.click("#choices", offset=(5, 1))
        await pilot.pause()
        assert line(app) == 'agent:"my node"'
        await pilot.press("enter")
        assert output == ['agent:"my node"']
        await pilot.press("escape")
        await pilot.pause()
        hostile = "x[bold]y[/] \x1b[2J\u202e"
        prompt(app).open("x: ", print, "x", complete=lambda _: [hostile])
        await pilot.pause()
        text = screen_text(app)
        assert "\x1b" not in text
        assert "\u202e" not in text
        assert "[bold]y[/]" in text
        await pilot.press("escape")
        await pilot.pause()
        prompt(app).open("/", print)
        await pilot.press("x", "tab", "y", "up")
        assert line(app) == "xy"
        assert not app.screen.query_one("#choices").display

    look(shared_sample("out-of-sync"), act)


# -- history ----------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_up_and_down_go_through_what_was_typed(state: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        for text in ("one", "two", "one", " ", "three"):
            prompt(app).open("/", print, history="search")
            await pilot.press(*("space" if character == " " else character for character in text), "enter")
        prompt(app).open("/", print, history="search")
        await pilot.press("n", "up")
        assert line(app) == "three"
        await pilot.press("up", "up", "up", "up")
        assert line(app) == "two"
        await pilot.press("down", "down", "down", "down")
        assert line(app) == "n"
        await pilot.press("up", "up", "x", "up")
        assert line(app) == "three"  # what was changed begins anew
        await pilot.press("escape")
        prompt(app).open("/", print, history="filter")
        await pilot.press("up")
        assert line(app) == ""

    look(shared_sample("out-of-sync"), act)
    assert json.loads(state.read_text()) == {"search": ["two", "one", "three"]}
    assert state.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in state.parent.iterdir()] == ["history.json"]


def test_a_history_has_an_end(state: Path) -> None:
    history = History("filter")
    for number in range(MOST + 5):
        history.add(str(number))
    assert History("filter").lines == [str(number) for number in range(5, MOST + 5)]


def test_two_histories_are_kept_apart_and_together(state: Path) -> None:
    one, other = History("filter"), History("search")
    one.add("a")
    other.add("b")
    History("filter").add("c")
    assert json.loads(state.read_text()) == {"filter": ["a", "c"], "search": ["b"]}


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{", b"\xff", b'{"filter": 3}', b'{"filter": [1, "\\u001b[2J", "ok"]}']
)
def test_a_broken_history_is_none(state: Path, content: bytes) -> None:
    state.parent.mkdir(parents=True)
    state.write_bytes(content)
    history = History("filter")
    assert history.lines in ([], ["ok"])
    history.add("new")
    assert History("filter").lines[-1] == "new"


def test_a_history_that_can_not_be_written_is_no_trouble(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    history = History("filter")
    history.add("kept for now")
    assert history.lines == ["kept for now"]
    assert (tmp_path / "file").read_text() == ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("keys", "line"),
    [
        (["r", "f"], "Enter Filter  Esc Cancel  Tab Complete  ↑ Older line  ↓ Newer line"),
        (["r", "enter", "slash"], "Enter Search  Esc Cancel  ↑ Older line  ↓ Newer line"),
        (["r", "enter", "t"], "Enter Jump  Esc Cancel"),
        (["r", "E"], "Enter Write  Esc Cancel"),
        (["b"], "Enter Search  Esc Cancel  ↑ Older line  ↓ Newer line"),
    ],
)
def test_the_line_at_the_bottom_has_the_keys_of_the_prompt_while_it_is_open(keys: list[str], line: str) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        for key in keys:
            await pilot.press(key)
            await settled(pilot, app)
        assert screen_text(app).splitlines()[-1].strip() == line
        if keys != ["b"]:
            await pilot.press("escape")
            await settled(pilot, app)
            assert screen_text(app).splitlines()[-1].endswith("? All keys")

    look(shared_sample("out-of-sync"), act, (80, 24), start="")

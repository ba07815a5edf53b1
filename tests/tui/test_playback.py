"""A run is played back: its clock, its keys, the mouse, and what the agent knew at each moment."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest

from inspector.tui.exchange_pane import ExchangePane
from inspector.tui.playback import Knowledge, Transport
from inspector.tui.run import RunView
from inspector.tui.waterfall import Waterfall
from tests.tui.screens import in_run, run_view, screen_text, settled, type_in

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from textual.pilot import Pilot

    from inspector.analysis.analyzer import Step
    from inspector.tui.app import Inspector


@pytest.mark.slow
def test_a_run_is_played_with_what_the_agent_knew_beside_it() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        whole = len(run_view(app).query_one(Waterfall).items)
        await pilot.press("-", "-", "-", "space")
        assert run_view(app).playing
        assert len(run_view(app).query_one(Waterfall).items) < whole
        await settled(pilot, app)
        assert run_view(app).query_one(Knowledge).display
        assert "not seen" in screen_text(app)
        await pilot.press(*["+"] * 9)
        for _ in range(200):
            await pilot.pause(0.05)
            if not run_view(app).playing:
                break
        assert not run_view(app).playing
        assert len(run_view(app).query_one(Waterfall).items) == whole
        assert "sent (changed), accepted" in screen_text(app)

    in_run("first-run", act)


@pytest.mark.slow
def test_what_it_knew_is_read_once_and_nobody_waits_for_it_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, asked = threading.Event(), []

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        def steps(number: int) -> Iterator[Step]:
            asked.append(number)
            gate.wait(60)
            yield from ()

        monkeypatch.setattr(app.source, "steps", steps)
        await pilot.press("i")
        for _ in range(5):
            run_view(app).draw()
            await pilot.pause()
        assert asked == [1]
        threading.Timer(0.5, gate.set).start()

    in_run("first-run", act, (120, 40), own=tmp_path)


@pytest.mark.slow
def test_stepping_and_jumping() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        def shown() -> int:
            return max(entry.seq or 0 for entry in run_view(app).query_one(Waterfall).items)

        await type_in(pilot, app, "t", "0")
        assert shown() <= 1
        await pilot.press(".", ".", ".")
        first = shown()
        assert first in (3, 4)
        await pilot.press(",")
        assert shown() == first - 1
        await pilot.press("}")
        assert shown() == 3  # B45 is proved by the request and the certificate
        await pilot.press("p")
        phase = shown()
        assert phase > 3
        await type_in(pilot, app, "t", "100%")
        assert shown() == 22
        await type_in(pilot, app, "t", "tomorrow")
        assert "tomorrow" in screen_text(app)
        assert shown() == 22

    in_run("first-run", act)


@pytest.mark.slow
def test_a_jump_that_takes_the_focused_widget_away_leaves_the_keyboard_alive() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press("G")
        await settled(pilot, app)
        await pilot.press("tab")
        await type_in(pilot, app, "t", "50%")
        assert run_view(app).query_one(ExchangePane).seq is None  # a silence, of which nothing is shown
        assert app.focused is None or app.focused.is_attached
        before = run_view(app).current
        await pilot.press("tab")
        assert run_view(app).current != before
        await pilot.press("escape")
        await settled(pilot, app)
        assert not isinstance(app.screen, RunView)

    in_run("compile-error", act, (80, 24))


@pytest.mark.slow
def test_the_mouse_plays_and_seeks() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        whole = len(run_view(app).query_one(Waterfall).items)
        line = run_view(app).query_one(Transport)
        slower = str(line.render()).index(" - ") + 1
        for _ in range(3):
            await pilot.click(Transport, offset=(slower, 0))
        assert "x0.1" in screen_text(app)
        await pilot.click(Transport, offset=(line.size.width // 2, 0))
        await pilot.pause()
        assert len(run_view(app).query_one(Waterfall).items) < whole
        await pilot.click(Transport, offset=(2, 0))
        assert run_view(app).playing
        await pilot.click(Transport, offset=(2, 0))
        assert not run_view(app).playing

    in_run("first-run", act)


@pytest.mark.slow
def test_a_wide_terminal_has_a_pane_for_what_the_agent_had_after_the_record_under_the_cursor() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = run_view(app)
        await pilot.press("end")
        await settled(pilot, app)
        assert "─ Record 5 ─" in screen_text(app)
        assert "─ Agent state ─" in screen_text(app)
        assert "sent (failed), accepted" in screen_text(app)
        await pilot.press("home", "down")
        await settled(pilot, app)
        assert "sent (failed), accepted" not in screen_text(app)
        assert "not seen" in screen_text(app)
        await pilot.press("i")
        assert view.query_one(Knowledge).has_focus
        await pilot.resize_terminal(120, 40)
        await settled(pilot, app)
        assert "Agent state ─" not in screen_text(app)
        await pilot.press("i")
        await settled(pilot, app)
        assert "─ Agent state ─" in screen_text(app)
        assert "Record 1 ─" not in screen_text(app)
        await pilot.press("i")
        assert "─ Record 1 ─" in screen_text(app)
        await pilot.resize_terminal(200, 60)

    in_run("compile-error", act)

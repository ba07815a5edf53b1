"""The search through the bodies of a whole capture: what it finds, how far it is, and that it can be cancelled."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest
from textual.widgets import ProgressBar

from inspector.capture.store import Capture
from inspector.model import Exchange, Leg, Request, Response
from inspector.summaries.filtering import Filtering
from inspector.tui.exchange_pane import ExchangePane
from inspector.tui.rows import Rows
from inspector.tui.search import SearchView
from tests.tui.screens import indexed, look, play, sample, screen_text, settled, shared_sample

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot

    from inspector.model import Place
    from inspector.pages.body_search import Hit
    from inspector.tui.app import Inspector

HOSTILE = "[bold]x[/] \x1b[2J \u202e"


def answer(body: bytes, *headers: tuple[str, str], target: str = "/", seq: int = 1) -> Exchange:
    return Exchange(Leg("a", "agent", address="192.0.2.1"), Request(target=target, started=seq), Response(headers, body, status=200), seq=seq)  # fmt: skip  # noqa: E501


async def until_over(pilot: Pilot[None], view: SearchView) -> None:
    end = time.monotonic() + 300
    while view._running:
        assert time.monotonic() < end
        await pilot.pause(0.02)


@pytest.mark.slow
def test_the_search_finds_what_the_filter_lets_through() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        app.open_search()
        await pilot.pause()
        await pilot.press(*"mode", "enter")
        view = app.screen
        assert isinstance(view, SearchView)
        await until_over(pilot, view)
        await pilot.pause()
        rows: Rows[Hit] = view.query_one(Rows)
        wanted = Filtering(app.source).briefs("text:mode")
        assert list(dict.fromkeys(hit.seq for hit in rows.items)) == [brief.seq for brief in wanted]
        text = screen_text(app)
        total = app.source.total
        assert f"{total} of {total} records, {len(rows.items)} matches" in text
        assert "for mode" in text
        assert "node1.example" in text
        assert view.focused is rows

    look(shared_sample("first-run"), act)


@pytest.mark.slow
def test_enter_opens_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[tuple[int | None, int, Place]] = []
    monkeypatch.setattr("inspector.tui.app.Inspector.open_exchange", lambda _, *arguments: opened.append(arguments))

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = SearchView("catalog")
        app.push_screen(view)
        await pilot.pause()
        await until_over(pilot, view)
        rows: Rows[Hit] = view.query_one(Rows)
        await pilot.press("end", "enter")
        run = app.source.owner(rows.items[-1].seq)
        assert run
        assert opened == [(run.number, rows.items[-1].seq, rows.items[-1].place)]
        await pilot.double_click(Rows, offset=(5, 1))
        assert opened[1:] == [(run_of(app, rows.items[0].seq), rows.items[0].seq, rows.items[0].place)]

    look(shared_sample("first-run"), act)


@pytest.mark.slow
def test_enter_goes_to_where_it_was_found() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        for text, where, output in (
            ("gzip;q=1.0", "request header", "gzip;q=1.0"),
            ("debian", "request body", '"family": "Debian"'),
            ("/catalog/", "target", "/puppet/v3/catalog/"),
        ):
            view = SearchView(text)
            app.push_screen(view)
            await pilot.pause()
            await until_over(pilot, view)
            await pilot.pause()
            rows: Rows[Hit] = view.query_one(Rows)
            found = [at for at, hit in enumerate(rows.items) if hit.where == where]
            rows.move_to(found[0])
            await pilot.press("enter")
            for _ in range(3):
                await pilot.pause()
                await app.workers.wait_for_complete()
            await pilot.pause()
            pane = app.screen.query_one(ExchangePane)
            assert pane.seq == rows.items[found[0]].seq
            assert pane.tab == "Request"
            assert output.partition(": ")[2].lower() in (pane.copy_value() or "").lower()
            assert text in (pane.copy_value() or "").lower()

    look(shared_sample("first-run"), act)


def run_of(app: Inspector, seq: int) -> int | None:
    run = app.source.owner(seq)
    return run.number if run else None


@pytest.mark.slow
def test_hostile_text_is_shown_and_does_nothing(tmp_path: Path) -> None:
    with Capture.create(tmp_path / "hostile.sqlite") as capture:
        capture.append(answer(f"{HOSTILE} needle {HOSTILE}".encode()))
        capture.append(answer(b"", target="/" + "needle\x1b[2J[bold]"))

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = SearchView("needle")
        app.push_screen(view)
        await pilot.pause()
        await until_over(pilot, view)
        await pilot.pause()
        text = screen_text(app)
        assert "[bold]x[/]" in text
        assert "\x1b" not in text
        assert "\u202e" not in text
        view.begin("[red]no\x1b[2J[/]")
        await until_over(pilot, view)
        await pilot.pause()
        assert "No record contains [red]no" in screen_text(app)

    play(indexed(tmp_path / "hostile.sqlite"), act)


@pytest.mark.slow
@pytest.mark.parametrize("key", ["escape", "c"])
def test_it_can_be_cancelled_and_left(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inspector.tui.search.PAUSE", 0.0)
    records = Capture.records
    cancelled = threading.Event()

    def halting(self: Capture, after: int = 0) -> object:
        """The records of the capture; after the first five only once the search was cancelled."""
        for record in records(self, after):
            if record.seq > 5:
                cancelled.wait(30)
            yield record

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = SearchView("e")
        app.push_screen(view)
        monkeypatch.setattr(Capture, "records", halting)
        await pilot.pause()
        end = time.monotonic() + 300
        while not view._hits:
            assert time.monotonic() < end
            await pilot.pause(0.02)
        await pilot.press("down")  # keys are answered meanwhile
        rows: Rows[Hit] = view.query_one(Rows)
        assert rows.at == 1
        assert view.query_one(ProgressBar).display
        assert "c Cancel" in screen_text(app)
        await pilot.press(key)
        if key == "escape":
            cancelled.set()
            await app.workers.wait_for_complete()
            assert app.screen is not view
            return
        assert app.screen is view
        text = screen_text(app)
        assert "The search was cancelled after" in text
        before = len(view._hits)
        cancelled.set()
        assert 0 < view._done < app.source.total
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert len(view._hits) == before
        await pilot.press("escape")
        assert app.screen is not view

    look(shared_sample("first-run"), act, (80, 24))


@pytest.mark.slow
@pytest.mark.parametrize("keys", [("escape",), ("enter",)])
def test_without_a_text_it_is_left_and_nothing_moved(keys: tuple[str, ...]) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        before = app.screen
        app.open_search()
        await pilot.pause()
        view = app.screen
        assert isinstance(view, SearchView)
        assert not view.query_one(ProgressBar).display
        assert not view.query_one("#progress").display
        await pilot.press(*keys)
        await pilot.pause()
        assert app.screen is before

    look(shared_sample("first-run"), act)


@pytest.mark.slow
def test_what_was_searched_stays_when_another_text_is_not_asked_for() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = SearchView("mode")
        app.push_screen(view)
        await pilot.pause()
        await until_over(pilot, view)
        await settled(pilot, app)
        assert not view.query_one(ProgressBar).display
        assert "Cancel" not in screen_text(app)
        await pilot.press("slash", "escape")
        await pilot.pause()
        assert app.screen is view
        assert "search for mode in first-run.sqlite" in screen_text(app)
        await pilot.press("escape")
        assert app.screen is not view

    look(shared_sample("first-run"), act)


def test_a_new_search_replaces_the_old_one() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = SearchView("e")
        app.push_screen(view)
        await pilot.pause()
        view.begin("certificate_revocation_list")
        await until_over(pilot, view)
        await pilot.pause()
        assert view._hits
        assert all("certificate_revocation_list" in hit.found for hit in view._hits)

    look(shared_sample("first-run"), act)


@pytest.mark.slow
def test_a_capture_that_goes_away_is_reported(tmp_path: Path) -> None:
    path = sample("first-run", tmp_path)

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        path.unlink()
        view = SearchView("e")
        app.push_screen(view)
        await pilot.pause()
        await until_over(pilot, view)
        await pilot.pause()
        assert "There is no capture at" in screen_text(app)

    play(path, act)

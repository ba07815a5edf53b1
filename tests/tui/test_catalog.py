"""The catalog of a run as a tree on the screen: branches, outcomes, filters, searching, and what is hostile."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import pytest
from textual.widgets import Static

from inspector.runs.examples import catalog, report, talk
from inspector.tui.app import Inspector
from tests.support.catalogs import resource
from tests.tui.screens import SIZES, catalog_of, look, play, screen_text, shared_catalog, unframed, written

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot

    from inspector.tui.catalog import Catalog

NARROW, WIDE = SIZES


def refs(view: Catalog) -> list[str]:
    return [line.outcome.ref for line in view.branches.items]


def at(view: Catalog) -> str:
    item = view.selected
    assert item is not None
    return item.ref


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_the_tree_has_outcomes_and_the_cursor_stays_on_its_resource(size: tuple[int, int]) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await catalog_of(pilot, app)
        assert at(view) == "Exec[fail]"
        await pilot.press("w")
        assert at(view) == "Exec[fail]"
        assert "Containment" in screen_text(app)
        text = unframed(screen_text(app))
        assert "├── Exec[fail]" in text
        assert "failed" in next(line for line in text.splitlines() if "Exec[fail]" in line)
        await pilot.press("home")
        text = unframed(screen_text(app))
        assert "▼ Stage[main]" in text
        assert "├─▼ Class[Web]" in text
        (line,) = [line for line in text.splitlines() if "Stage[main]  " in line and "▼" in line]
        assert "1 failed, 1 skip" in line
        assert "1.5 s" in line
        await pilot.press("down", "w")
        assert at(view) == "Class[Web]"
        assert "Resources" in screen_text(app)

    look(shared_catalog(), act, size, start="")


@pytest.mark.slow
def test_branches_open_and_close_by_keys_and_mouse() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await catalog_of(pilot, app, "w", "home")
        everything = refs(view)
        await pilot.press("left")
        assert refs(view) == ["Stage[main]"]
        await pilot.press("right")
        assert refs(view) == everything
        await pilot.press("enter", "enter")
        assert refs(view) == everything
        view.branches.go(6)
        await pilot.press("left")
        assert at(view) == "Web::Vhost[x]", "from what is in it to the container"
        await pilot.press("left", "right", "l", "h")
        assert "File[/etc/web/x.conf]" not in refs(view)
        place = refs(view).index("Web::Vhost[x]")
        await pilot.click("#tree", offset=(5, place + 1))
        assert refs(view) == everything

    look(shared_catalog(), act, WIDE, start="")


@pytest.mark.slow
def test_filters_show_what_matches_and_what_it_is_in(monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[tuple[int | None, int]] = []
    monkeypatch.setattr(Inspector, "open_exchange", lambda _, number, seq, _place: found.append((number, seq)))

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await catalog_of(pilot, app, "w", "home", "left", "d")
        assert refs(view) == [
            "Stage[main]", "Class[Web]", "File[conf]", "Web::Vhost[x]", "File[/etc/web/x.conf]", "Exec[fail]",
            "Service[web]",
        ]  # fmt: skip
        await pilot.press("d", "f")
        assert refs(view)[:2] == ["Stage[main]", "Class[Web]"]
        assert refs(view)[2:] == ["File[conf]"]
        assert "Resources, changed of run 1" in screen_text(app)
        await pilot.press("f", "f")
        assert refs(view) == ["Stage[main]", "Class[Web]", "Exec[fail]"]
        await pilot.press("end", "enter")
        assert found == [(1, 2)]

    look(shared_catalog(), act, WIDE, start="")


@pytest.mark.slow
def test_searching_goes_through_closed_branches_both_ways() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await catalog_of(pilot, app, "w", "home", "left", *"/X.CONF", "enter")
        assert at(view) == "File[/etc/web/x.conf]"
        await pilot.press(*"/notify", "enter")
        first = at(view)
        assert first == "Notify[one]"
        await pilot.press("n")
        assert at(view) == "Notify[two]"
        await pilot.press("N")
        assert at(view) == "Notify[one]"
        await pilot.press("n", "n", "n")
        assert at(view) == "Notify[one]", "from the last one on to the first again"
        await pilot.press(*"/skipped", "enter")
        assert at(view) == "File[/etc/web/x.conf]", "its outcome is searched too"
        await pilot.press(*"/nowhere", "enter")
        assert "No match here for 'nowhere'." in screen_text(app)

    look(shared_catalog(), act, WIDE, start="")


@pytest.mark.slow
def test_hostile_titles_do_nothing_to_the_terminal() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await catalog_of(pilot, app, "w", "end")
        assert r"Notify[\x1b[2J[bold]\x202e]" in screen_text(app)
        assert "exported" in screen_text(app)
        assert not {"\x1b", "\u202e"} & set(screen_text(app))

    look(shared_catalog(), act, NARROW, start="")


@pytest.mark.slow
def test_a_catalog_as_deep_as_it_is_long_takes_all_keys(tmp_path: Path) -> None:
    names = [f"Foo[{number}]" for number in range(3000)]
    edges = [{"source": one, "target": other} for one, other in [*pairwise(names), (names[-1], names[-1])]]
    resources = [resource("Foo", str(number), before=f"Foo[{(number + 1) % 3000}]") for number in range(3000)]
    statuses = {"Foo[2999]": {"failed": True}}

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await catalog_of(pilot, app, "w")
        assert at(view) == "Foo[2999]"
        assert "Foo[2999]" in unframed(screen_text(app))
        await pilot.press("home", "left", "right", "end", "left", *"/foo[77]", "enter", "r")
        await pilot.pause()
        assert "cycle" in screen_text(app)

    path = written(tmp_path, talk(catalog(resources=resources, edges=edges), report(resource_statuses=statuses)))
    play(path, act, NARROW, start="")


@pytest.mark.slow
def test_without_resources_it_says_so(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await catalog_of(pilot, app, "w")
        assert "The catalog has no resources." in str(view.query_one("#message", Static).render())
        await pilot.press("r")
        assert app.screen is view

    play(written(tmp_path, talk(catalog(), report())), act, NARROW, start="")

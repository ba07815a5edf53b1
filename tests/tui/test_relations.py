"""The graph around one resource: what it needs, what needs it, and walking along it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from textual.widgets import Static

from inspector.explain import catalog_graph
from inspector.runs.examples import catalog, report, talk
from inspector.tui.catalog import Catalog
from inspector.tui.relations import Relations
from tests.support.catalogs import HOSTILE, related, resource
from tests.tui.screens import SIZES, catalog_of, play, sample, screen_text, written

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot

    from inspector.tui.app import Inspector

NARROW, WIDE = SIZES
"""One above the other, and side by side."""


async def around(pilot: Pilot[None], app: Inspector, ref: str) -> Relations:
    """Open the relations of a resource."""
    view = await catalog_of(pilot, app)
    assert view.rows.go(ref)
    await pilot.press("r")
    await pilot.pause()
    assert isinstance(app.screen, Relations)
    return app.screen


def refs(view: Relations, name: str) -> list[str]:
    return [f"{near.role} {near.outcome.ref}".strip() for near in view.list(name).items]


def why(view: Relations) -> str:
    return str(view.query_one("#why", Static).render())


def shown(view: Relations) -> str:
    return view.graph.tree.refs[view.around.number]


@pytest.mark.parametrize("size", SIZES)
def test_what_is_around_a_resource(tmp_path: Path, size: tuple[int, int]) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await around(pilot, app, "File[/etc/web/x.conf]")
        assert "Relations of File[/etc/web/x.conf] in run 1 of node1.example" in screen_text(app)
        assert refs(view, "needs") == ["subscribe File[conf]", "subscribe Exec[fail]", "require Class[Repo]"]
        assert refs(view, "here") == ["File[/etc/web/x.conf]", "in Web::Vhost[x]", "in Class[Web]", "in Stage[main]"]
        assert refs(view, "after") == ["require Service[web]"]
        text = screen_text(app)
        assert "require^" in text
        if size == WIDE:
            line = next(line for line in text.splitlines() if "═┬─▶" in line)
            assert line.index("File[conf]") < line.index("═┬─▶File[/etc/web/x.conf]") < line.index("Service[web]")
            assert "═┤" in text
            assert "─╯" in text
        else:
            assert [text.index(word) for word in ("applied before", "Contained in 3", "applied after")] == sorted(
                text.index(word) for word in ("applied before", "Contained in 3", "applied after")
            )
        assert why(view) == "Skipped. /m/site.pp:1"
        await pilot.press("left")
        assert why(view) == "File[/etc/web/x.conf] has subscribe => File[conf]."
        await pilot.press("end")
        assert why(view) == "Class[Web] has require => Class[Repo], which applies to all that is in Class[Web]."
        await pilot.press("left")
        assert "It needs nothing else." in screen_text(app)

    play(written(tmp_path, related()), act, size, start="")


@pytest.mark.parametrize("size", SIZES)
def test_one_walks_along_and_back_and_the_catalog_follows(tmp_path: Path, size: tuple[int, int]) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await around(pilot, app, "File[/etc/web/x.conf]")
        await pilot.press("h", "enter")
        assert shown(view) == "File[conf]"
        assert ", from File[/etc/web/x.conf]" in screen_text(app)
        assert refs(view, "needs") == ["before Package[web]", "require Class[Repo]"]
        assert view.list("needs").has_focus, "one goes on in the same direction"
        await pilot.press("down", "enter")
        assert shown(view) == "Class[Repo]"
        assert refs(view, "after") == ["require Class[Web]"]
        assert view.list("here").has_focus, "it needs nothing"
        await pilot.press("backspace")
        assert (shown(view), view.list("needs").at) == ("File[conf]", 1)
        assert view.list("needs").has_focus
        await pilot.press("backspace")
        assert shown(view) == "File[/etc/web/x.conf]"
        await pilot.press("backspace")
        assert "This is the resource with which you began" in screen_text(app)
        await pilot.press("right", "right", "enter", "escape")
        await pilot.pause()
        assert isinstance(app.screen, Catalog)
        assert app.screen.selected is not None
        assert app.screen.selected.ref == "Service[web]"

    play(written(tmp_path, related()), act, size, start="")


def test_a_list_with_nothing_in_it_leaves_its_room_to_the_others(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await around(pilot, app, "Notify[role web, rack A7]")
        widths = {name: view.query_one(f"#{name}-pane").size.width for name in ("needs", "here", "after")}
        assert widths["needs"] == widths["after"] < widths["here"]

    play(sample("first-run", tmp_path), act, (120, 40))


def test_containers_and_contents_are_walked_too(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await around(pilot, app, "Web::Vhost[x]")
        assert refs(view, "here")[-1] == "contains File[/etc/web/x.conf]"
        await pilot.press("enter")
        assert "This is the resource that is shown" in screen_text(app)
        await pilot.press("down")
        assert why(view).startswith("It contains the resource")
        await pilot.press("end")
        assert why(view) == "It is in the resource."
        await pilot.press("enter")
        assert shown(view) == "File[/etc/web/x.conf]"
        await pilot.click("#here", offset=(8, 3), times=2)
        assert shown(view) == "Class[Web]"

    play(written(tmp_path, related()), act, WIDE, start="")


@pytest.mark.parametrize("size", SIZES)
def test_missing_ones_and_cycles_are_marked(tmp_path: Path, size: tuple[int, int]) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await around(pilot, app, "Service[web]")
        await pilot.press("left", "down")
        assert "missing" in screen_text(app)
        assert "Notify[virtual] is not in the catalog" in why(view)
        assert "Could not retrieve dependency" in why(view)
        await pilot.press("enter")
        assert refs(view, "after") == ["require Service[web]"]
        assert "missing" in screen_text(app)
        await pilot.press("escape")
        await pilot.pause()
        view = await around(pilot, app, "Notify[one]")
        assert screen_text(app).count("cycle") >= 3
        assert "part of a cycle: an agent applies nothing" in why(view)
        await pilot.press("left")
        assert "part of a cycle" in why(view)

    play(written(tmp_path, related()), act, size, start="")


def test_the_details_are_those_of_the_selected_one_and_tab_leads_to_them(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await around(pilot, app, "File[/etc/web/x.conf]")
        await pilot.press("left", "down")
        assert "Exec[fail]" in screen_text(app).split("Details")[1]
        await pilot.press("tab", "tab", "tab")
        assert view.query_one("#details").has_focus
        assert view.current == "after"
        assert "Service[web]" in screen_text(app).split("Details")[1]
        await pilot.press("tab")
        assert view.list("needs").has_focus
        await pilot.press("shift+tab")
        assert view.query_one("#details").has_focus

    async def narrow(pilot: Pilot[None], app: Inspector) -> None:
        view = await around(pilot, app, "File[/etc/web/x.conf]")
        await pilot.press("tab", "tab")
        assert view.list("needs").has_focus, "there is no room for the details"

    play(written(tmp_path, related()), act, WIDE, start="")
    play(written(tmp_path / "narrow", related()), narrow, NARROW, start="")


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path) -> None:
    (tmp_path / "narrow").mkdir()


@pytest.mark.parametrize("size", SIZES)
def test_hostile_titles_do_nothing_to_the_terminal(tmp_path: Path, size: tuple[int, int]) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await around(pilot, app, f"Notify[{HOSTILE}]")
        await pilot.press("left")
        text = screen_text(app)
        assert r"[2J[bold]" in text
        assert not {"\x1b", "\u202e"} & set(text)

    play(written(tmp_path, related()), act, size, start="")


def test_very_many_relationships_and_very_long_titles(tmp_path: Path) -> None:
    number = 3 * catalog_graph.MOST
    resources = [
        resource("Foo", "x" * 1_000_000, require=[f"Foo[{at}]" for at in range(number)]),
        *(resource("Foo", str(at), before=[f"Foo[{'x' * 1_000_000}]"]) for at in range(5)),
    ]

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await around(pilot, app, resources[0]["type"] + f"[{resources[0]['title']}]")
        assert f"Needs {catalog_graph.MOST:,} of {number + 5:,}: applied before" in screen_text(app)
        await pilot.press("left", "end", "pageup", "home", "enter", "backspace")
        assert len(view.list("needs").items) == catalog_graph.MOST

    play(written(tmp_path, talk(catalog(resources=resources), report())), act, NARROW, start="")


def test_it_is_in_the_palette_and_in_the_help(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await catalog_of(pilot, app)
        commands = {command.title for command in app.get_system_commands(app.screen)}
        assert {"Relations", "Tree", "Columns"} <= commands
        await around(pilot, app, "Exec[fail]")
        await pilot.press("question_mark")
        await pilot.pause()
        assert "Previous" in screen_text(app)
        assert "To what needs it" in screen_text(app)

    play(written(tmp_path, related()), act, WIDE, start="")

"""The graph around one resource: what it needs, what needs it, and walking along it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from textual.widgets import Static

from inspector.explain import catalog_graph
from inspector.explain.catalog_graph import Kind, Relation
from inspector.explain.resource_outcomes import Applied, Status
from inspector.pages import styles
from inspector.protocol import documents as d
from inspector.runs.examples import catalog, report, talk
from inspector.tui.catalog import Catalog
from inspector.tui.relations import ABOVE, AFTER, BEFORE, HERE, Near, Relations
from tests.support.catalogs import HOSTILE, resource
from tests.tui.screens import (
    SIZES,
    catalog_of,
    look,
    play,
    screen_text,
    shared_catalog,
    shared_sample,
    written,
)

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot

    from inspector.tui.app import Inspector
    from inspector.tui.columns import Column

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


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_what_is_around_a_resource(size: tuple[int, int]) -> None:
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

    look(shared_catalog(), act, size, start="")


@pytest.mark.slow
def test_one_walks_along_and_back_and_the_catalog_follows() -> None:
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

    look(shared_catalog(), act, NARROW, start="")


@pytest.mark.slow
def test_a_list_with_nothing_in_it_leaves_its_room_to_the_others() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await around(pilot, app, "Notify[role web, rack A7]")
        widths = {name: view.query_one(f"#{name}-pane").size.width for name in ("needs", "here", "after")}
        assert widths["needs"] == widths["after"] < widths["here"]

    look(shared_sample("first-run"), act, (120, 40))


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_a_sentence_stands_for_lists_with_nothing_in_them(size: tuple[int, int]) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await around(pilot, app, "Notify[role web, rack A7]")
        assert [view.query_one(f"#{name}-pane").display for name in ("needs", "here", "after")] == [False, True, False]
        text = screen_text(app)
        assert "It needs nothing and nothing needs it: no require, before, subscribe" in text
        assert "applied before" not in text
        assert "Details" in text
        await pilot.press("tab")
        assert view.query_one("#details").has_focus

    look(shared_sample("first-run"), act, size)


@pytest.mark.slow
def test_one_list_with_nothing_in_it() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await around(pilot, app, "Class[Repo]")
        assert [view.query_one(f"#{name}-pane").display for name in ("needs", "here", "after")] == [False, True, True]
        assert "It needs nothing: it has no require or subscribe" in screen_text(app)
        await pilot.press("right", "enter")
        assert shown(view) == "Class[Web]"
        assert view.query_one("#needs-pane").display
        assert "It needs nothing" not in screen_text(app)

    look(shared_catalog(), act, NARROW, start="")


@pytest.mark.slow
def test_containers_and_contents_are_walked_too() -> None:
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

    look(shared_catalog(), act, WIDE, start="")


@pytest.mark.slow
def test_missing_ones_and_cycles_are_marked() -> None:
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

    look(shared_catalog(), act, NARROW, start="")


@pytest.mark.slow
def test_the_details_are_those_of_the_selected_one_and_tab_leads_to_them() -> None:
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

    look(shared_catalog(), act, WIDE, start="")
    look(shared_catalog(), narrow, NARROW, start="")


@pytest.mark.slow
def test_hostile_titles_do_nothing_to_the_terminal() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await around(pilot, app, f"Notify[{HOSTILE}]")
        await pilot.press("left")
        text = screen_text(app)
        assert r"[2J[bold]" in text
        assert not {"\x1b", "\u202e"} & set(text)

    look(shared_catalog(), act, NARROW, start="")


@pytest.mark.slow
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


@pytest.mark.slow
def test_it_is_in_the_palette_and_in_the_help() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await catalog_of(pilot, app)
        commands = {command.title for command in app.get_system_commands(app.screen)}
        assert {"Relations", "Tree", "Columns"} <= commands
        await around(pilot, app, "Exec[fail]")
        await pilot.press("question_mark")
        await pilot.pause()
        assert "Previous" in screen_text(app)
        assert "To what needs it" in screen_text(app)

    look(shared_catalog(), act, WIDE, start="")


# -- the lines between a resource and those around it ----------------------------------------------------------


def near(place: int = 0, number: int = 1, kind: Kind | None = Kind.REQUIRE, **changes: object) -> Near:
    relation = Relation(kind, 1, 2, 3, None) if kind else None
    outcome = Applied("File[/a]", "File", "/a", None, None, Status.CHANGED, None, None)
    made = Near(1, outcome, relation, kind or "in", place, place == number - 1, missing=False, cycle=False)
    return made._replace(**changes)  # type: ignore[arg-type]


def drawn(column: Column[Near], number: int, kind: Kind = Kind.REQUIRE) -> list[str]:
    return [str(column.cell(near(place, number, kind), 4)) for place in range(number)]


@pytest.mark.parametrize(
    ("number", "before", "after", "above"),
    [
        (1, ["───▶"], ["───▶"], ["┌─"]),
        (2, ["─┬─▶", "─╯  "], ["─┬─▶", " ╰─▶"], ["┌─", "├─"]),
        (3, ["─┬─▶", "─┤  ", "─╯  "], ["─┬─▶", " ├─▶", " ╰─▶"], ["┌─", "├─", "├─"]),
    ],
)
def test_lines_meet_at_the_resource(number: int, before: list[str], after: list[str], above: list[str]) -> None:
    assert drawn(BEFORE[-1], number) == before
    assert drawn(AFTER[0], number) == after
    assert drawn(ABOVE[0], number) == above


def test_what_triggers_something_has_a_thick_line_and_a_colour() -> None:
    assert drawn(BEFORE[-1], 2, Kind.NOTIFY) == ["═┬─▶", "═╯  "]
    assert drawn(AFTER[0], 2, Kind.SUBSCRIBE) == ["─┬═▶", " ╰═▶"]
    styles_found = {str(BEFORE[2].cell(near(kind=kind), 10).style) for kind in Kind}  # type: ignore[union-attr]
    assert styles_found == {styles.SLATE, styles.ORANGE}


def test_a_relationship_of_a_container_has_a_mark() -> None:
    inherited = Relation(Kind.REQUIRE, 1, 2, 3, through=7)
    assert str(BEFORE[2].cell(near(relation=inherited), 10)) == "require^"
    assert str(ABOVE[1].cell(near(), 10)) == "require"


def test_the_state_says_what_is_wrong_first() -> None:
    state = HERE[1].cell
    exported = Applied(
        "A[1]", "A", "1", d.Resource(type="A", title="1", exported=True), None, Status.UNREPORTED, None, 1
    )
    assert str(state(near(), 9)) == "changed"
    assert str(state(near(cycle=True), 9)) == "cycle changed"
    assert str(state(near(outcome=exported), 9)) == "exported"
    assert str(state(near(outcome=exported, missing=True, cycle=True), 9)) == "missing cycle exported"


def test_the_one_in_the_middle_is_not_indented() -> None:
    assert str(HERE[0].cell(near(kind=None, role=""), 30)) == "File[/a]"
    assert str(HERE[0].cell(near(kind=None, role="contains"), 30)) == "  contains File[/a]"

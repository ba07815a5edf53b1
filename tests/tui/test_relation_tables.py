"""The lines between a resource and those around it meet, however many there are, in one direction."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inspector.explain.catalog_graph import Kind, Relation
from inspector.explain.resource_outcomes import Applied, Status
from inspector.pages import styles
from inspector.protocol import documents as d
from inspector.tui.relations import ABOVE, AFTER, BEFORE, HERE, Near

if TYPE_CHECKING:
    from inspector.tui.columns import Column


def near(place: int = 0, number: int = 1, kind: Kind | None = Kind.REQUIRE, **changes: object) -> Near:
    relation = Relation(kind, 1, 2, 3, None) if kind else None
    outcome = Applied("File[/a]", "File", "/a", None, None, Status.CHANGED, None, None)
    made = Near(1, outcome, relation, kind or "in", place, place == number - 1, missing=False, cycle=False)
    return made._replace(**changes)  # type: ignore[arg-type]


def lines(column: Column[Near], number: int, kind: Kind = Kind.REQUIRE) -> list[str]:
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
    assert lines(BEFORE[-1], number) == before
    assert lines(AFTER[0], number) == after
    assert lines(ABOVE[0], number) == above


def test_what_triggers_something_has_a_thick_line_and_a_colour() -> None:
    assert lines(BEFORE[-1], 2, Kind.NOTIFY) == ["═┬─▶", "═╯  "]
    assert lines(AFTER[0], 2, Kind.SUBSCRIBE) == ["─┬═▶", " ╰═▶"]
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

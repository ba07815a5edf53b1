"""The three lists around one resource of a catalog: their columns, and the lines between them."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rich.text import Text

from inspector.explain.resource_outcomes import Status
from inspector.pages import palette
from inspector.pages.styles import BAD, ORANGE, REFERENCE, SLATE
from inspector.tui.columns import Column
from inspector.tui.part import middle
from inspector.tui.resource_details import cut

if TYPE_CHECKING:
    from inspector.explain.catalog_graph import Relation
    from inspector.explain.resource_outcomes import Applied


class Near(NamedTuple):
    """A resource in one of the lists."""

    number: int
    outcome: Applied
    relation: Relation | None
    """None: it is in the middle."""
    role: str
    """What it is to the resource shown: the kind of the relationship, or ``in``, or ``contains``."""
    place: int
    """Its line in its list, from 0."""
    last: bool
    """Whether it is the last one."""
    missing: bool
    cycle: bool


def _line(near: Near) -> str:
    """A thick line if a change triggers something."""
    return "═" if near.relation and near.relation.kind.refreshes else "─"


def _style(near: Near) -> str:
    return BAD if near.cycle or near.missing else ORANGE if _line(near) == "═" else SLATE


def _to_the_right(near: Near) -> Text:
    """The line from a resource to the one in the middle, which is beside the first."""
    alone, first = near.place == 0 and near.last, near.place == 0
    end = f"{_line(near)}─▶" if alone else "┬─▶" if first else "╯  " if near.last else "┤  "
    return Text(f"{_line(near)}{end}", _style(near))


def _from_the_left(near: Near) -> Text:
    """The line from the resource in the middle to one on the right."""
    alone, first = near.place == 0 and near.last, near.place == 0
    begin = "──" if alone else "─┬" if first else " ╰" if near.last else " ├"
    return Text(f"{begin}{_line(near)}▶", _style(near))


def _downwards(near: Near) -> Text:
    """The line from a resource to the one below the list."""
    return Text(("┌" if near.place == 0 else "├") + _line(near), _style(near))


def _role(near: Near) -> Text:
    through = "^" if near.relation and near.relation.through is not None else ""
    return Text(f"{near.role}{through}", _style(near))


def _ref(near: Near, width: int) -> Text:
    return Text(middle(cut(near.outcome.ref), width), REFERENCE)


def _here(near: Near, width: int) -> Text:
    """The resource that is shown, or what it is in and what is in it."""
    if not near.role:
        return Text(middle(cut(near.outcome.ref), width), f"bold {REFERENCE}")
    text = Text(f"  {near.role} ", SLATE)
    return text.append(middle(cut(near.outcome.ref), max(8, width - len(text))), REFERENCE)


def _state(near: Near) -> Text:
    status, resource = near.outcome.status, near.outcome.resource
    words = [
        ("missing", BAD) if near.missing else ("", ""),
        ("cycle", BAD) if near.cycle else ("", ""),
        (status, palette.RESOURCES[status]) if status is not Status.UNREPORTED else ("", ""),
        ("exported", "dim") if resource and resource.exported else ("", ""),
    ]
    return Text(" ").join(Text(word, style) for word, style in words if word)


_REF: Column[Near] = Column("resource", _ref, 12, 4)
_STATE: Column[Near] = Column("outcome", lambda near, _: _state(near), 7, 1)
_KIND: Column[Near] = Column("", lambda near, _: _role(near), 10)
BEFORE: tuple[Column[Near], ...] = (
    Column("resource", _ref, 12, 4, right=True),
    _STATE,
    Column("", lambda near, _: _role(near), 10, right=True),
    Column("", lambda near, _: _to_the_right(near), 4),
)
ABOVE: tuple[Column[Near], ...] = (Column("", lambda near, _: _downwards(near), 2), _KIND, _REF, _STATE)
HERE: tuple[Column[Near], ...] = (Column("resource", _here, 20, 4), _STATE)
AFTER: tuple[Column[Near], ...] = (Column("", lambda near, _: _from_the_left(near), 4), _KIND, _REF, _STATE)

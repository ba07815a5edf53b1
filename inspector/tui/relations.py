"""What one resource of a catalog needs, what needs it, what it is in and what is in it: a graph to walk along."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rich.text import Text
from textual.binding import Binding
from textual.containers import Container, VerticalScroll
from textual.widgets import Static

from inspector.explain.resource_outcomes import Status
from inspector.pages import palette
from inspector.pages.styles import BAD, ORANGE, REFERENCE, SLATE
from inspector.text import clean
from inspector.tui import resource_details
from inspector.tui.columns import Column
from inspector.tui.panes import Pane
from inspector.tui.part import Details, middle
from inspector.tui.resource_details import cut
from inspector.tui.rows import Rows
from inspector.tui.view import View

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from textual.widget import Widget

    from inspector.explain.catalog_graph import CatalogGraph, Neighbourhood, Relation
    from inspector.explain.resource_outcomes import Applied
    from inspector.protocol.documents import LogLine


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


COLUMNS = 110
"""Width of the terminal from which the three lists are side by side."""
LISTS = ("needs", "here", "after")
"""The ids of the lists, in the order in which an agent applies what is in them."""
TALL = 32
"""Height from which there are details below the lists (``View``)."""
MIN, PART = 8, 0.6
"""The least number of lines of the lists, and the greatest part of the screen."""
ALONE = 4
"""The least number of lines of the only list there is."""
STEPS = 100
"""Resources on the way back that are remembered."""


class Step(NamedTuple):
    """A resource that was shown before, and where the cursor was."""

    number: int
    focus: str
    cursor: int


class Relations(View):
    """What a resource needs, and what needs it, in the order of application. Enter goes on to the selected one."""

    BINDINGS = [
        Binding("backspace", "return", "Previous", key_display="Backspace"),
        Binding("left,h", "side(-1)", "To what it needs", show=False),
        Binding("right,l", "side(1)", "To what needs it", show=False),
        Binding("tab", "pane(1)", "Next list", show=False),
        Binding("shift+tab", "pane(-1)", "Previous list", show=False),
    ]
    DEFAULT_CSS = """
    Relations #graph { layout: vertical; height: 1fr; }
    Relations Pane { border: none; border-top: solid $border-blurred; height: 1fr; }
    Relations Pane:focus-within { border: none; border-top: solid $border; }
    Relations #nothing { height: auto; padding: 0 1; color: $text-muted; }
    Relations #why { height: auto; max-height: 3; padding: 0 1; background: $panel; }
    Relations #lower { height: 35%; display: none; }
    Relations #details { padding: 0 1; }
    Relations.-tall #lower, Relations.alone #lower { display: block; }
    Relations.alone #lower { height: 1fr; }
    Relations.beside #graph { layout: horizontal; }
    Relations.beside #graph Pane { width: 4fr; }
    Relations.beside #graph #here-pane { width: 3fr; }
    Relations #graph Pane.empty { display: none; }
    Relations.beside #lower { height: 1fr; }
    Relations Rows { scrollbar-size-vertical: 0; }
    Relations Rows > .rows--cursor { background: $surface; }
    Relations Rows:focus > .rows--cursor { background: $block-cursor-background; }
    """

    def __init__(
        self,
        number: int,
        graph: CatalogGraph,
        logs: Mapping[str, Sequence[LogLine]],
        resource: int,
        follow: Callable[[str], None],
    ) -> None:
        """Show a resource of the catalog of run ``number``; ``follow`` gets each that is shown later."""
        super().__init__()
        self.number, self.graph, self._logs, self._follow = number, graph, logs, follow
        self.around: Neighbourhood = graph.around(resource)
        self._way: list[Step] = []
        self.current = "here"
        """The list that has the focus, or had it before the details."""

    # -- what is shown ----------------------------------------------------------------------------------

    def body(self) -> Iterable[Widget]:
        with Container(id="graph"):
            for name in LISTS:
                with Pane(id=f"{name}-pane"):
                    yield Rows[Near]((), lambda near: (near.role, near.number, near.place), id=name)
        yield Static("", id="nothing", markup=False)
        yield Static("", id="why", markup=False)
        with Pane(id="lower", title="Details"), VerticalScroll(id="details"):
            yield Static("", markup=False)

    def heading(self) -> str:
        run = self.source.run(self.number)
        ref = self.graph.tree.refs[self.around.number]
        text = f"Relations of {middle(cut(ref), max(20, self.app.size.width - 50))}"
        text += f" in run {run.label} of {clean(run.name)}" if run else ""
        return text + (f", from {middle(cut(self.graph.tree.refs[self._way[-1].number]), 30)}" if self._way else "")

    def opened(self) -> None:
        self.lay_out()
        self._fill("here")

    def lay_out(self) -> None:
        """Put the lists side by side, or one above the other."""
        beside = self.app.size.width >= COLUMNS
        self.set_class(beside, "beside")
        columns = {"needs": BEFORE if beside else ABOVE, "here": HERE, "after": AFTER}
        for name in LISTS:
            self.list(name).set_columns(columns[name])
        self._share()
        self.retitle()

    def _share(self) -> None:
        """Leave to the details what the lists do not need; a resource without relationships always has details."""
        room = self.app.size.height
        lines = max(len(self.list(name).items) for name in LISTS) + 2
        alone = not (self.around.needs or self.around.needed_by)
        shared = alone or (self.has_class("beside") and room >= TALL)
        least = MIN if not alone else ALONE
        self.query_one("#graph").styles.height = max(least, min(lines, int(room * PART))) if shared else "1fr"
        self.set_class(alone, "alone")

    def list(self, name: str) -> Rows[Near]:
        """One of the three lists."""
        found: Rows[Near] = self.query_one(f"#{name}", Rows)
        return found

    def _fill(self, focus: str, cursor: int = 0) -> None:
        around, tree = self.around, self.graph.tree
        middle_ = [("", around.number)]
        middle_ += [("in", number) for number in around.containers]
        middle_ += [("contains", number) for number in around.contents]
        self.list("needs").show([*self._near(around.needs)])
        self.list("after").show([*self._near(around.needed_by)])
        self.list("here").show(
            [
                Near(number, tree.outcome(number), None, role, place, place == len(middle_) - 1, tree.missing(number),
                     number in self.graph.cycles)
                for place, (role, number) in enumerate(middle_)
            ]
        )  # fmt: skip
        more = around.more
        titles = {
            "needs": f"Needs {_many(len(around.needs), more[1])}: applied before",
            "here": f"Contained in {len(around.containers)}, contains {_many(len(around.contents), more[0])}",
            "after": f"Needed by {_many(len(around.needed_by), more[2])}: applied after",
        }
        for name in LISTS:
            pane = self.query_one(f"#{name}-pane", Pane)
            pane.name_it(titles[name])
            pane.set_class(not self.list(name).items, "empty")
            self.list(name).move_to(cursor if name == focus else 0)
        nothing = NOTHING[bool(around.needs), bool(around.needed_by)]
        self.query_one("#nothing", Static).update(nothing)
        self.query_one("#nothing").set_class(not nothing, "gone")
        self.current = focus if self.list(focus).items else "here"
        self.list(self.current).focus()
        self._share()
        self._show_details()
        self.retitle()

    def _near(self, relations: Sequence[Relation]) -> Iterable[Near]:
        tree = self.graph.tree
        for place, relation in enumerate(relations):
            yield Near(relation.other, tree.outcome(relation.other), relation, relation.kind, place,
                       place == len(relations) - 1, tree.missing(relation.other), relation.cycle)  # fmt: skip

    @property
    def selected(self) -> Near | None:
        """The selected resource."""
        return self.list(self.current).item

    def _show_details(self) -> None:
        near = self.selected
        if near is None:
            return
        self.query_one("#why", Static).update(clean(self._why(near)))
        details = Details()
        resource_details.describe(near.outcome, self._logs.get(near.outcome.ref, ()), details)
        self.query_one("#details Static", Static).update(details.table)
        self.query_one("#details").scroll_home(animate=False)

    def _why(self, near: Near) -> str:
        """How the selected resource is related to the one shown, and what is wrong with that."""
        if near.missing:
            return f"{cut(near.outcome.ref)} is not in the catalog: {MISSING}"
        if near.relation:
            words = self.graph.stated(near.relation)
        else:
            words = _ROLES[near.role] or f"{near.outcome.status.capitalize()}. {near.outcome.place}".strip()
        return f"{words}{CYCLE if near.cycle else ''}"

    # -- what is pressed --------------------------------------------------------------------------------

    def on_rows_moved(self, event: Rows.Moved[Near]) -> None:
        """Show the selected resource."""
        event.stop()
        self._show_details()

    def on_descendant_focus(self) -> None:
        """Show the selected resource of the list that has the focus now."""
        focused = next((name for name in LISTS if self.ready and self.list(name).has_focus), self.current)
        if focused != self.current:
            self.current = focused
            self._show_details()

    def on_rows_chosen(self, event: Rows.Chosen[Near]) -> None:
        """Go on to a resource."""
        event.stop()
        self.action_walk()

    def action_walk(self) -> None:
        """Show the neighbourhood of the selected resource."""
        near, focus = self.selected, self.current
        if near is None or near.number == self.around.number:
            self.show_message("This is the resource that is shown: Left and Right lead to the others.")
            return
        self._way = [*self._way[1 - STEPS :], Step(self.around.number, focus, self.list(focus).at)]
        self._show(near.number, focus)

    def action_return(self) -> None:
        """Show the resource that was shown before this one."""
        if not self._way:
            self.show_message("This is the resource with which you began; Esc leads back to the catalog.")
            return
        step = self._way.pop()
        self._show(step.number, step.focus, step.cursor)

    def _show(self, number: int, focus: str, cursor: int = 0) -> None:
        self.show_message("")
        self.around = self.graph.around(number)
        self._fill(focus, cursor)
        self._follow(self.graph.tree.refs[number])

    def action_side(self, by: int) -> None:
        """Go to the list on the left or the right."""
        filled = [name for name in LISTS if self.list(name).items]
        at = filled.index(self.current) + by
        if not 0 <= at < len(filled):
            self.show_message("It needs nothing else." if by < 0 else "Nothing else needs it.")
            return
        self.show_message("")
        self.list(filled[at]).focus()

    def action_pane(self, by: int) -> None:
        """Go to the next list, and from the last one to the details."""
        details = self.query_one("#details")
        targets: list[Widget] = [self.list(name) for name in LISTS if self.list(name).items]
        targets += [details] if self.query_one("#lower").display else []
        here = details if details.has_focus else self.list(self.current)
        targets[(targets.index(here) + by) % len(targets)].focus()


MISSING = (
    "nothing was declared with this reference, or it is virtual and was not realized. An agent refuses such a catalog "
    "as a whole: Could not retrieve dependency."
)
_OWN = "what an agent adds by itself (a file needs its directory) is not in a catalog."
NOTHING = {
    (False, False): "It needs nothing and nothing needs it: no require, before, subscribe or notify is set on it or on "
    f"what it is in, and none names them; {_OWN}",
    (False, True): f"It needs nothing: it has no require or subscribe, and no before or notify names it; {_OWN}",
    (True, False): f"Nothing needs it: it has no before or notify, and no require or subscribe names it; {_OWN}",
    (True, True): "",
}
"""Why a list is not there, by whether it needs anything, and whether anything needs it."""
CYCLE = "  This is part of a cycle: an agent applies nothing of the catalog."
_ROLES = {
    "": "",
    "in": "It contains the resource, and what it needs or what needs it holds for all that it contains.",
    "contains": "It is in the resource.",
}


def _many(number: int, more: int) -> str:
    return f"{number:,} of {number + more:,}" if more else str(number)

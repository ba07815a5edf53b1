"""The catalog of one run: its resources as a table or as a tree, with their results if there is a report."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text
from textual.binding import Binding

from inspector.explain import resource_outcomes
from inspector.explain.catalog_graph import CatalogGraph
from inspector.explain.resource_outcomes import Applied, Status
from inspector.model import Place
from inspector.pages import catalog_tree, palette
from inspector.pages.catalog_tree import TreeLine
from inspector.pages.styles import BAD, REFERENCE
from inspector.protocol import documents as d
from inspector.protocol.kinds import Kind
from inspector.text import clean, seconds
from inspector.tui import resource_details
from inspector.tui.columns import Column
from inspector.tui.panes import Pane
from inspector.tui.part import Details, PartView, middle
from inspector.tui.resource_details import cut, time
from inspector.tui.rows import Folding

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

    from textual.widget import Widget

    from inspector.analysis.analyzer import Step
    from inspector.explain.containment import Containment
    from inspector.tui.rows import Rows
    from inspector.tui.view import Searchable


class TreeRows(Folding[TreeLine]):
    """A catalog by containment: stages, classes, defines and resources."""

    def __init__(self, id: str) -> None:  # noqa: A002 - Textual's own name
        super().__init__(_TREE_COLUMNS, lambda line: line.number, id=id)
        self._tree: Containment | None = None
        self._opened: set[int] = set()
        self._wanted: Collection[int] | None = None

    def load(self, tree: Containment, wanted: Collection[int] | None) -> None:
        """Show a tree; with ``wanted`` only these resources, with their containers open."""
        if tree is not self._tree:
            self._tree, self._opened = tree, catalog_tree.first_open(tree)
        if wanted is not None and wanted != self._wanted:
            self._opened |= catalog_tree.with_containers(tree, wanted)
        self._wanted = wanted
        self._fill()

    def _fill(self) -> None:
        if self._tree is not None:
            self.show(catalog_tree.shown(self._tree, self._opened, self._wanted))

    def reveal(self, number: int) -> bool:
        """Go to a resource, and open what it is in; False if it is not among those that are wanted."""
        if self._tree is None:
            return False
        closed = set(self._tree.above(number, len(self._tree.refs))) - self._opened
        if closed:
            self._opened |= closed
            self._fill()
        return self.go(number)

    # -- branches ---------------------------------------------------------------------------------------

    def marked(self, item: TreeLine) -> range:
        return range(0 if item.below is None else len(item.lead) + 2)

    def is_open(self, item: TreeLine) -> bool:
        return item.open

    def on_folding_fold(self, event: Folding.Fold[TreeLine]) -> None:
        """Open or close a branch; of a line without an open one, go to its container."""
        event.stop()
        self.fold(event.item, fold=event.fold)

    def fold(self, line: TreeLine, *, fold: bool) -> None:
        """Open or close the branch of a line; fold without an open one: go to its container."""
        if not fold:
            self._opened.add(line.number)
        elif line.open:
            self._opened.discard(line.number)
        elif self._tree and (parent := self._tree.parents[line.number]) is not None:
            self.go(parent)
            return
        self._fill()

    # -- searching --------------------------------------------------------------------------------------

    def search(self, pattern: str, *, forward: bool = True, again: bool = False) -> bool:
        """Go to the next resource that contains a text (ignoring case), also in branches that are closed."""
        self.pattern = pattern.casefold()
        self.refresh()
        tree = self._tree
        if not self.pattern or tree is None or self.item is None:
            return False
        wanted = None if self._wanted is None else catalog_tree.with_containers(tree, self._wanted)
        order = [number for number in catalog_tree.order(tree) if wanted is None or number in wanted]
        order = order if forward else order[::-1]
        at = order.index(self.item.number)
        for number in (*order[at + again :], *order[: at + again]):
            if self.pattern in self._text(tree, number):
                return self.reveal(number)
        return False

    @staticmethod
    def _text(tree: Containment, number: int) -> str:
        outcome = tree.outcome(number)
        return f"{outcome.ref} {outcome.status} {outcome.place}".casefold()


def _name(line: TreeLine, width: int) -> Text:
    text = Text.assemble((line.lead, "dim"), (line.mark, "dim" if line.below is None else ""))
    return text.append(middle(cut(line.outcome.ref), max(8, width - len(text))), REFERENCE)


def _outcome(line: TreeLine) -> Text:
    resource = line.outcome.resource
    if line.note:
        return Text(line.note, BAD)
    if line.below is not None and line.below.counts:
        return catalog_tree.counts(line.below.counts)
    status = line.outcome.status if line.below is None else ""
    exported = " exported" if resource and resource.exported else ""
    return Text.assemble((status, palette.RESOURCES[line.outcome.status]), (exported, "dim"))


def _took(line: TreeLine) -> str:
    took = line.outcome.time if line.below is None else line.below.time
    return "-" if took is None else seconds(took)


_TREE_COLUMNS: tuple[Column[TreeLine], ...] = (
    Column("resource", _name, 30, 4),
    Column("outcome", lambda line, _: _outcome(line), 14, 2),
    Column("time", lambda line, _: _took(line), 8, right=True, least=60),
    Column("file", lambda line, width: middle(line.outcome.place, width), 12, 2, least=60),
    Column("source", lambda line, _: clean(", ".join(line.outcome.sources)), 8, 1, least=140),
)


_RANK = {status: place for place, status in enumerate(Status)}
_BAD = (Status.FAILED, Status.RESTART)


class Catalog(PartView[Applied]):
    """The resources of a run's catalog, as a table or as a tree. Enter opens the report with the result of one."""

    TITLE = "Resources"
    BINDINGS = [
        Binding("w", "tree", "Tree"),
        Binding("r", "relations", "Relations"),
        Binding("less_than_sign", "earlier", "Previous catalog", key_display="<", show=False),
        Binding("o", "catalog", "Open the catalog", show=False),
    ]
    COLUMNS = (
        Column("type", lambda item, _: clean(item.type), 12, 1, sort=lambda item: item.type),
        Column("title", lambda item, width: middle(cut(item.title), width), 16, 4, sort=lambda item: item.title),
        Column("status", lambda item, _: Text(item.status, style=palette.RESOURCES[item.status]), 14,
               sort=lambda item: _RANK[item.status]),
        Column("time", lambda item, _: time(item), 10, right=True, sort=lambda item: -(item.time or -1.0)),
        Column("events", lambda item, _: str(len(item.result.events)) if item.result and item.result.events else "-", 6,
               right=True, least=100, sort=lambda item: -len((item.result.events if item.result else None) or ())),
        Column("file", lambda item, width: middle(item.place, width), 12, 4, least=60,
               sort=lambda item: (item.file or "", f"{item.line or '':>8}")),
        Column("source", lambda item, _: clean(", ".join(item.sources)), 8, 1, least=140,
               sort=lambda item: item.sources),
    )  # fmt: skip

    def __init__(self, number: int) -> None:
        """Show the last usable catalog of run ``number``."""
        super().__init__(number)
        self._back = 0
        self._catalogs: list[int] = []
        self._at: int | None = None
        self._reported: int | None = None
        self._logs: Mapping[str, Sequence[d.LogLine]] = {}
        self._outcomes: Sequence[Applied] = ()
        self._edges: Sequence[d.Edge] = ()
        self._graph: CatalogGraph | None = None
        """The relationships of the resources; None: they are being read."""
        self._then: Callable[[], None] | None = None
        """What waits for the graph."""

    def key(self, item: Applied) -> str:
        return item.ref

    def state_of(self, item: Applied) -> str:
        return item.status

    def differs(self, item: Applied) -> bool:
        return item.status.differs

    def prepare(self) -> Callable[[], Sequence[Applied]]:
        source, back = self.source, self._back
        briefs = source.briefs(self.number)
        # A response with another status does not contain a catalog.
        catalogs = [
            brief.seq for brief in briefs if brief.request_kind is Kind.CATALOG and brief.status in range(200, 300)
        ]
        reports = [
            brief.seq for brief in briefs if brief.request_kind is Kind.REPORT and brief.method in ("PUT", "POST")
        ]

        def read() -> Sequence[Applied]:
            usable: list[int] = []
            found: d.Catalog | None = None
            end: int | None = None
            for seq in reversed(catalogs):
                catalog = _catalog(source.step(seq))
                if catalog is None:
                    continue
                usable.insert(0, seq)
                if len(usable) == back + 1:
                    found = catalog
                elif len(usable) <= back:
                    end = seq
            begin = usable[-back - 1] if back < len(usable) else 0
            sent = next((seq for seq in reversed(reports) if seq > begin and (end is None or seq < end)), None)
            report = _report(source.step(sent)) if sent is not None else None
            self._catalogs = usable
            self._at, self._reported = begin or None, sent if report else None
            outcomes = resource_outcomes.resources(found, report)
            self._logs = resource_outcomes.logged(outcomes, report.logs if report else ())
            self._outcomes, self._edges = outcomes, found.edges if found else ()
            # The causes of a failed run come first, then the order of the catalog.
            return sorted(outcomes, key=lambda item: _RANK[item.status] if item.status in _BAD else len(Status))

        return read

    def nothing(self) -> str:
        run = self.run
        if self._at is not None:
            return "The catalog has no resources."
        verdict = f": {run.verdict.message}" if run and run.verdict else "."
        return f"This run has no catalog{verdict}"

    def sums(self, items: Sequence[Applied]) -> str:
        totals = resource_outcomes.totals(items)
        counted = ", ".join(f"{number} {status}" for status, number in totals.by_status.items())
        which = "report only" if self._at is None else f"catalog {self._number} of {len(self._catalogs)}"
        report = "" if self._reported else ", no report"
        took = f", evaluated in {seconds(totals.time)}" if self._reported else ""
        return f"{which}{report}: {len(items)} resources{took}; {counted}"

    @property
    def _number(self) -> int:
        return self._catalogs.index(self._at) + 1 if self._at in self._catalogs else 0

    def proof(self, item: Applied) -> int | None:
        return self._reported if item.result and self._reported else self._at

    def place(self, item: Applied) -> Place:
        part = "resources" if item.result and self._reported else ""
        return Place("meaning", part, item.ref, item.title)

    def describe(self, item: Applied, details: Details) -> None:
        resource_details.describe(item, self._logs.get(item.ref, ()), details)

    # -- the tree and the graph -------------------------------------------------------------------------

    def lists(self) -> Iterable[Widget]:
        yield from super().lists()
        tree = TreeRows("tree")
        tree.add_class("gone")
        yield tree

    @property
    def branches(self) -> TreeRows:
        """The list that shows the catalog as a tree."""
        return self.query_one(TreeRows)

    @property
    def as_tree(self) -> bool:
        """Whether the catalog is shown as a tree."""
        return not self.branches.has_class("gone")

    @property
    def selected(self) -> Applied | None:
        if not self.as_tree:
            return super().selected
        return self.branches.item.outcome if self.branches.item else None

    def show_items(self, items: Sequence[Applied]) -> None:
        if self._graph is None:
            self._read_graph()
        if self.as_tree and self._graph is not None:
            self._show_tree(self._graph, items)
        else:
            super().show_items(items)

    def _show_tree(self, graph: CatalogGraph, items: Sequence[Applied]) -> None:
        whole = len(items) == len(self._outcomes)
        numbers = (graph.tree.find(item.ref) for item in items)
        self.branches.load(graph.tree, None if whole else {number for number in numbers if number is not None})

    def _read_graph(self) -> None:
        """Read the relationships in a thread: in a large catalog they take a while."""
        outcomes, edges = self._outcomes, self._edges

        def read() -> None:
            graph = CatalogGraph(outcomes, edges)
            _ = graph.tree.below, graph.cycles  # computed here, not when a key is pressed
            self.later(self._take_graph, graph, outcomes)

        self.run_worker(read, thread=True, exclusive=True, group="graph")

    def _take_graph(self, graph: CatalogGraph, outcomes: Sequence[Applied]) -> None:
        if outcomes is self._outcomes:
            self._graph = graph
            then, self._then = self._then, None
            if then is not None:
                self.show_message("")
                then()

    def _with_graph(self, then: Callable[[], None]) -> None:
        if not self._outcomes:
            self.show_message(self._trouble or self.nothing())
        elif self._graph is not None:
            then()
        else:
            self._then = then
            self.show_message("reading the relationships ...", stays=True)

    def _take(self, items: Sequence[Applied], total: str, trouble: str) -> None:
        self._graph = None
        super()._take(items, total, trouble)

    def action_tree(self) -> None:
        """Show the tree, or the table again; the cursor stays on its resource."""
        self._with_graph(self._answer_and_toggle)

    def _answer_and_toggle(self) -> None:
        # The layout takes a while: respond to the key first.
        self.answer(f"drawing the {'table' if self.as_tree else 'tree'} …")
        self.call_after_refresh(self._toggle)

    def _toggle(self) -> None:
        if not self.is_attached:
            return  # Escape was pressed meanwhile
        item, table = self.selected, self.rows
        table.toggle_class("gone")
        self.branches.set_class(not table.has_class("gone"), "gone")
        self.query_one("#upper", Pane).name_it("Containment" if self.as_tree else self.TITLE)
        self.apply_filters()
        if item is not None:
            self._select(item.ref)
        (self.branches if self.as_tree else table).focus()

    def _select(self, ref: str) -> None:
        """Move the cursor to a resource."""
        number = self._graph.tree.find(ref) if self._graph else None
        if not self.as_tree:
            self.rows.go(ref)
        elif number is not None:
            self.branches.reveal(number)

    def action_relations(self) -> None:
        """Show what the selected resource needs, and what needs it."""
        self._with_graph(self._relations)

    def _relations(self) -> None:
        item, graph = self.selected, self._graph
        number = graph.tree.find(item.ref) if item and graph else None
        if graph is not None and number is not None:
            # A screen takes a while: respond to the key first.
            self.answer(f"relations of {middle(cut(graph.tree.refs[number]), 60)} …")
            self.call_after_refresh(self._show_relations, graph, number)

    def _show_relations(self, graph: CatalogGraph, number: int) -> None:
        from inspector.tui.relations import Relations

        self.app.push_screen(Relations(self.number, graph, self._logs, number, self._select))

    def on_rows_chosen(self, event: Rows.Chosen[Any]) -> None:
        """Open or close the branch of a container; of a resource open the evidence, as in the table."""
        line = event.item
        if isinstance(line, TreeLine) and line.below is not None:
            event.stop()
            event.prevent_default()
            self.branches.fold(line, fold=line.open)

    def search_target(self) -> Searchable | None:
        """The tree, if it is shown; otherwise as on all screens."""
        focused = self.focused
        return self.branches if self.as_tree and focused is not self.query_one("#details") else super().search_target()

    # -- keys -------------------------------------------------------------------------------------------

    def action_earlier(self) -> None:
        """Show the previous catalog, and after the first one the last again."""
        if self._reading:
            return
        if len(self._catalogs) < 2:
            self.show_message("This run has no earlier catalog." if self._catalogs else "This run has no catalog.")
            return
        self._back = (self._back + 1) % len(self._catalogs)
        self.read()

    def action_catalog(self) -> None:
        """Show the exchange with the catalog."""
        if self._at is not None:
            self.inspector.open_exchange(self.number, self._at)


def _catalog(step: Step | None) -> d.Catalog | None:
    return step.response if step and isinstance(step.response, d.Catalog) else None


def _report(step: Step | None) -> d.Report | None:
    return step.request if step and isinstance(step.request, d.Report) else None

"""The list that shows a catalog as a tree, with branches that open and close."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from inspector.pages import catalog_tree, palette
from inspector.pages.catalog_tree import TreeLine
from inspector.pages.styles import BAD, REFERENCE
from inspector.text import clean, seconds
from inspector.tui.columns import Column
from inspector.tui.folding import Folding
from inspector.tui.part import middle
from inspector.tui.resource_details import cut

if TYPE_CHECKING:
    from collections.abc import Collection

    from inspector.explain.containment import Containment


class TreeRows(Folding[TreeLine]):
    """A catalog by containment: stages, classes, defines and resources."""

    def __init__(self, id: str) -> None:  # noqa: A002 - Textual's own name
        super().__init__(_COLUMNS, lambda line: line.number, id=id)
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


_COLUMNS: tuple[Column[TreeLine], ...] = (
    Column("resource", _name, 30, 4),
    Column("outcome", lambda line, _: _outcome(line), 14, 2),
    Column("time", lambda line, _: _took(line), 8, right=True, least=60),
    Column("file", lambda line, width: middle(line.outcome.place, width), 12, 2, least=60),
    Column("source", lambda line, _: clean(", ".join(line.outcome.sources)), 8, 1, least=140),
)

"""The items of a list in the order and the columns that the user wants, without a cursor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from textual.binding import Binding
from textual.geometry import Size
from textual.message import Message
from textual.scroll_view import ScrollView

from inspector.tui import columns
from inspector.tui.columns import Layout

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inspector.tui.columns import Column


class Arranged[T](ScrollView):
    """Items in columns, in an order.

    A click on a title sorts by it, a second click reverses the order; ``s`` sorts by the next column, ``R`` reverses.
    ``#`` chooses the columns and the order, which are remembered.
    """

    BINDINGS = [
        Binding("s", "sort", "Sort by the next column", show=False),
        Binding("R", "reverse", "Reverse the order", show=False),
        Binding("number_sign", "columns", "Columns", key_display="#", show=False),
    ]

    class Refused(Message):
        """What was asked for is not possible with this list."""

        def __init__(self, why: str) -> None:
            super().__init__()
            self.why = why

    class Choosing(Message):
        """The user wants to choose the columns of a list."""

        def __init__(self, rows: Arranged[Any]) -> None:
            super().__init__()
            self.rows = rows

    def __init__(self, wanted: Sequence[Column[T]], sort: int | None, id: str | None, *, descending: bool) -> None:  # noqa: A002
        """``sort`` is the column to sort by initially."""
        super().__init__(id=id)
        self.columns = tuple(wanted)
        self._sort, self._descending = sort, descending
        self._given: Sequence[T] = ()
        self.items: list[T] = []
        """The items in the order shown."""
        self._chosen: Layout | None = None
        """What the user chose; None: that was not looked up yet."""
        self._needs: list[int] = []
        """What each column needs for its texts; it never gets less, so that columns do not move to and fro."""
        self._shown: list[tuple[Column[T], int]] = []

    # -- items ------------------------------------------------------------------------------------------

    def give(self, items: Sequence[T]) -> None:
        """Replace the items."""
        self._given = items
        if self._chosen is None:
            self._choose(columns.remembered(self.table) or Layout())
        self._arrange()
        if len(self.columns) > 1:  # a single one has all of the width
            before = self._needs if len(self._needs) == len(self.columns) else [0] * len(self.columns)
            self._needs = [
                max(column.needs(self.items), need) for column, need in zip(self.columns, before, strict=True)
            ]

    def _arrange(self) -> None:
        self.items = list(self._given)
        if self._sort is not None and (by := self.columns[self._sort].sort) is not None:
            self.items.sort(key=by, reverse=self._descending)
        elif self._descending:
            self.items.reverse()

    def rearrange(self) -> None:
        """Show the items in another order."""
        self._arrange()
        self.refresh()

    def set_columns(self, wanted: Sequence[Column[T]]) -> None:
        """Show the items in other columns."""
        self.columns, self._needs, self._sort = tuple(wanted), [], None
        self.give(self._given)
        self.fit()

    def offers(self, action: str) -> bool:
        """Whether an action is possible with these columns; the keys of others say why they do nothing."""
        if action in ("sort", "reverse"):
            return any(column.sort for column in self.columns)
        return action != "columns" or len(self.columns) > 1

    # -- order ------------------------------------------------------------------------------------------

    def action_sort(self) -> None:
        """Sort by the next column, and after the last one restore the original order."""
        able = [self.columns.index(column) for column, _ in self._shown if column.sort]
        order: list[int | None] = [None, *able]
        if not able:
            self.post_message(self.Refused("The order of this list is fixed."))
        else:
            self.sort_by(order[(order.index(self._sort) + 1) % len(order)] if self._sort in order else None)

    def action_reverse(self) -> None:
        """Reverse the order, also the original one."""
        self._descending = not self._descending
        self.rearrange()

    def sort_by(self, column: int | None) -> None:
        """Sort by a column, or reverse the order if it is sorted by it already."""
        if column is not None and self.columns[column].sort is None:
            return
        self._descending = column is not None and column == self._sort and not self._descending
        self._sort = column
        self.fit()
        self.rearrange()

    # -- columns ----------------------------------------------------------------------------------------

    @property
    def table(self) -> str:
        """The name under which the layout of this list is remembered."""
        names = " ".join(column.name for column in self.columns)
        return f"{type(self.screen).__name__}.{self.id}" if self.id else names

    @property
    def room(self) -> int:
        """The width for the columns: beside the scrollbar, also before it is there."""
        scrolls = self.size.height < len(self.items) + 1
        return max(0, self.content_size.width - scrolls * self.styles.scrollbar_size_vertical)

    @property
    def arrangement(self) -> Layout:
        """The columns and the order of this list."""
        sort = self.columns[self._sort].name if self._sort is not None else ""
        return msgspec.structs.replace(self._chosen or Layout(), sort=sort, descending=self._descending)

    def choose(self, layout: Layout) -> None:
        """Use this layout from now on, the next time too."""
        columns.remember(self.table, layout)
        self._choose(layout)
        self.fit()
        self.rearrange()

    def _choose(self, layout: Layout) -> None:
        first, self._chosen = self._chosen is None, layout
        if layout.sort or not first:
            able = [column.name for column in self.columns if column.sort]
            names = [column.name for column in self.columns]
            self._sort = names.index(layout.sort) if layout.sort in able else None
            self._descending = layout.descending

    def action_columns(self) -> None:
        """Choose the columns and the order."""
        if len(self.columns) < 2:
            self.post_message(self.Refused("This is a text: it has no columns."))
        else:
            self.post_message(self.Choosing(self))

    def fit(self) -> None:
        """Give each column its width."""
        layout = self._chosen or Layout()
        needs = dict(zip(self.columns, self._needs or [column.width for column in self.columns], strict=True))
        if self._sort is not None:  # its title has a mark
            by = self.columns[self._sort]
            needs[by] = max(needs[by], len(by.title) + 2)
        shown = [column for column in self.columns if layout.shows(column, self.room)]
        given = columns.widths(shown, [needs[column] for column in shown], self.room)
        self._shown = [*zip(shown, given, strict=True)]
        width = sum(given) + len(given) - 1
        self.virtual_size = Size(max(width, 1), len(self.items) + 1)
        self.refresh()

    def column_at(self, x: int) -> int | None:
        """The column that is drawn at a place; None: none."""
        for column, width in self._shown:
            if x < width + 1:
                return self.columns.index(column)
            x -= width + 1
        return None

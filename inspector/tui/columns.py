"""The columns of a list: their widths, how a line of cells is drawn, and which of them the user wants."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from rich.cells import cell_len, set_cell_size
from rich.segment import Segment
from rich.text import Text
from textual.strip import Strip

from inspector.tui import user_state

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rich.console import Console
    from rich.style import Style

WIDEST = 400
"""Cells of a column that are measured and searched."""
SAMPLE = 100
"""Lines of a list that are measured."""
PADDING = 2
"""Maximum number of cells between two columns, beyond the one that is always there."""
_FILE = "columns.json"


@dataclass(frozen=True)
class Column[T]:
    """One column of a list."""

    title: str
    cell: Callable[[T, int], Text | str]
    """Returns the text of an item; the second argument is the column's width."""
    width: int
    """The width that it has if the list is narrow; less, if its texts are shorter."""
    grows: int = 0
    """Its share of the remaining width while its texts do not fit."""
    sort: Callable[[T], Any] | None = None
    """The key to sort by when the title is clicked; None: not sortable."""
    least: int = 0
    """The column is hidden if the list is narrower than this, unless the user wants to see it."""
    right: bool = False
    """Whether the text is right-aligned."""
    drawn: bool = False
    """Whether it is a picture, which fills its width and is not searched."""
    named: str = ""
    """Its name if that is not its title."""

    @property
    def name(self) -> str:
        """What the user calls it; empty: it cannot be chosen."""
        return self.named or self.title

    def needs(self, items: Sequence[T]) -> int:
        """The width of its title and of its texts, as far as a sample of the items tells."""
        wide = cell_len(self.title) or self.width
        if self.drawn:
            return max(wide, self.width)
        for at in sampled(len(items)):
            text = self.cell(items[at], WIDEST)
            wide = max(wide, text.cell_len if isinstance(text, Text) else cell_len(text))
        return min(wide, WIDEST)


def sampled(number: int) -> range:
    """The places of a sample: all of a short list, else evenly spread."""
    return range(0, number, max(1, -(-number // SAMPLE)))


def widths(columns: Sequence[Column[Any]], needs: Sequence[int], room: int) -> list[int]:
    """The widths of columns that need so many cells for their texts.

    No text is cut while another column has more room than it needs, or a picture more than twice its width. What
    remains then is for pictures; if there are none, it spaces the columns that have a name a little, and the last one
    that grows has the rest.
    """
    given = [min(column.width, need) for column, need in zip(columns, needs, strict=True)]
    enough = [2 * column.width if column.drawn else need for column, need in zip(columns, needs, strict=True)]
    spare = room - sum(given) - (len(columns) - 1)
    while spare > 0 and (hungry := [at for at in range(len(columns)) if given[at] < enough[at]]):
        shares = sum(columns[at].grows or 1 for at in hungry)
        before = spare
        for at in hungry:
            more = min(before * (columns[at].grows or 1) // shares, enough[at] - given[at])
            given[at] += more
            spare -= more
        if spare == before:  # less than a cell for each
            for at in hungry[:spare]:
                given[at] += 1
                spare -= 1
    if spare > 0 and columns:
        pictures = [at for at, column in enumerate(columns) if column.drawn]
        named = pictures or [at for at, column in enumerate(columns) if column.name]
        each = spare // max(1, len(named))
        each = each if pictures else min(PADDING, each)
        for at in named:
            given[at] += each
        last = pictures[-1] if pictures else max((at for at, column in enumerate(columns) if column.grows), default=-1)
        given[last] += spare - each * len(named)
    return given


def drawn_line(cells: Iterable[tuple[Text | str, int, bool]], style: Style, console: Console) -> Strip:
    """A line of texts, with the width of each and whether it is right-aligned; a space follows each."""
    segments: list[Segment] = []
    plain = ""
    for cell, room, right in cells:
        if isinstance(cell, str):
            plain += f"{_padded(cell, room, right=right)} "
            continue
        if plain:
            segments.append(Segment(plain, style))
        text = _fitted(cell.copy(), room, right=right)
        base = style + console.get_style(text.style)
        segments += [
            Segment(segment.text, base + segment.style if segment.style else base) for segment in text.render(console)
        ]
        plain = " "
    return Strip([*segments, Segment(plain, style)])


def _padded(text: str, width: int, *, right: bool) -> str:
    length = cell_len(text)
    if length > width:
        return set_cell_size(text, width - 1) + "…" if width else ""
    return " " * (width - length) + text if right else text + " " * (width - length)


def _fitted(text: Text, width: int, *, right: bool = False) -> Text:
    text.end = ""
    text.truncate(width, overflow="ellipsis")
    if right:
        text.pad_left(max(0, width - text.cell_len))
    else:
        text.pad_right(max(0, width - text.cell_len))
    return text


class Layout(msgspec.Struct, frozen=True):
    """What the user wants of a list: its columns by name, and its order."""

    hidden: frozenset[str] = frozenset()
    shown: frozenset[str] = frozenset()
    """Those that would be hidden because the list is narrow."""
    sort: str = ""
    """Empty: the list has its own order."""
    descending: bool = False

    def shows(self, column: Column[Any], room: int) -> bool:
        """Whether a column is shown in a list of this width."""
        return column.name not in self.hidden and (room >= column.least or column.name in self.shown)

    def with_column(self, name: str, *, shown: bool) -> Layout:
        """This with a column shown, or hidden."""
        if shown:
            return msgspec.structs.replace(self, hidden=self.hidden - {name}, shown=self.shown | {name})
        return msgspec.structs.replace(self, hidden=self.hidden | {name}, shown=self.shown - {name})

    def sorted_by(self, name: str) -> Layout:
        """This sorted by a column; in reverse if it is sorted by it, and then in the list's own order."""
        if self.sort != name:
            return msgspec.structs.replace(self, sort=name, descending=False)
        return msgspec.structs.replace(self, sort="" if self.descending else name, descending=not self.descending)


def remembered(table: str) -> Layout | None:
    """The layout of a table that the user chose; None: none. Never raises."""
    return _all().get(table)


def remember(table: str, layout: Layout) -> None:
    """Use this layout for a table from now on. Never raises."""
    layouts = {**_all(), table: layout}
    if layout == Layout():
        del layouts[table]
    user_state.write(_FILE, msgspec.json.format(msgspec.json.encode(layouts).decode(), indent=1))


def _all() -> dict[str, Layout]:
    with contextlib.suppress(ValueError, RecursionError, msgspec.MsgspecError):
        return msgspec.json.decode(user_state.read(_FILE), type=dict[str, Layout])
    return {}

"""A list of lines with columns. Only the visible lines are drawn, so a hundred thousand lines cost as much as forty."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from textual.binding import Binding
from textual.geometry import Region
from textual.message import Message
from textual.strip import Strip

from inspector.tui.arranged import Arranged
from inspector.tui.columns import WIDEST, drawn_line

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator, Sequence

    from rich.style import Style
    from rich.text import Text
    from textual import events

    from inspector.tui.columns import Column

FLASH = 2.0
"""Seconds for which a new item stands out."""


class About[T](Message):
    """A message about one item of a list."""

    def __init__(self, rows: Rows[T], item: T) -> None:
        super().__init__()
        self.rows = rows
        self.item = item


class Rows[T](Arranged[T], can_focus=True):
    """A list of items, one per line, under a line of titles, with a cursor."""

    BINDINGS = [
        Binding("up,k", "move(-1)", "Up", show=False),
        Binding("down,j", "move(1)", "Down", show=False),
        Binding("pageup,ctrl+b", "page(-1)", "Page up", show=False),
        Binding("pagedown,ctrl+f", "page(1)", "Page down", show=False),
        Binding("home,g", "to(0)", "First", show=False),
        Binding("end,G", "to(-1)", "Last", show=False),
        Binding("enter", "choose", "Open", key_display="Enter"),
    ]
    COMPONENT_CLASSES = {"rows--title", "rows--cursor", "rows--match", "rows--new"}
    DEFAULT_CSS = """
    Rows { background: $surface; height: 1fr; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 1; }
    Rows > .rows--title { color: $text-muted; text-style: bold; }
    Rows > .rows--cursor { background: $block-cursor-blurred-background; }
    Rows:focus > .rows--cursor { background: $block-cursor-background; text-style: bold; }
    Rows > .rows--match { background: $warning 30%; }
    Rows > .rows--new { background: $success 25%; }
    """

    class Moved[U](About[U]):
        """The cursor is on another item."""

    class Chosen[U](About[U]):
        """Enter was pressed on an item, or the selected item was clicked."""

    def __init__(
        self,
        columns: Sequence[Column[T]],
        key: Callable[[T], Hashable],
        *,
        sort: int | None = None,
        descending: bool = False,
        id: str | None = None,  # noqa: A002 - Textual's own name
    ) -> None:
        """``key`` identifies an item when the items are replaced; ``sort`` is the column to sort by initially."""
        super().__init__(columns, sort, id, descending=descending)
        self.key = key
        self.at = 0
        """The position of the cursor."""
        self._clicked: int | None = None
        """The position to which a click moved the cursor."""
        self._lines: dict[int, tuple[Strip, Style]] = {}
        """The drawn lines, by position."""
        self._new: set[Hashable] = set()
        """The keys of the items that stand out because they are new."""
        self.pattern = ""
        """The text that was searched for, in lower case."""

    # -- what is shown ----------------------------------------------------------------------------------

    @property
    def item(self) -> T | None:
        """The selected item; None if the list is empty."""
        return self.items[self.at] if 0 <= self.at < len(self.items) else None

    def show(self, items: Sequence[T], *, tail: bool = False, flash: bool = False) -> None:
        """Replace the items. The cursor stays on its item; with ``tail`` it stays at the end if it was there. With
        ``flash`` new items stand out for a while."""
        before = self.item
        if flash and self.items:
            self._flash({self.key(item) for item in items} - {self.key(item) for item in self.items})
        was_last = tail and self.at >= len(self.items) - 1
        self.give(items)
        if was_last:
            self.at = max(0, len(self.items) - 1)
        elif before is not None:
            self._find(self.key(before))
        self.at = max(0, min(self.at, len(self.items) - 1))
        self.fit()
        if was_last:
            self._into_view()
        now = self.item
        if now is not None and (before is None or self.key(now) != self.key(before)):
            self.post_message(self.Moved(self, now))

    def _flash(self, keys: set[Hashable]) -> None:
        def calm() -> None:
            self._new -= keys
            self.refresh()

        if keys:
            self._new |= keys
            self.set_timer(FLASH, calm)

    def go(self, key: Hashable) -> bool:
        """Move the cursor to the item with this key; False if there is none."""
        if not self._find(key):
            return False
        self._into_view()
        self.refresh()
        self.post_message(self.Moved(self, self.items[self.at]))
        return True

    def _find(self, key: Hashable) -> bool:
        # Usually it is at the same position, or near.
        for place in (self.at, *range(len(self.items))):
            if place < len(self.items) and self.key(self.items[place]) == key:
                self.at = place
                return True
        return False

    # -- searching --------------------------------------------------------------------------------------

    def search(self, pattern: str, *, forward: bool = True, again: bool = False) -> bool:
        """Go to the next line that contains a text (ignoring case); False if there is none."""
        self.pattern = pattern.casefold()
        if not self.pattern or not self.items:
            self.refresh()
            return False
        number = len(self.items)
        step = 1 if forward else -1
        for distance in range(1 if again else 0, number + 1):
            place = (self.at + step * distance) % number
            if self.pattern in self.plain(self.items[place]).casefold():
                self.move_to(place)
                self.refresh()
                return True
        self.refresh()
        return False

    def plain(self, item: T) -> str:
        """The text of an item's line."""
        return "  ".join(str(column.cell(item, WIDEST)) for column in self.columns if not column.drawn)

    def seek(self, wanted: Callable[[T], bool], *, forward: bool = True) -> bool:
        """Go to the next item that is wanted, from the end on to the first again; False if there is none."""
        number = len(self.items)
        for distance in range(1, number + 1):
            place = (self.at + (distance if forward else -distance)) % number
            if wanted(self.items[place]):
                self.move_to(place)
                return True
        return False

    # -- moving -----------------------------------------------------------------------------------------

    def move_to(self, place: int) -> None:
        """Move the cursor to a position."""
        if not self.items:
            return
        before, self.at = self.at, max(0, min(place, len(self.items) - 1))
        self._redraw(before, self.at)
        self._into_view()
        if self.at != before:
            self.post_message(self.Moved(self, self.items[self.at]))

    def action_move(self, by: int) -> None:
        self.move_to(self.at + by)

    def action_page(self, by: int) -> None:
        self.move_to(self.at + by * max(1, self._height - 1))

    def action_to(self, place: int) -> None:
        self.move_to(len(self.items) - 1 if place < 0 else place)

    def action_choose(self) -> None:
        if self.item is not None:
            self.post_message(self.Chosen(self, self.item))

    def rearrange(self) -> None:
        """Show the items in another order; the cursor stays on its item."""
        before = self.item
        super().rearrange()
        if before is not None:
            self._find(self.key(before))
        self._into_view()

    def on_click(self, event: events.Click) -> None:
        event.stop()
        if event.y == 0:
            if (column := self.column_at(event.x + self.scroll_offset.x)) is not None:
                self.sort_by(column)
            return
        place = event.y - 1 + self.scroll_offset.y
        if place < len(self.items):
            # A click on another line moves the cursor; a click on the selected line opens it, however much later.
            if event.chain > 1 or (place == self.at and self._clicked == place):
                self.action_choose()
            else:
                self.move_to(place)
                self._clicked = place

    # -- drawing ----------------------------------------------------------------------------------------

    @property
    def _height(self) -> int:
        return max(1, self.scrollable_content_region.height - 1)

    def _into_view(self) -> None:
        top = self.scroll_offset.y
        if self.at < top:
            self.scroll_to(y=self.at, animate=False, immediate=True)
        elif self.at >= top + self._height:
            self.scroll_to(y=self.at - self._height + 1, animate=False, immediate=True)

    def on_resize(self) -> None:
        self.fit()
        self._into_view()

    def refresh(self, *regions: Region, repaint: bool = True, layout: bool = False, recompose: bool = False) -> Self:
        """Draw again: the whole list with the current items, or only some regions of what was drawn."""
        if not regions:
            self._lines.clear()
        return super().refresh(*regions, repaint=repaint, layout=layout, recompose=recompose)

    def notify_style_update(self) -> None:
        """Draw all lines again: the theme or the focus has changed."""
        self._lines.clear()
        super().notify_style_update()

    def _redraw(self, *places: int) -> None:
        """Draw only these items again: most keys change no more than that."""
        for place in places:
            self._lines.pop(place, None)
            y = place - self.scroll_offset.y + 1
            if 0 < y < self.size.height:
                self.refresh(Region(0, y, self.size.width, 1))

    def render_line(self, y: int) -> Strip:
        """Draw the titles, or the line of one item."""
        width = self.size.width
        left = self.scroll_offset.x
        if y == 0:
            strip = drawn_line(self._titles(), self.get_component_rich_style("rows--title"), self.app.console)
            return strip.crop_extend(left, left + width, self.get_component_rich_style("rows--title"))
        place = y - 1 + self.scroll_offset.y
        if place >= len(self.items):
            return Strip.blank(width, self.rich_style)
        line = self._lines.get(place)
        if line is None:
            line = self._lines[place] = self._line(place)
        strip, style = line
        return strip.crop_extend(left, left + width, style)

    def _titles(self) -> Iterator[tuple[Text | str, int, bool]]:
        for column, room in self._shown:
            mark = ""
            if self._sort is not None and column is self.columns[self._sort]:
                mark = " ▼" if self._descending else " ▲"
            yield column.title + mark, room, column.right

    def _line(self, place: int) -> tuple[Strip, Style]:
        item = self.items[place]
        style = self.rich_style
        if place == self.at:
            style += self.get_component_rich_style("rows--cursor")
        elif self.pattern and self.pattern in self.plain(item).casefold():
            style += self.get_component_rich_style("rows--match")
        elif self._new and self.key(item) in self._new:
            style += self.get_component_rich_style("rows--new")
        texts = ((column.cell(item, room), room, column.right) for column, room in self._shown)
        return drawn_line(texts, style, self.app.console), style


class Folding[T](Rows[T]):
    """A list with branches. An arrow key, or a click on its mark, opens and closes one; others know what is in it."""

    BINDINGS = [
        Binding("right,l", "fold(False)", "Unfold", show=False),
        Binding("left,h", "fold(True)", "Fold", show=False),
    ]

    class Fold[U](Message):
        """A branch, or the one around a line, is to be closed or opened."""

        def __init__(self, rows: Folding[U], item: U, *, fold: bool) -> None:
            super().__init__()
            self.rows = rows
            self.item = item
            self.fold = fold

    def marked(self, item: T) -> range:
        """The cells of a line in which its mark is; none if it is no branch."""
        raise NotImplementedError

    def is_open(self, item: T) -> bool:
        """Whether a branch is open."""
        raise NotImplementedError

    def action_fold(self, fold: bool) -> None:  # noqa: FBT001 - Textual passes it by position
        """Open or close the selected branch, or close the one around the selected line."""
        if self.item is not None:
            self.post_message(self.Fold(self, self.item, fold=fold))

    def on_click(self, event: events.Click) -> None:
        """Open or close a branch with one click on its mark; elsewhere a click is as in all lists."""
        place = event.y - 1 + self.scroll_offset.y
        if event.y > 0 and place < len(self.items) and event.x in self.marked(item := self.items[place]):
            event.stop()
            event.prevent_default()
            self.move_to(place)
            self.post_message(self.Fold(self, item, fold=self.is_open(item)))

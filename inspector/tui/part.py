"""Common base of the screens about one part of a run: totals, a table, and the details of the selected line.

A thread reads the data. Only one thread runs at a time; if the run has grown meanwhile, it is read once more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.table import Table
from rich.text import Text
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.widgets import Static

from inspector.errors import InspectorError
from inspector.pages import highlight, languages
from inspector.text import clean, ends
from inspector.tui.panes import Pane
from inspector.tui.rows import Rows
from inspector.tui.view import View, unread

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

    from textual.widget import Widget

    from inspector.model import Place
    from inspector.pages.languages import Language
    from inspector.summaries.summary import RunBrief
    from inspector.tui.columns import Column

LABEL = 14
"""Width of the labels in the details."""


class Details:
    """Labelled lines about one item. Captured text is cleaned here; its line feeds remain."""

    def __init__(self) -> None:
        self.table = Table.grid(padding=(0, 1))
        self.table.add_column(style="dim", no_wrap=True, min_width=LABEL, max_width=3 * LABEL)
        self.table.add_column(ratio=1)

    def line(
        self, label: str, value: str, style: str = "", language: Language = languages.PLAIN, named: str = ""
    ) -> None:
        """Add a line; its value may be in a language. ``named`` is the style of the label."""
        text = Text("\n").join(highlight.lines(value, language))
        text.style, text.overflow = style, "fold"
        self.table.add_row(Text(clean(label), named), text)

    def draw(self, text: Text) -> None:
        """Add a line that is already clean."""
        self.table.add_row("", text)


class Cancelled(Exception):
    """The result of this reading is no longer needed."""


class PartView[T](View):
    """A table about one part of a run, and the details of the selected line."""

    BINDINGS = [
        Binding("enter", "open", "Open", key_display="Enter"),
        Binding("d", "differing", "Only what differs"),
        Binding("f", "state", "Filter"),
        Binding("tab", "app.focus_next", "Next pane", show=False),
    ]
    DEFAULT_CSS = """
    PartView #totals { height: auto; max-height: 2; padding: 0 1; }
    PartView #lower { height: 35%; }
    PartView #details { padding: 0 1; }
    PartView #details Static { width: 1fr; }
    """
    TITLE = ""
    COLUMNS: tuple[Column[T], ...] = ()

    def __init__(self, number: int) -> None:
        """Show this part of run ``number``."""
        super().__init__()
        self.number = number
        self._shown_state: Hashable | None = None
        self._reading = False
        self._all: Sequence[T] = ()
        self._sums = ""
        self._trouble = ""
        self._only = ""
        self._differing = False

    # -- for the views ----------------------------------------------------------------------------------

    def key(self, item: T) -> Hashable:
        """The key that identifies an item across updates."""
        raise NotImplementedError

    def state_of(self, item: T) -> str:
        """The state of an item, which items can be filtered by."""
        raise NotImplementedError

    def differs(self, item: T) -> bool:
        """Whether an item deviates from the expected state."""
        raise NotImplementedError

    def now(self) -> Hashable | None:
        """The state of what is read: it is read again when this changes; None: there is nothing to read."""
        run = self.run
        return (run.records, run.closed) if run else None

    def prepare(self) -> Callable[[], Sequence[T]]:
        """Return the function that reads the items in a thread; called on the event loop."""
        raise NotImplementedError

    def sums(self, items: Sequence[T]) -> str:
        """The line of totals."""
        raise NotImplementedError

    def describe(self, item: T, details: Details) -> None:
        """Add the details of the selected item."""
        raise NotImplementedError

    def proof(self, item: T) -> int | None:
        """The record that is evidence for an item."""
        raise NotImplementedError

    def place(self, item: T) -> Place | None:
        """Where in that record it is; None: at its beginning."""
        return None

    def nothing(self) -> str:
        """The message if there are no items."""
        raise NotImplementedError

    # -- what is shown ----------------------------------------------------------------------------------

    def body(self) -> Iterable[Widget]:
        yield Static("", id="totals", markup=False)
        with Pane(title=self.TITLE, id="upper"):
            yield from self.lists()
        with Pane(id="lower", title="Details"), VerticalScroll(id="details", can_focus=True):
            yield Static("", markup=False)

    def lists(self) -> Iterable[Widget]:
        """The table, and what may stand in its place."""
        yield Rows(self.COLUMNS, self.key, id="items")

    def show_items(self, items: Sequence[T]) -> None:
        """Show these items."""
        self.rows.show(items)

    @property
    def selected(self) -> T | None:
        """The selected item."""
        return self.rows.item

    @property
    def rows(self) -> Rows[T]:
        """The table."""
        found: Rows[T] = self.query_one("#items", Rows)
        return found

    @property
    def run(self) -> RunBrief | None:
        """The current state of the run."""
        return self.source.run(self.number)

    @property
    def selected_run(self) -> RunBrief | None:
        return self.run

    def heading(self) -> str:
        run = self.run
        if run is None:
            return f"run {self.number} is now part of another run"
        only = " (changed only)" if self._differing else ""
        only += f", {self._only}" if self._only else ""
        return f"{self.TITLE}{only} of run {run.label} of {clean(run.name)}: {run.ending}"

    def opened(self) -> None:
        self.rows.focus()

    def update(self) -> None:
        super().update()
        now = self.now()
        if now is None or now == self._shown_state or self._reading:
            return
        self._shown_state = now
        self.read()

    def read(self) -> None:
        """Read everything again, in a thread."""
        self._reading = True
        if not self._all:
            self._total(f"reading {self.TITLE.lower()} ...")
        reading = self.prepare()
        self.run_worker(lambda: self._work(reading), thread=True, group="part")

    def _work(self, reading: Callable[[], Sequence[T]]) -> None:
        items, trouble, total = self._all, "", self._sums
        try:
            items = reading()
            total = self.sums(items) if items else ""
        except InspectorError as error:
            trouble = unread(error)
        except Cancelled:
            return
        self.later(self._take, items, total, trouble)

    def _take(self, items: Sequence[T], total: str, trouble: str) -> None:
        self._reading = False
        self._all, self._sums, self._trouble = items, total, trouble
        self.apply_filters()
        self.update()

    def apply_filters(self) -> None:
        """Show the items that match the filters."""
        if self._only and not any(self.state_of(item) == self._only for item in self._all):
            self._only = ""
        items = [
            item
            for item in self._all
            if (not self._differing or self.differs(item)) and (not self._only or self.state_of(item) == self._only)
        ]
        self.show_items(items)
        self.retitle()
        self.show_message(self._trouble if self._all else "", stays=True)
        self._total(self._sums or self._trouble or self.nothing())
        self._detail()

    def _total(self, text: str) -> None:
        self.query_one("#totals", Static).update(clean(text))

    def _detail(self) -> None:
        item = self.selected
        details = Details()
        if item is not None:
            self.describe(item, details)
        elif not self._all:
            details.line("", self._trouble or self.nothing())
        self.query_one("#details Static", Static).update(details.table)

    def on_rows_moved(self, event: Rows.Moved[Any]) -> None:
        event.stop()
        self._detail()
        self.query_one("#details").scroll_home(animate=False)

    def on_rows_chosen(self, event: Rows.Chosen[Any]) -> None:
        event.stop()
        self.action_open()

    # -- keys -------------------------------------------------------------------------------------------

    def action_open(self) -> None:
        """Open the exchange that is evidence for the selected line."""
        item = self.selected
        if item is None:
            return
        seq = self.proof(item)
        if seq is not None:
            self.inspector.open_exchange(self.number, seq, self.place(item))

    def action_differing(self) -> None:
        """Show only items that deviate, or all."""
        self._differing = not self._differing
        self._only = ""
        self.apply_filters()

    def action_state(self) -> None:
        """Show only the items of one state, then of the next one, then all."""
        states = ["", *sorted({self.state_of(item) for item in self._all})]
        self._only = states[(states.index(self._only) + 1) % len(states)] if self._only in states else ""
        self._differing = False
        self.apply_filters()


def middle(text: str, width: int) -> str:
    """Captured text without its middle if it is too long: paths differ at their ends."""
    return ends(clean(text), width, width // 3)

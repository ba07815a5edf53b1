"""Search in targets, headers and bodies of the whole capture. Matches are shown while the search runs.

A thread reads the records in batches, so that keys respond meanwhile.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.binding import Binding
from textual.containers import Horizontal
from textual.message import Message
from textual.widgets import ProgressBar, Static
from textual.worker import get_current_worker

from inspector.errors import CaptureError
from inspector.pages.body_search import Needle, hits
from inspector.text import clean, clock
from inspector.tui.columns import Column
from inspector.tui.panes import Pane
from inspector.tui.prompt import Prompt
from inspector.tui.rows import Rows
from inspector.tui.view import View, unread

if TYPE_CHECKING:
    from collections.abc import Iterable

    from textual.app import ComposeResult
    from textual.widget import Widget

    from inspector.pages.body_search import Hit
    from inspector.summaries.summary import RunBrief

MOST = 10_000
"""Matches after which the search stops: more are of no use."""
STRIDE = 100
"""Records that are read before the capture is opened again."""
PAUSE = 0.1
"""Seconds between two reports."""


class SearchView(View):
    """Search in targets, headers and bodies of the whole capture."""

    BINDINGS: ClassVar = [
        Binding("enter", "open", "Open", key_display="Enter", show=False),
        Binding("c", "cancel", "Cancel"),
        Binding("slash", "search", "Search", key_display="/"),
    ]
    DEFAULT_CSS = """
    SearchView #progress { height: 1; padding: 0 1; display: none; }
    SearchView #progress.searched { display: block; }
    SearchView ProgressBar { width: 32; display: none; margin-right: 2; }
    SearchView .running ProgressBar { display: block; }
    SearchView #count { width: 1fr; }
    """

    class Progressed(Message):
        """The progress of the search, and the matches since the last report."""

        def __init__(
            self,
            number: int,
            done: int,
            found: list[Hit],
            trouble: str = "",
            *,
            unread: bool = False,
            over: bool = False,
        ) -> None:
            super().__init__()
            self.number = number
            """The number of the search."""
            self.done = done
            self.found = found
            self.trouble = trouble
            self.unread = unread
            """Whether the rest could not be read."""
            self.over = over

    def __init__(self, text: str = "") -> None:
        """Search for a text at once, or ask for one."""
        super().__init__()
        self._text = text
        self._hits: list[Hit] = []
        self._number = 0
        self._running = self._unread = False
        self._done = self._total = 0
        self._owners: dict[int, RunBrief | None] = {}

    def body(self) -> Iterable[Widget]:
        """The progress and the matches."""
        yield _Progress(id="progress")
        with Pane(title="Matches"):
            yield Rows(self._columns(), lambda hit: hit, id="hits")

    def _columns(self) -> tuple[Column[Hit], ...]:
        return (
            Column("record", lambda hit, _: str(hit.seq), 6, sort=lambda hit: hit.seq, right=True),
            Column("run", lambda hit, _: self._run(hit), 5, right=True),
            Column("time", lambda hit, _: clock(hit.time)[:8], 8, least=100),
            Column("agent", lambda hit, _: self._agent(hit), 14, 1, sort=self._agent),
            Column("where", lambda hit, _: hit.where, 15, sort=lambda hit: hit.where),
            Column("match", _shown, 24, 6),
        )

    def _run(self, hit: Hit) -> str:
        run = self._owners.get(hit.seq)
        return run.label if run else "-"

    def _agent(self, hit: Hit) -> str:
        run = self._owners.get(hit.seq)
        return clean(run.name) if run else "-"

    @property
    def selected_run(self) -> RunBrief | None:
        """The run of the selected match."""
        hit = self.query_one(Rows).item
        return self._owners.get(hit.seq) if hit else None

    def heading(self) -> str:
        """What is looked for."""
        place = clean(self.source.path.name)
        return f"search for {clean(self._text)} in {place}" if self._text else f"search {place}"

    def opened(self) -> None:
        """Start the search, or ask for a text."""
        self.query_one(Rows).focus()
        if self._text:
            self.begin(self._text)
        else:
            self.action_search()

    # -- the search -------------------------------------------------------------------------------------

    def begin(self, text: str) -> None:
        """Search for another text."""
        if not text:
            return
        self.action_cancel()
        self._text = text
        self._hits, self._owners = [], {}
        self._done, self._total = 0, self.source.total
        self._number += 1
        self._running, self._unread = True, False
        self.query_one(Rows).show([])
        self.show_message("")
        self.update()
        self._show_progress()
        number, total = self._number, self._total
        self.run_worker(lambda: self._search_all(text, number, total), thread=True, group="search", exit_on_error=False)

    def _search_all(self, text: str, number: int, total: int) -> None:
        worker, needle = get_current_worker(), Needle(text)
        found: list[Hit] = []
        done = every = 0
        reported_at = time.monotonic()
        try:
            while done < total and every < MOST:
                # An open reader prevents checkpoints of the recorder's database: never keep one open for long.
                with self.source.capture() as capture:
                    for _, record in zip(range(STRIDE), capture.records(done), strict=False):
                        if worker.is_cancelled:
                            return
                        new = list(hits(record, needle))
                        found += new
                        every += len(new)
                        done = record.seq
                        if time.monotonic() - reported_at >= PAUSE:
                            reported_at = time.monotonic()
                            self.post_message(self.Progressed(number, done, found))
                            found = []
                        if done >= total or every >= MOST:
                            break
                    else:
                        if capture.following(done) is None:
                            break
        except CaptureError as error:
            self.post_message(self.Progressed(number, done, found, f"The rest {unread(error)}", unread=True, over=True))
            return
        trouble = f"only the first {MOST:,} matches are shown" if every >= MOST else ""
        self.post_message(self.Progressed(number, done if trouble else total, found, trouble, over=True))

    def on_search_view_progressed(self, event: Progressed) -> None:
        """Show new matches."""
        event.stop()
        if event.number != self._number or not self._running:
            return
        self._done = event.done
        self._running = not event.over
        self._unread = event.unread
        if event.found:
            self._owners |= self.source.owners({hit.seq for hit in event.found} - self._owners.keys())
            self._hits += event.found
            self.query_one(Rows).show(self._hits)
        self._show_progress()
        if event.over:
            self.show_message(
                event.trouble or ("" if self._hits else f"No record contains {clean(self._text)}."), stays=True
            )

    def _show_progress(self) -> None:
        text = f"{self._done:,} of {self._total:,} records, {len(self._hits):,} matches"
        if self._unread:
            text = f"could not be read after {self._done:,} of {self._total:,}, {len(self._hits):,} matches"
        self.query_one(_Progress).show(self._done, self._total, text, running=self._running)
        self.refresh_bindings()

    # -- keys -------------------------------------------------------------------------------------------

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer to cancel only a search that runs."""
        return self._running if action == "cancel" else super().check_action(action, parameters)

    def action_search(self) -> None:
        """Ask for another text."""
        self.query_one(Prompt).open("search bodies: ", self.begin, self._text, history="search", accept="Search")

    def action_cancel(self) -> None:
        """Cancel the search; the matches so far remain."""
        if self._running:
            self._running = False
            self.workers.cancel_group(self, "search")
            self.show_message(f"The search was cancelled after {self._done:,} of {self._total:,} records.")

    def on_prompt_closed(self) -> None:
        """Go back if nothing was asked for: there is nothing to look at."""
        if not self._text:
            self.action_back()

    def action_open(self) -> None:
        """Show the selected record in full."""
        rows: Rows[Hit] = self.query_one("#hits", Rows)
        if rows.item is not None:
            run = self._owners.get(rows.item.seq)
            self.inspector.open_exchange(run.number if run else None, rows.item.seq, rows.item.place)

    def on_rows_chosen(self, event: Rows.Chosen[Hit]) -> None:
        """Open the selected line, which was clicked."""
        event.stop()
        self.action_open()


class _Progress(Horizontal):
    """What was searched and found, and while it runs a bar: one without a search would move to and fro."""

    def compose(self) -> ComposeResult:
        yield ProgressBar(show_eta=False, show_percentage=False)
        yield Static("", id="count", markup=False)

    def show(self, done: int, total: int, text: str, *, running: bool) -> None:
        """Update the progress."""
        self.add_class("searched")
        self.set_class(running, "running")
        self.query_one(ProgressBar).update(total=total, progress=done)
        self.query_one("#count", Static).update(text)


def _shown(hit: Hit, width: int) -> Text:
    """The line of a match; in a narrow column the match is in the middle."""
    found = clean(hit.found)
    room = max(8, (width - len(found)) // 2)
    before = clean(hit.before).lstrip()
    text = Text("…" + before[-room + 1 :] if len(before) > room else before)
    text.append(found, style="bold reverse")
    text.append(clean(hit.behind))
    return text

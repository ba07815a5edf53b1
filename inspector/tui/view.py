"""What all screens have in common: a title, a body, a prompt, a message line and the keys at the bottom.

A new screen is a subclass of ``View`` with a ``body`` and an ``update``; the application opens it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast, runtime_checkable

from rich.cells import cell_len, set_cell_size
from textual import on
from textual.binding import Binding
from textual.screen import Screen
from textual.widgets import Static
from textual.worker import get_current_worker

from inspector.errors import InspectorError
from inspector.text import beginning, clean, clock
from inspector.tui.keys import Keys
from inspector.tui.panes import BROAD
from inspector.tui.prompt import Prompt
from inspector.tui.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from textual import events
    from textual.app import ComposeResult
    from textual.dom import DOMNode
    from textual.timer import Timer
    from textual.widget import Widget

    from inspector.explain.master_log.measured import MasterTimes
    from inspector.model import Finding, Place
    from inspector.summaries.filtering import Filtering
    from inspector.summaries.marks import Marks
    from inspector.summaries.source import Source
    from inspector.summaries.summary import RunBrief
    from inspector.tui.arranged import Arranged
    from inspector.tui.following import Following


NOTICE = 15.0
"""Seconds after which a message goes away, unless a key was pressed before."""


def later(widget: Widget, act: Callable[..., object], *arguments: object) -> None:
    """Call ``act`` on the event loop, from a worker's thread; do nothing if the widget was removed meanwhile."""

    def if_here() -> None:
        if widget.is_attached and widget.app.is_running:
            act(*arguments)

    if not get_current_worker().is_cancelled and widget.is_attached:
        widget.app.call_from_thread(if_here)


def unread(reason: object) -> str:
    """That something could not be read, and why: never shown as if there were nothing."""
    return clean(f"could not be read: {reason}")


@runtime_checkable
class Searchable(Protocol):
    """A widget whose lines can be searched."""

    def search(self, text: str, /, *, forward: bool = True, again: bool = False) -> bool:
        """Go to the next line that contains ``text``; False if there is none."""


class Application(Protocol):
    """What a view requires of the application, which opens all other views: no view imports another."""

    source: Source
    following: Following
    times: MasterTimes

    @property
    def filtering(self) -> Filtering: ...

    @property
    def marks(self) -> Marks: ...
    @property
    def lab_state(self) -> str: ...

    def open_run(self, number: int, seq: int | None = None, finding: Finding | None = None) -> None: ...
    def open_exchange(self, number: int | None, seq: int, place: Place | None = None) -> None: ...
    def open_runs(self, *, grouped: bool = False) -> None: ...
    def open_findings(self) -> None: ...
    def open_bootstrap(self, certname: str | None = None) -> None: ...
    def open_search(self) -> None: ...
    def open_marks(self) -> None: ...
    @property
    def rehearsal(self) -> bool: ...
    def open_pairs(self) -> None: ...
    def open_differences(self, before: int | None, after: int) -> None: ...
    def export(self, seqs: Sequence[int]) -> None: ...
    def report(self, number: int | None) -> None: ...
    def show_message(self, text: str) -> None: ...
    def copy_text(self, text: str | None, what: str) -> None: ...


class View(Screen[None]):
    """A full screen of the inspector. On a small terminal its panes have one line above them instead of a frame."""

    HORIZONTAL_BREAKPOINTS = [(0, "-slim"), (100, "-wide"), (BROAD, "-broad")]
    VERTICAL_BREAKPOINTS = [(0, "-short"), (32, "-tall")]
    BINDINGS = [
        Binding("question_mark", "help", "All keys", key_display="?"),
        Binding("escape", "back", "Back", key_display="Esc"),
        Binding("slash", "search", "Search", key_display="/"),
        Binding("n", "again(1)", "Next match", show=False),
        Binding("N", "again(-1)", "Previous match", show=False),
        Binding("A", "marks", "Marks and notes", show=False),
    ]
    DEFAULT_CSS = """
    View #title { height: 1; color: $text-accent; padding: 0 1; text-style: bold; }
    View #message { height: auto; max-height: 3; padding: 0 1; background: $panel; display: none; }
    View #message.shown { display: block; }
    View .gone { display: none; }
    View.-broad Glance { display: block; }
    View.-short Pane { border: none; border-top: solid $border-blurred; }
    View.-slim Pane { border: none; border-top: solid $border-blurred; }
    View.-short Pane:focus-within { border-top: solid $border; }
    View.-slim Pane:focus-within { border-top: solid $border; }
    View.narrow Pane { border: none !important; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._message = ""
        self._passing: Timer | None = None
        """Hides a message that goes away by itself."""
        self._pattern = ""
        self._mounted = False
        self._heading = ""
        self._named = ""
        """The agent that the title names."""

    @property
    def broad(self) -> bool:
        """Whether there is room for one more pane beside the others."""
        return self.app.size.width >= BROAD

    @property
    def ready(self) -> bool:
        """Whether the widgets exist: from mounting until Textual removes the screen (``display`` is False then)."""
        return self._mounted and self.display

    @property
    def inspector(self) -> Application:
        """The application."""
        return cast("Application", self.app)

    @property
    def source(self) -> Source:
        """The capture that is shown."""
        return self.inspector.source

    def compose(self) -> ComposeResult:
        yield Static("", id="title", markup=False)
        yield from self.body()
        yield Static("", id="message", markup=False)
        yield Prompt()
        yield Keys()

    def on_mount(self) -> None:
        """Show the content: the widgets exist now."""
        self._mounted = True
        self.update()
        self.opened()

    # -- for the views ----------------------------------------------------------------------------------

    def body(self) -> Iterable[Widget]:
        """The widgets between title and keys."""
        return ()

    def opened(self) -> None:
        """Choose the initial focus; called once, after the first ``update``."""

    def on_resize(self) -> None:
        if self.ready:
            self.lay_out()

    def lay_out(self) -> None:
        """Adapt to the size of the terminal; called when it changes."""

    def heading(self) -> str:
        """Text of the title line."""
        return ""

    def on_screen_resume(self) -> None:
        """Show what is new since another view was opened on top of this one."""
        self.renew()

    def renew(self) -> None:
        """Update, unless the widgets do not exist yet."""
        if self.ready and self.is_attached:
            self.update()

    @property
    def selected_run(self) -> RunBrief | None:
        """The run that is shown or selected; None if there is none."""
        return None

    @property
    def agent(self) -> str:
        """The name of the agent that the screen, or the line under the cursor, is about; empty if it is about none."""
        run = self.selected_run
        return run.name if run else ""

    def progress(self) -> str:
        """How far the capture is read or written, for a title; empty if it is complete."""
        source = self.source
        if source.indexing:
            return f"   {source.progress}"
        if source.open and source.runs:
            return f"   last record {clock(max(run.ended for run in source.runs))[:8]}, being written"
        return ""

    def trouble(self) -> str:
        """What cannot be read or written, for a title; empty if nothing is wrong."""
        trouble = self.source.trouble or self.inspector.marks.trouble
        return f"   {clean(trouble)}" if trouble else ""

    def not_read(self, expected: str) -> str:
        """Why nothing can be listed yet, and what is ``expected`` while the capture is read; empty if it was read."""
        source = self.source
        if trouble := source.trouble:
            return f"{clean(trouble)}\n`puppet-inspector runs` reads the capture without an index."
        if source.indexing or (source.total and not source.state.complete):
            return f"Reading record {source.state.last:,} of {source.total:,}: {expected}."
        return ""

    def update(self) -> None:
        """Show the current state of the source; called when the view is uncovered, and when there is new data."""
        self.retitle()

    def retitle(self) -> None:
        """Update the title line."""
        self._heading = self.heading()
        self._title()

    def _title(self) -> None:
        """Show the heading, and at its end the agent that it does not name."""
        self._named = self.agent
        text, room = self._heading, self.app.size.width - 2
        name = beginning(clean(self._named), room // 2)
        before = room - cell_len(name)
        # What cannot be read is not cut for the name of whose line the cursor is on.
        if name and name not in text[:room] and (cell_len(text) < before or not self.trouble()):
            text = set_cell_size(beginning(text, before - 2), before) + name
        self.query_one("#title", Static).update(text, layout=False)

    @on(Rows.Moved)
    def _name_agent(self) -> None:
        """Name the agent of the line under the cursor."""
        if self.agent != self._named:
            self._title()

    def answer(self, text: str) -> None:
        """Show in the title line what is in progress, until the next ``retitle``; it does not trigger a new layout."""
        self.query_one("#title", Static).update(text, layout=False)

    def show_message(self, text: str, *, stays: bool = False) -> None:
        """Show a message above the keys, until the next key or for some seconds; an empty text hides the line. With
        ``stays`` it is shown until there is another one: it is about what the screen shows."""
        # Showing or hiding the line triggers a new layout; most cursor movements do not change it.
        if self.ready and text != self._message:
            if self._passing is not None:
                self._passing.stop()
            self._passing = None if stays or not text else self.set_timer(NOTICE, self.let_message_pass)
            self._message = text
            line = self.query_one("#message", Static)
            line.update(clean(text))
            line.set_class(bool(text), "shown")

    def let_message_pass(self) -> None:
        """Hide a message that does not stay."""
        if self._passing is not None:
            self.show_message("")

    def ask(
        self,
        label: str,
        then: Callable[[str], object],
        value: str = "",
        *,
        complete: Callable[[str], list[str]] | None = None,
        history: str | None = None,
        preview: Callable[[str], str] | None = None,
        accept: str = "Accept",
    ) -> None:
        """Ask the user for one line of text and pass it to ``then``; Escape cancels. ``accept`` says in a word what
        Enter does.

        ``complete`` returns the completions of the text before the cursor; ``history`` is the name of the history to
        use; ``preview`` says what a text would do, while it is typed.
        """
        prompt = self.query_one(Prompt)
        prompt.open(label, then, value, complete=complete, history=history, preview=preview, accept=accept)

    def later(self, act: Callable[..., object], *arguments: object) -> None:
        """Call ``act`` on the event loop, from a worker's thread; do nothing if the view was closed meanwhile."""
        later(self, act, *arguments)

    def attempt(self, act: Callable[[], object]) -> bool:
        """Call ``act``; if it raises an InspectorError, show its message and return False."""
        self.show_message("")
        try:
            act()
        except InspectorError as error:
            self.show_message(str(error))
            return False
        return True

    def search_target(self) -> Searchable | None:
        """The widget that ``/`` searches: the focused one or an ancestor of it, otherwise the first list."""
        around = self.focused.ancestors_with_self if self.focused else []
        return next((widget for widget in (*around, *self.query(Rows)) if isinstance(widget, Searchable)), None)

    # -- keys -------------------------------------------------------------------------------------------

    def on_arranged_refused(self, event: Arranged.Refused) -> None:
        """Say why a list does not do what a key is for."""
        event.stop()
        self.show_message(event.why)

    def on_arranged_choosing(self, event: Arranged.Choosing) -> None:
        """Let the user choose the columns of a list."""
        from inspector.tui.chooser import ColumnChooser

        event.stop()
        self.app.push_screen(ColumnChooser(event.rows))

    def action_search(self) -> None:
        self.ask("/", self._search, history="search", accept="Search")

    def _search(self, text: str) -> None:
        self._pattern = text
        place = self.search_target()
        if place is not None and not place.search(text) and text:
            self.show_message(f"No match here for {text!r}.")
        else:
            self.show_message("")

    def action_again(self, direction: int) -> None:
        place = self.search_target()
        if not self._pattern:
            self.show_message("Nothing was searched for yet: / searches.")
        elif place is not None:
            place.search(self._pattern, forward=direction > 0, again=True)

    def on_key(self, event: events.Key) -> None:
        """Hide the message of an earlier key. Say why, before a key that nothing will react to does nothing."""
        self.let_message_pass()
        if not event.is_printable or self.has_class("asking") or event.key in self.active_bindings:
            return
        around = [*self.focused.ancestors_with_self] if self.focused else [self]
        if what := _meaning(event.key, around):
            self.show_message(f"{what}: not possible here.")
        elif what := _meaning(event.key, self.walk_children()):
            self.show_message(f"{what}: Tab leads to its pane.")
        else:
            self.show_message("This key does nothing here; ? lists the keys.")

    # What several views offer, each with the keys that its ``BINDINGS`` name.

    def action_findings(self) -> None:
        """Show all findings."""
        self.inspector.open_findings()

    def action_bodies(self) -> None:
        """Search the bodies."""
        self.inspector.open_search()

    def action_bootstrap(self) -> None:
        """Show how the node of the selected run got its certificate."""
        run = self.selected_run
        self.inspector.open_bootstrap(run.certname if run else None)

    def action_report(self) -> None:
        """Write the report of the selected run."""
        run = self.selected_run
        self.inspector.report(run.number if run else None)

    def action_marks(self) -> None:
        """List the marks and notes of the capture."""
        self.inspector.open_marks()

    def action_help(self) -> None:
        """Show all keys of this screen."""
        from inspector.tui.keys import Help

        self.app.push_screen(Help(self, View.BINDINGS, self.app.get_key_display))

    def action_back(self) -> None:
        if len(self.app.screen_stack) > 2:
            self.app.pop_screen()


def _meaning(key: str, nodes: Iterable[DOMNode]) -> str:
    """What a key is for at some of these nodes; empty: for nothing."""
    descriptions = (
        binding.description
        for node in nodes
        for ancestor in type(node).__mro__
        for binding in getattr(ancestor, "BINDINGS", ())
        if isinstance(binding, Binding) and key in binding.key.split(",")
    )
    return next(descriptions, "")

"""What all views have in common: a title, a body, a line to type in, and the keys at the bottom.

A new view is a subclass of ``View`` with a ``body`` and an ``update``; whoever opens it pushes it on the screen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, cast, runtime_checkable

from textual.binding import Binding
from textual.screen import Screen
from textual.widgets import Static
from textual.worker import get_current_worker

from inspector.errors import InspectorError
from inspector.text import clean
from inspector.tui.keys import Keys
from inspector.tui.prompt import Prompt
from inspector.tui.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from textual.app import ComposeResult
    from textual.widget import Widget
    from textual.worker import Worker

    from inspector.model import Finding, Place
    from inspector.summaries.filtering import Filtering, Progress
    from inspector.summaries.marks import Marks
    from inspector.summaries.source import Source


def later(widget: Widget, act: Callable[..., object], *arguments: object) -> None:
    """From a worker's thread: have the event loop do something with a widget, unless that has gone."""

    def if_here() -> None:
        if widget.is_attached and widget.app.is_running:
            act(*arguments)

    if not get_current_worker().is_cancelled and widget.is_attached:
        widget.app.call_from_thread(if_here)


@runtime_checkable
class Searchable(Protocol):
    """A widget whose lines can be searched."""

    def search(self, text: str, /, *, forward: bool = True, again: bool = False) -> bool:
        """Go to the next line that contains a text; False if there is none."""


class Application(Protocol):
    """What a view asks of the application that it lives in, which opens other views: no view imports another."""

    source: Source

    @property
    def filtering(self) -> Filtering: ...

    @property
    def marks(self) -> Marks: ...

    def open_run(self, number: int, seq: int | None = None, finding: Finding | None = None) -> None: ...
    def open_exchange(self, number: int | None, seq: int, place: Place | None = None) -> None: ...
    def open_findings(self) -> None: ...
    def open_bootstrap(self, certname: str | None = None) -> None: ...
    def open_search(self) -> None: ...
    def open_part(self, part: str, number: int) -> None: ...
    def ask_filter(self, view: View, then: Callable[[str], None], value: str) -> None: ...
    def export(self, seqs: Sequence[int]) -> None: ...
    def tell(self, text: str) -> None: ...
    def put_aside(self, text: str | None, what: str) -> None: ...


class View(Screen[None]):
    """A full screen of the inspector."""

    BINDINGS = [
        Binding("question_mark", "help", "Keys", key_display="?"),
        Binding("escape", "back", "Back", key_display="Esc"),
        Binding("slash", "search", "Search", key_display="/"),
        Binding("n", "again(1)", "Next match", show=False),
        Binding("N", "again(-1)", "Previous match", show=False),
    ]
    DEFAULT_CSS = """
    View #title { height: 1; background: $primary-darken-2; color: $text; padding: 0 1; text-style: bold; }
    View #said { height: auto; max-height: 3; padding: 0 1; background: $panel; display: none; }
    View #said.shown { display: block; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._sifting: Worker[None] | None = None
        self._said = ""
        self._sought = ""
        self._mounted = False

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
        """What is shown."""
        return self.inspector.source

    def compose(self) -> ComposeResult:
        yield Static("", id="title", markup=False)
        yield from self.body()
        yield Static("", id="said", markup=False)
        yield Prompt()
        yield Keys()

    def on_mount(self) -> None:
        """From now on there is something to show it on."""
        self._mounted = True
        self.update()
        self.opened()

    # -- for the views ----------------------------------------------------------------------------------

    def body(self) -> Iterable[Widget]:
        """The widgets between title and keys."""
        return ()

    def opened(self) -> None:
        """The view is there, and shows what is known: where to begin in it."""

    def heading(self) -> str:
        """The title line."""
        return ""

    def on_screen_resume(self) -> None:
        """Show what came while another view was in front."""
        self.renew()

    def renew(self) -> None:
        """Show what is new; a view is in front a moment before its widgets are there."""
        if self.ready and self.is_attached:
            self.update()

    def update(self) -> None:
        """Show what the source knows now; called when the view comes to the front and whenever something is new."""
        self.retitle()

    def retitle(self) -> None:
        """Write the title line anew."""
        self.query_one("#title", Static).update(self.heading(), layout=False)

    def answer(self, text: str) -> None:
        """What is being done, in the title line, until the next ``retitle``: it costs no layout."""
        self.query_one("#title", Static).update(text, layout=False)

    def say(self, text: str) -> None:
        """One line above the keys; empty: none."""
        # A line more or less costs a layout, and a cursor that moves says nothing most often.
        if self.ready and text != self._said:
            self._said = text
            said = self.query_one("#said", Static)
            said.update(clean(text))
            said.set_class(bool(text), "shown")

    def ask(
        self,
        label: str,
        then: Callable[[str], None],
        value: str = "",
        *,
        complete: Callable[[str], list[str]] | None = None,
        history: str | None = None,
    ) -> None:
        """Let the user type one line, and give it to ``then`` (not if Escape is pressed).

        ``complete`` tells what the text up to the cursor could go on with; ``history`` names what was typed before.
        """
        self.query_one(Prompt).open(label, then, value, complete=complete, history=history)

    def ask_filter(self, then: Callable[[str], None], value: str) -> None:
        """Let the user type a filter."""
        self.inspector.ask_filter(self, then, value)

    def later(self, act: Callable[..., object], *arguments: object) -> None:
        """From a worker's thread: have the event loop do something, unless the view has gone."""
        later(self, act, *arguments)

    def attempt(self, act: Callable[[], object]) -> bool:
        """Do something that a user's mistake can make impossible: then it is said, and the answer is False."""
        self.say("")
        try:
            act()
        except InspectorError as error:
            self.say(str(error))
            return False
        return True

    def sift[T](self, look: Callable[[], Iterator[Progress[T]]], then: Callable[[list[T]], None]) -> None:
        """Go through what a filter lets through, in a thread, saying how far it is; Escape gives it up.

        ``look`` is called at once, ``then`` with all that was found. While the capture grows a view does not begin
        again before that (``sifting``): ``update`` is called after it. Raises InspectorError for what is no filter.
        """
        found: list[T] = []
        progress = look()

        def read() -> None:
            worker = get_current_worker()
            try:
                for done, total, some in progress:
                    if worker.is_cancelled:
                        return
                    found.extend(some)
                    if done < total:
                        self.later(self.say, f"reading {done:,} of {total:,} (Escape cancels)")
            except InspectorError as error:
                self.later(self.say, str(error))
                return
            self.later(self._sifted, worker, found, then)

        if self._sifting is not None:
            self._sifting.cancel()
        self._sifting = self.run_worker(read, thread=True, group="sift")

    def _sifted[T](self, worker: Worker[None], found: list[T], then: Callable[[list[T]], None]) -> None:
        if worker is self._sifting:  # it may have been cancelled in the last moment
            self._sifting = None
            self.say("")
            then(found)
            self.update()

    @property
    def sifting(self) -> bool:
        """Whether something is being sifted."""
        return self._sifting is not None and not self._sifting.is_finished

    def given_up(self) -> bool:
        """Give up what is being sifted; False if nothing is."""
        if self._sifting is None or self._sifting.is_finished:
            return False
        self._sifting.cancel()
        self._sifting = None
        self.say("cancelled")
        return True

    def searched(self) -> Searchable | None:
        """Where ``/`` searches: in what has the focus, or what is around that; else in the first list."""
        around = self.focused.ancestors_with_self if self.focused else []
        return next((widget for widget in (*around, *self.query(Rows)) if isinstance(widget, Searchable)), None)

    # -- keys -------------------------------------------------------------------------------------------

    def action_search(self) -> None:
        self.ask("/", self._search, history="search")

    def _search(self, text: str) -> None:
        self._sought = text
        place = self.searched()
        if place is not None and not place.search(text) and text:
            self.say(f"No match here for {text!r}.")
        else:
            self.say("")

    def action_again(self, direction: int) -> None:
        place = self.searched()
        if place is not None and self._sought:
            place.search(self._sought, forward=direction > 0, again=True)

    def action_help(self) -> None:
        """All keys that do something here."""
        from inspector.tui.help import Help

        self.app.push_screen(Help(self, self.app.get_key_display))

    def action_back(self) -> None:
        if not self.given_up() and len(self.app.screen_stack) > 2:
            self.app.pop_screen()

"""The terminal inspector's application: which views there are, and what is the same in all of them."""

from __future__ import annotations

import contextlib
import gc
import os
from functools import cached_property, partial
from typing import TYPE_CHECKING, ClassVar

from textual.app import App, SystemCommand
from textual.binding import Binding

from inspector.errors import CaptureError
from inspector.summaries.source import Source
from inspector.tui import hues
from inspector.tui.view import View

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from textual.driver import Driver
    from textual.filter import LineFilter
    from textual.screen import Screen

    from inspector.model import Finding, Place
    from inspector.summaries.filtering import Filtering
    from inspector.summaries.marks import Marks
    from inspector.tui.view import Application

LOOK = 0.25
"""Seconds between two looks for something new."""


class Inspector(App[None]):
    """A capture in a terminal."""

    TITLE = "puppet-inspector"
    BINDINGS: ClassVar = [
        Binding("q", "quit", "Quit"),
        Binding("T", "theme", "Light/dark theme", show=False),
    ]

    def __init__(self, path: Path, *, driver: type[Driver] | None = None) -> None:
        """Open a capture. Raises CaptureError."""
        super().__init__(driver_class=driver)
        self.source = Source(path)
        self._lost = False
        """The capture could not be read the last time."""

    def on_mount(self) -> None:
        """Show the runs."""
        from inspector.tui.runs import Runs

        self.push_screen(Runs())
        self.set_interval(LOOK, self.look)
        self.set_timer(LOOK, self._settle)

    def _settle(self) -> None:
        """Once the first screen is there."""
        gc.freeze()
        gc.enable()
        self.run_worker(_warm_up, thread=True, group="warm up")

    def on_unmount(self) -> None:
        """End the process that indexes."""
        self.source.close()

    def look(self) -> None:
        """Show what is new in the capture."""
        before = self.source.total, self.source.trouble, self.source.state.last
        try:
            new = self.source.poll()
        except CaptureError as error:
            self._lost = True
            self.tell(str(error))
            return
        if self._lost:
            self._lost = False
            self.tell("")
        new |= self.marks.refresh()
        now = self.source.total, self.source.trouble, self.source.state.last
        if (new or now != before) and (view := self.front):
            view.renew()

    # -- what the views share ---------------------------------------------------------------------------

    @property
    def front(self) -> View | None:
        """The view in front; none while a modal one covers it, or before the first and after the last: timers and
        threads of the inspector are still heard then."""
        top = self.screen_stack[-1:]
        return top[0] if top and isinstance(top[0], View) else None

    @cached_property
    def filtering(self) -> Filtering:
        """What filters let through."""
        from inspector.summaries.filtering import Filtering

        return Filtering(self.source)

    @cached_property
    def marks(self) -> Marks:
        """Marks and notes."""
        from inspector.summaries.marks import Marks

        return Marks(self.source)

    def open_run(self, number: int, seq: int | None = None, finding: Finding | None = None) -> None:
        """Show a run, with the cursor on a record where it proves a finding."""
        from inspector.tui.run import RunView

        if view := self.front:
            # It takes some hundred milliseconds until all of a run is drawn: the key is answered before.
            view.answer(f"opening run {number} …")
        self.call_after_refresh(self.push_screen, RunView(number, seq, finding))

    def open_exchange(self, number: int | None, seq: int, place: Place | None = None) -> None:
        """Show one record on the whole screen, at a place in it; its neighbours are those of its run."""
        from inspector.tui.exchange import ExchangeView

        self.push_screen(ExchangeView(self.source.seqs(number) if number else [seq], seq, place=place))

    def open_findings(self) -> None:
        """Show the findings of the whole capture."""
        from inspector.tui.findings import Findings

        self.push_screen(Findings())

    def open_bootstrap(self, certname: str | None = None) -> None:
        """Show how agents got their certificates."""
        from inspector.tui.bootstrap import Bootstrap

        self.push_screen(Bootstrap(certname))

    def open_search(self) -> None:
        """Search the bodies of the whole capture."""
        from inspector.tui.search import SearchView

        self.push_screen(SearchView())

    def open_part(self, part: str, number: int) -> None:
        """Show the ``files``, the ``catalog`` or the ``connections`` of a run."""
        from inspector.tui.catalog import Catalog
        from inspector.tui.connections import Connections
        from inspector.tui.files import Files

        views: dict[str, Callable[[int], View]] = {"files": Files, "catalog": Catalog, "connections": Connections}
        self.push_screen(views[part](number))

    def ask_filter(self, view: View, then: Callable[[str], None], value: str) -> None:
        """Let the user type a filter, with what there is to complete it."""
        from inspector.summaries import completion

        # What the filter goes through is read while it is typed.
        self.run_worker(self.source.all_briefs, thread=True, group="briefs", exclusive=True)
        runs = self.source.runs
        values = {
            "agent": sorted({run.name for run in runs}),
            "env": sorted({run.environment for run in runs if run.environment}),
            "version": sorted({run.agent_version for run in runs if run.agent_version}),
            "rule": sorted({finding.rule for run in runs for finding in run.findings}),
        }
        view.ask("filter: ", then, value, complete=lambda text: completion.complete(text, values), history="filter")

    def tell(self, text: str) -> None:
        """Say something in the view that is in front."""
        if view := self.front:
            view.say(text)

    def put_aside(self, text: str | None, what: str) -> None:
        """Copy to the clipboard of the user's own terminal (OSC 52), also over SSH."""
        if text:
            self.copy_to_clipboard(text)
        self.tell(f"copied: {what}" if text else "nothing to copy here")

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Also the one that makes our hues readable on a light theme, and without colour."""
        own = hues.of(dark=self.current_theme.dark, colour="NO_COLOR" not in os.environ)
        return [*([own] if own else []), *super().get_line_filters()]

    # -- keys -------------------------------------------------------------------------------------------

    def action_theme(self) -> None:
        """Light or dark."""
        self.theme = "textual-light" if self.current_theme.dark else "textual-dark"

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """What the command palette offers: the views, and what every key does here, so that the mouse does it too."""
        yield SystemCommand("Findings", "All findings of the capture, by rule, agent or severity", self.open_findings)
        yield SystemCommand("Bootstrap", "How agents got their certificates", self.open_bootstrap)
        yield SystemCommand("Search bodies", "Search the bodies of all records", self.open_search)
        yield SystemCommand("Light/dark theme", "Switch the theme", self.action_theme)
        yield SystemCommand("Quit", "Leave the inspector", self.exit)
        from inspector.tui.help import keys

        listed = {"Light/dark theme", "Quit", "Findings", "Bootstrap", "Search bodies"}
        for node, binding in keys(screen):
            if binding.description not in listed:
                listed.add(binding.description)
                key = f"key {self.get_key_display(binding)}"
                yield SystemCommand(binding.description, key, partial(self.run_action, binding.action, node))

    def export(self, seqs: Sequence[int]) -> None:
        """Write records to a file: jsonl, or mitmproxy's flows if its name ends so."""
        from inspector.tui.exporting import export

        if view := self.front:
            export(view, seqs)


if TYPE_CHECKING:

    def _as_views_know_it(app: Inspector) -> Application:
        """Views take the application for this (``View.inspector``): here the type checker agrees."""
        return app


def _warm_up() -> None:
    """In a thread: what the next views need takes half a second to load."""
    with contextlib.suppress(ImportError):
        from inspector.summaries import completion, wording
        from inspector.tui import run

        _ = completion, wording, run


def run(path: Path, *, ascii_only: bool = False) -> int:
    """Open a capture in this terminal until the user quits; returns the exit status. Raises CaptureError."""
    driver: type[Driver] | None = None
    if ascii_only:
        from inspector.tui.ascii import AsciiDriver

        driver = AsciiDriver
    app = Inspector(path, driver=driver)
    app.run()
    return app.return_code or 0

"""The application of the terminal inspector: it opens the views, and contains what is the same in all of them."""

from __future__ import annotations

import contextlib
import gc
import os
from functools import cached_property, partial
from typing import TYPE_CHECKING, ClassVar

from textual.app import SystemCommand
from textual.binding import Binding

from inspector.errors import CaptureError
from inspector.explain.master_log.measured import NOTHING
from inspector.model import REHEARSAL_OF
from inspector.summaries.source import Source
from inspector.tui import themes
from inspector.tui.following import Following, newer
from inspector.tui.themes import ThemedApp
from inspector.tui.view import View

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from textual.driver import Driver
    from textual.filter import LineFilter
    from textual.screen import Screen

    from inspector.explain.master_log.measured import MasterTimes
    from inspector.lab import LabLoop
    from inspector.model import Finding, Place
    from inspector.summaries.filtering import Filtering
    from inspector.summaries.marks import Marks
    from inspector.tui.view import Application

ONLY = 2
"""Screens that are always there: Textual's own, and the first one."""
INTERVAL = 0.25
"""Seconds between two checks for new data."""


class Inspector(ThemedApp[None]):
    """A capture in a terminal."""

    TITLE = "puppet-inspector"
    DEFAULT_CSS = """
    VerticalScroll { scrollbar-size-vertical: 1; }
    """
    BINDINGS: ClassVar = [
        Binding("q", "quit", "Quit"),
        Binding("T", "theme", "Next theme", show=False),
        Binding("D", "fault", "Break something"),
    ]

    def __init__(
        self,
        path: Path,
        *,
        driver: type[Driver] | None = None,
        theme: str | None = None,
        lab: LabLoop | None = None,
        bell: bool = False,
        times: MasterTimes = NOTHING,
        temporary: bool = False,
    ) -> None:
        """Open a capture, by default in the theme that was chosen last. ``lab`` is what writes it, if it is a lab whose
        fault can be chosen; with ``bell`` a failed run rings; ``times`` is what a master's logs say about it. With
        ``temporary`` it is gone when it is closed. Raises CaptureError."""
        super().__init__(driver=driver, theme=theme)
        self.following = Following(bell=bell)
        self.lab = lab
        if theme:
            themes.remember(theme)
        self.source = Source(path)
        self.times = times
        self._temporary = temporary
        self._lost = False
        """Whether the capture could not be read the last time."""

    def on_mount(self) -> None:
        """Show what is wrong."""
        from inspector.tui.causes import Causes

        self.push_screen(Causes())
        if self.rehearsal:
            self.open_pairs()
        self.set_interval(INTERVAL, self.poll)
        self.set_timer(INTERVAL, self._settle)

    def _settle(self) -> None:
        """Load what the next views need, and show what a master's logs do not say, and which clocks were wrong."""
        if notes := (*self.times.notes, *self.times.file_notes, *self._corrected()):
            self.show_message(" ".join(notes), stays=True)
        gc.freeze()
        gc.enable()
        self.run_worker(_warm_up, thread=True, group="warm up")

    def on_unmount(self) -> None:
        """End the process that indexes."""
        self.source.close()

    def poll(self) -> None:
        """Show new records of the capture."""
        before = self.source.total, self.source.trouble, self.source.state.last
        was_open = self.source.open
        try:
            new = self.source.poll()
        except CaptureError as error:
            self._lost = True
            self.show_message(str(error), stays=True)
            return
        if self._lost:
            self._lost = False
            self.show_message("")
        new |= self.marks.refresh()
        now = self.source.total, self.source.trouble, self.source.state.last
        if (new or now != before) and (view := self.front):
            view.renew()
        if new and self.following.rings(self.source.runs):
            self.bell()
        if not self.source.open and (was_open or self.following.on):
            self._offer_newer()

    def _offer_newer(self) -> None:
        """Go on in the capture that the proxy writes now, if it is followed; otherwise say that there is one."""
        found = newer(self.source.path)
        if found and self.following.on:
            self.switch(found)
        elif found:
            self.show_message(f"{found.name} is newer: W follows what is recorded.", stays=True)

    def switch(self, path: Path) -> None:
        """Show another capture."""
        try:
            source = Source(path)
        except CaptureError as error:
            self.show_message(str(error))
            return
        self.source.close()
        self.source = source
        self.times, self._temporary = NOTHING, False
        for name in ("filtering", "marks", "rehearsal"):
            self.__dict__.pop(name, None)  # they belong to the capture
        while len(self.screen_stack) > ONLY:
            self.pop_screen()
        self.open_pairs() if self.rehearsal else self.open_runs()

    # -- what the views share ---------------------------------------------------------------------------

    @property
    def front(self) -> View | None:
        """The current view.

        None while a modal screen covers it, before the first view and after the last: timers and threads may still call
        the inspector then.
        """
        top = self.screen_stack[-1:]
        return top[0] if top and isinstance(top[0], View) else None

    @cached_property
    def filtering(self) -> Filtering:
        """The filters of this capture."""
        from inspector.summaries.filtering import Filtering

        return Filtering(self.source)

    @cached_property
    def marks(self) -> Marks:
        """Marks and notes."""
        from inspector.summaries.marks import Marks

        return Marks(self.source, temporary=self._temporary)

    @property
    def lab_state(self) -> str:
        """What is broken in the lab that writes the capture, for a title; empty without one."""
        if self.lab is None:
            return ""
        return self.lab.trouble or f"lab: {self.lab.fault.name} (D)"

    def open_run(self, number: int, seq: int | None = None, finding: Finding | None = None) -> None:
        """Show a run, with the cursor on the record that is evidence for a finding."""
        from inspector.tui.run import RunView

        if view := self.front:
            # Drawing a whole run takes some hundred milliseconds: respond to the key first.
            view.answer(f"opening run {number if number > 0 else ''} …")
        self.call_after_refresh(self.push_screen, RunView(number, seq, finding))

    def open_exchange(self, number: int | None, seq: int, place: Place | None = None) -> None:
        """Show one record on the whole screen, at a place in it; next and previous are those of its run."""
        from inspector.tui.exchange import ExchangeView

        self.push_screen(ExchangeView(list(self.source.seqs(number)) if number else [seq], seq, place=place))

    def open_runs(self, *, grouped: bool = False) -> None:
        """Show all runs, in the order of time or by agent."""
        from inspector.tui.runs import Runs

        self.push_screen(Runs(grouped=grouped))

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

    def open_differences(self, before: int | None, after: int) -> None:
        """Show what is different between two runs; without ``before``, from the last good run of the same node."""
        from inspector.summaries import incidents
        from inspector.tui.differences import DifferencesView

        run = self.source.run(after)
        good = incidents.last_good(self.source.runs, run) if run and before is None else None
        before = good.number if good else before
        if before is None:
            self.show_message("No earlier run of this node in the capture went well: m marks two runs to compare.")
        else:
            self.push_screen(DifferencesView(before, after))

    @cached_property
    def rehearsal(self) -> bool:
        """Whether the capture is that of a rehearsal."""
        with contextlib.suppress(CaptureError), self.source.capture() as capture:
            return REHEARSAL_OF in capture.meta()
        return False

    def _corrected(self) -> list[str]:
        """The places whose times are not as they were recorded, since their clocks were wrong."""
        from inspector.capture.places import clocks_of

        with contextlib.suppress(CaptureError), self.source.capture() as capture:
            return [str(clock) for clock in clocks_of(capture.meta()) if clock.ahead]
        return []

    def open_pairs(self) -> None:
        """Show what each node received and what another master answered."""
        from inspector.tui.pairs import PairsView

        self.push_screen(PairsView())

    def open_marks(self) -> None:
        """List the marks and notes of the capture, to go to one of them."""
        from inspector.tui.noted import choose

        if view := self.front:
            choose(view)

    def show_message(self, text: str, *, stays: bool = False) -> None:
        """Show a message in the current view; with ``stays`` until there is another one."""
        if view := self.front:
            view.show_message(text, stays=stays)

    def copy_text(self, text: str | None, what: str) -> None:
        """Copy a text to the clipboard of the user's own terminal (OSC 52), also over SSH."""
        if text:
            self.copy_to_clipboard(text)
        self.show_message(f"copied: {what}" if text else "nothing to copy here")

    def get_line_filters(self) -> Sequence[LineFilter]:
        """Add the filter that makes our colours readable on a light theme and without colour."""
        own = themes.colour_filter(dark=self.current_theme.dark, colour="NO_COLOR" not in os.environ)
        return [*([own] if own else []), *super().get_line_filters()]

    # -- keys -------------------------------------------------------------------------------------------

    def action_theme(self) -> None:
        """Switch to the next theme, and remember it."""
        super().action_theme()
        self.show_message(f"theme: {self.theme}")

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer the faults of a lab only where there is one."""
        return self.lab is not None if action == "fault" else super().check_action(action, parameters)

    def action_fault(self) -> None:
        """Choose what is broken in the lab."""
        from inspector.lab import FAULTS, HEALTHY
        from inspector.tui.chooser import Choice, Chooser

        lab = self.lab
        if lab is None:
            return
        faults = {fault.name: fault for fault in (HEALTHY, *FAULTS.values())}

        def choose(name: str | None) -> None:
            if name is not None:
                lab.choose(faults[name])
                self.show_message(f"{name}: its runs appear within seconds")

        choices = [Choice(fault.name, fault.description) for fault in faults.values()]
        self.push_screen(Chooser("Break something in the lab", choices, chosen=lab.fault.name), choose)

    def get_system_commands(self, screen: Screen[object]) -> Iterable[SystemCommand]:
        """The commands of the palette: the views, and the action of every key, so that the mouse can start them too."""
        yield SystemCommand("Findings", "All findings of the capture, by rule, agent or severity", self.open_findings)
        yield SystemCommand("Bootstrap", "How agents got their certificates", self.open_bootstrap)
        yield SystemCommand("Search bodies", "Search the bodies of all records", self.open_search)
        if self.rehearsal:
            yield SystemCommand("Rehearsal", "What nodes received, and what another master answers", self.open_pairs)
        yield SystemCommand("Next theme", f"{', '.join(themes.THEMES)}: the next one", self.action_theme)
        yield SystemCommand("Quit", "Leave the inspector", self.exit)
        from inspector.tui.keys import keys

        listed = {"Next theme", "Quit", "Findings", "Bootstrap", "Search bodies"}
        for node, binding in keys(screen):
            if binding.description not in listed:
                listed.add(binding.description)
                key = f"key {self.get_key_display(binding)}"
                yield SystemCommand(binding.description, key, partial(self.run_action, binding.action, node))

    def export(self, seqs: Sequence[int]) -> None:
        """Write records to a file: jsonl, HAR or mitmproxy flows, depending on the ending of its name."""
        from inspector.tui.exporting import export

        if view := self.front:
            export(view, seqs)

    def report(self, number: int | None) -> None:
        """Write the report of a run to an HTML file."""
        from inspector.tui.exporting import report

        if view := self.front:
            report(view, number)


if TYPE_CHECKING:

    def _as_views_know_it(app: Inspector) -> Application:
        """Have the type checker verify that the application is what views require (``View.inspector``)."""
        return app


def _warm_up() -> None:
    """Import in a thread what the next views need: it takes half a second."""
    with contextlib.suppress(ImportError):
        from inspector.summaries import completion, wording
        from inspector.tui import catalog, relations, run

        _ = completion, wording, catalog, relations, run


def run(
    path: Path,
    *,
    ascii_only: bool = False,
    theme: str | None = None,
    lab: LabLoop | None = None,
    bell: bool = False,
    times: MasterTimes = NOTHING,
    temporary: bool = False,
) -> int:
    """Open a capture in this terminal until the user quits; returns the exit status. Raises CaptureError."""
    driver = _driver(ascii_only=ascii_only)
    app = Inspector(path, driver=driver, theme=theme, lab=lab, bell=bell, times=times, temporary=temporary)
    app.run()
    return app.return_code or 0


def run_fleet(folder: Path, *, ascii_only: bool = False, theme: str | None = None) -> int:
    """Open a directory of tables. Raises InspectorError."""
    from inspector.fleet import database
    from inspector.fleet.directory import TableDirectory
    from inspector.tui.fleet import FleetApp

    database.check()
    app = FleetApp(TableDirectory.open(folder), driver=_driver(ascii_only=ascii_only), theme=theme)
    app.run()
    return app.return_code or 0


def run_newest(folder: Path, *, ascii_only: bool = False, theme: str | None = None, bell: bool = False) -> int:
    """Open the newest capture of a directory, which need not exist, as soon as there is one. Raises CaptureError."""
    from inspector.capture import paths
    from inspector.tui.waiting import Waiting

    path = paths.newest_in(folder) or Waiting(folder, driver=_driver(ascii_only=ascii_only)).run()
    return 0 if path is None else run(path, ascii_only=ascii_only, theme=theme, bell=bell)


def _driver(*, ascii_only: bool) -> type[Driver] | None:
    if not ascii_only:
        return None
    from inspector.tui.ascii import AsciiDriver

    return AsciiDriver

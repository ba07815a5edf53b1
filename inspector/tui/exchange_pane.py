"""One record in tabs: what it means, its request and response, TLS, timing, and what its endpoint is for."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from rich.text import Text
from textual.message import Message
from textual.widgets import Static

from inspector.errors import CaptureError
from inspector.pages import palette
from inspector.pages import tabs as pages
from inspector.pages.model import WRONG
from inspector.text import clean
from inspector.tui.doc_pane import DocPane
from inspector.tui.view import later, unread

if TYPE_CHECKING:
    from inspector.model import Finding, Place
    from inspector.pages.tabs import Tab


class ExchangePane(DocPane):
    """One record in tabs; part of a ``View``."""

    class Loaded(Message):
        """A record was loaded."""

        def __init__(self, pane: ExchangePane, seq: int) -> None:
            super().__init__()
            self.pane = pane
            self.seq = seq

    def __init__(self, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id)
        self.seq: int | None = None
        """The record that is shown or being read."""

    def show(self, seq: int | None, finding: Finding | None = None, place: Place | None = None) -> None:
        """Show a record, at a place or where the evidence of a finding is."""
        if seq is not None and seq == self.seq and finding is None and place is None:
            return
        self._token += 1
        self.seq = seq
        self._show_finding(finding)
        if seq is None:
            self._clear()
            return
        self._reading(now=True)
        owner = self.view.source.owner(seq)
        briefs = self.view.source.briefs(owner.number) if owner else []
        related = [brief.seq for brief in briefs if brief.request_kind in pages.RELATED and brief.seq < seq]
        load = partial(self._load, self._token, seq, finding, place, related[-pages.MOST_RELATED :])
        self.run_worker(load, thread=True, exclusive=True, group="record")

    def _load(self, token: int, seq: int, finding: Finding | None, place: Place | None, related: list[int]) -> None:
        source = self.view.source
        tabs: list[Tab] = []
        trouble = ""
        try:
            step = source.step(seq)
            if step is not None:
                others = [found for step in related if (found := source.step(step))]
                tabs = pages.tabs(step, pages.known(step, others))
                place = pages.locate(finding.places, tabs) if finding and not place else place
            else:
                trouble = f"There is no record {seq}."
        except CaptureError as error:
            trouble = f"Record {seq} {unread(error)}"
        except WRONG as error:
            trouble = f"This record cannot be displayed: {error}"
        later(self, self._take, token, tabs, place, trouble)

    def _take(self, token: int, tabs: list[Tab], place: Place | None, trouble: str) -> None:
        if token != self._token or not self.is_attached:
            return
        self._clear()
        if trouble:
            self._show_notice(clean(trouble))
            return
        self.tabs = tabs
        names = [tab.name for tab in tabs]
        name = self.tab if self.tab in names else names[0]
        if place:
            name = next((name for name in names if name.lower() == place.tab), names[0])
            titles = [part.title.lower() for part in self._tab(name).parts]
            self._part[name] = titles.index(place.part) if place.part in titles else 0
            if place.needle:
                # One line of the message may be two cells in a table.
                needles = (place.needle, place.needle.partition(" ")[2], place.fallback)
                self._wanted = (name, self._part[name]), needles
        self._open(name)
        if self.seq is not None:
            self.post_message(self.Loaded(self, self.seq))

    def _show_finding(self, finding: Finding | None) -> None:
        self.query_one("#finding").styles.display = "block" if finding else "none"
        if finding:
            line = self.query_one("#finding Static", Static)
            style = palette.SEVERITIES[finding.severity]
            line.update(Text.assemble((f"{finding.severity} {finding.rule} ", style), clean(finding.message)))

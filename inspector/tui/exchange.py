"""One record on the whole screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.binding import Binding

from inspector.summaries import wording
from inspector.text import clean
from inspector.tui.exchange_pane import ExchangePane
from inspector.tui.onrecord import OnRecord

if TYPE_CHECKING:
    from collections.abc import Iterable

    from textual.widget import Widget

    from inspector.model import Finding, Place


class ExchangeView(OnRecord):
    """One record on the whole screen."""

    BINDINGS = [
        Binding("greater_than_sign", "other(1)", "Next record", key_display=">"),
        Binding("less_than_sign", "other(-1)", "Previous record", key_display="<"),
        Binding("full_stop", "other(1)", "Next record", show=False),
        Binding("comma", "other(-1)", "Previous record", show=False),
    ]

    def __init__(self, seqs: list[int], seq: int, finding: Finding | None = None, place: Place | None = None) -> None:
        """Show the record ``seq``, at ``place``; ``seqs`` are the records that next and previous go through."""
        super().__init__()
        self.seqs, self.seq, self.finding, self.place = seqs, seq, finding, place

    def body(self) -> Iterable[Widget]:
        yield ExchangePane()

    def record(self) -> int:
        return self.seq

    def opened(self) -> None:
        self.pane().show(self.seq, self.finding, self.place)

    def heading(self) -> str:
        owner = self.source.owner(self.seq)
        found = [brief for brief in self.source.briefs(owner.number) if brief.seq == self.seq] if owner else []
        what, time = "record", ""
        if found:
            time, _, _, method, path, status, *_ = wording.row(found[0], owner)
            what = {"handshake": "failed TLS handshake", "gap": "gap"}.get(found[0].kind, f"{method} {path} {status}")
        place = f"{self.seqs.index(self.seq) + 1} of {len(self.seqs)}" if self.seq in self.seqs else ""
        of = f"run {owner.label} of {clean(owner.name)}" if owner else "no run"
        return " - ".join(part for part in (f"{self.seq} {what}", place, of, time[:8]) if part)

    def on_exchange_pane_loaded(self, event: ExchangePane.Loaded) -> None:
        event.stop()
        self.update()
        self.pane().focus()

    def action_other(self, by: int) -> None:
        """Go to the next or the previous record."""
        if self.seq not in self.seqs:
            return
        at = self.seqs.index(self.seq) + by
        if not 0 <= at < len(self.seqs):
            self.show_message("This is the last record." if by > 0 else "This is the first record.")
            return
        self.show_message("")
        self.seq = self.seqs[at]
        self.pane().show(self.seq)
        self.update()

    def search_target(self) -> ExchangePane:
        """The pane: the focus does not matter."""
        return self.pane()

"""One record: what can be done with it in any view, and the view that shows it on the whole screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.binding import Binding

from inspector.analysis.analyzer import masked
from inspector.formats import curl, files, json_output
from inspector.model import Exchange
from inspector.pages import plain
from inspector.rules import fixes
from inspector.summaries import wording
from inspector.text import as_json, clean
from inspector.tui.chooser import Choice, Chooser
from inspector.tui.exchange_pane import NAMES, ExchangePane
from inspector.tui.view import View

if TYPE_CHECKING:
    from collections.abc import Iterable

    from textual.widget import Widget

    from inspector.model import Finding, Place
    from inspector.summaries.summary import RunBrief

FORMATS = (
    Choice("curl", "the request as a command; secrets are replaced by variables"),
    Choice("JSON", "everything, decoded, as `puppet-inspector show --json`; secrets are masked"),
    Choice("Markdown", "everything, for a ticket; secrets are masked"),
    Choice("fix", "how to fix the worst of what is wrong with it"),
)


NO_RECORD = "There is no record behind this line; Up and Down lead to one."


class OnRecord(View):
    """A view with one selected record, which a pane shows."""

    BINDINGS = [
        *(Binding(str(key), f"tab('{name}')", name, show=False) for key, name in enumerate(NAMES, 1)),
        Binding("m", "mark", "Mark", show=False),
        Binding("M", "note", "Note", show=False),
        Binding("y", "copy", "Copy value", show=False),
        Binding("u", "curl", "Copy as curl", show=False),
        Binding("Y", "copy_as", "Copy record as", show=False),
        Binding("S", "save", "Save the body", show=False),
    ]

    def record(self) -> int | None:
        """The selected record; None if there is none."""
        raise NotImplementedError

    def pane(self) -> ExchangePane:
        """The pane that shows the record."""
        return self.query_one(ExchangePane)

    def action_tab(self, name: str) -> None:
        """Show a tab of the record, wherever the focus is."""
        if self.pane().go_to(name):
            self.show_message("")
            self.revealed()
        else:
            self.show_message(NO_RECORD if self.pane().seq is None else f"This record has no tab {name!r}.")

    def revealed(self) -> None:
        """Make the pane visible, which a key has changed."""

    def action_mark(self) -> None:
        seq = self.record()
        if seq is not None and self.attempt(lambda: self.inspector.marks.toggle(seq)):
            self.mark_changed()

    def action_note(self) -> None:
        seq = self.record()
        if seq is not None and self.attempt(self.inspector.marks.begin_note):
            note = self.inspector.marks.note_of(seq)
            self.ask(f"note on record {seq}: ", lambda text: self._set_note(seq, text), note, accept="Keep")

    def _set_note(self, seq: int, text: str) -> None:
        if self.attempt(lambda: self.inspector.marks.note(seq, text)):
            self.mark_changed()

    def mark_changed(self) -> None:
        """Update the view: a mark or a note has changed."""
        self.show_mark()

    def show_mark(self) -> None:
        """Show whether the record is marked, and its note."""
        seq = self.record()
        self.show_message(self.inspector.marks.describe(seq) if seq is not None else "", stays=True)

    def value_to_copy(self) -> str | None:
        """The selected value as shown: masked values remain masked."""
        return self.pane().copy_value()

    def action_copy(self) -> None:
        """Copy the selected value."""
        value = self.value_to_copy()
        lines = (value or "").strip().split("\n")
        self.inspector.copy_text(value, lines[0][:60] if len(lines) == 1 else f"{len(lines)} lines")

    def action_curl(self) -> None:
        """Copy the request as a curl command."""
        seq = self.record()
        if seq is not None:
            self.attempt(lambda: self._copy_curl(seq))

    def action_copy_as(self) -> None:
        """Copy the whole record in a format that is chosen."""
        seq = self.record()
        if seq is None:
            self.show_message("Nothing to copy here.")
            return
        copy = {
            "curl": self._copy_curl,
            "JSON": self._copy_json,
            "Markdown": self._copy_markdown,
            "fix": self._copy_fix,
        }

        def take(name: str | None) -> None:
            if name is not None:
                self.attempt(lambda: copy[name](seq))

        self.app.push_screen(Chooser(f"Copy record {seq} as", FORMATS), take)

    def _copy_json(self, seq: int) -> None:
        if step := self.source.step(seq):
            text = as_json(json_output.show(masked(step), self.source.owner(seq)))
            self.inspector.copy_text(text, f"record {seq} as JSON, secrets masked")

    def _copy_markdown(self, seq: int) -> None:
        if step := self.source.step(seq):
            text = "\n".join(plain.markdown(masked(step), self.source.owner(seq)))
            self.inspector.copy_text(text, f"record {seq} as Markdown, secrets masked")

    def _copy_fix(self, seq: int) -> None:
        owner = self.source.owner(seq)
        found = next((finding for finding in (owner.ordered if owner else ()) if seq in finding.seqs), None)
        if owner is None or found is None:
            self.show_message("Nothing is wrong with this record.")
            return
        steps = owner.steps if found.rule == owner.cause else owner.fix_for(found.rule)
        self.inspector.copy_text("\n".join(map(clean, fixes.lines(steps))), f"the fix of {found.rule}")

    def _copy_curl(self, seq: int) -> None:
        found = self.source.record(seq)
        command = curl.command(found) if isinstance(found, Exchange) else None
        self.inspector.copy_text(command, f"record {seq} as a curl command; secrets are replaced by variables")

    def action_save(self) -> None:
        """Save the body of the tab that is shown, with secrets masked."""
        found = self.pane().body()
        if found is None:
            self.show_message("no body here")
            return
        name, data = found
        self.ask("save the body to: ", lambda path: self._write(path, data), name, accept="Save")

    def _write(self, name: str, data: bytes) -> None:
        def write() -> None:
            path = files.named(name)
            with files.created(path) as file:
                file.write(data)
            self.show_message(
                f"wrote {len(data)} bytes to {path}, secrets masked; unmasked: puppet-inspector export --with-secrets"
            )

        self.attempt(write)


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

    @property
    def selected_run(self) -> RunBrief | None:
        """The run of the record."""
        return self.source.owner(self.seq)

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

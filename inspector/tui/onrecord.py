"""Actions on one record in any view: mark it, add a note, copy a value, save its body."""

from __future__ import annotations

from textual.binding import Binding

from inspector.formats import curl, files, json_output
from inspector.model import Exchange
from inspector.pages import plain
from inspector.text import as_json
from inspector.tui.doc_pane import NAMES
from inspector.tui.exchange_pane import ExchangePane
from inspector.tui.view import View

FORMATS = ("curl", "json", "markdown")


class OnRecord(View):
    """A view with one selected record, which a pane shows."""

    BINDINGS = [
        *(Binding(str(key), f"tab('{name}')", name, show=False) for key, name in enumerate(NAMES, 1)),
        Binding("m", "mark", "Mark", show=False),
        Binding("M", "note", "Note", show=False),
        Binding("y", "copy", "Copy the value", show=False),
        Binding("u", "curl", "Copy as curl", show=False),
        Binding("Y", "copy_as", "Copy the record as curl, JSON or Markdown", show=False),
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
            self.show_message(f"This record has no tab {name!r}.")

    def revealed(self) -> None:
        """The pane was changed by a key: make sure that it can be looked at."""

    def action_mark(self) -> None:
        seq = self.record()
        if seq is not None and self.attempt(lambda: self.inspector.marks.toggle(seq)):
            self.mark_changed()

    def action_note(self) -> None:
        seq = self.record()
        if seq is not None:
            note = self.inspector.marks.note_of(seq)
            self.ask(f"note on record {seq}: ", lambda text: self._set_note(seq, text), note)

    def _set_note(self, seq: int, text: str) -> None:
        if self.attempt(lambda: self.inspector.marks.note(seq, text)):
            self.mark_changed()

    def mark_changed(self) -> None:
        """Update the view: a mark or a note has changed."""
        self.show_mark()

    def show_mark(self) -> None:
        """Show whether the record is marked, and its note."""
        seq = self.record()
        self.show_message(self.inspector.marks.describe(seq) if seq is not None else "")

    def value_to_copy(self) -> str | None:
        """The selected value as shown: masked values remain masked."""
        return self.pane().copy_value()

    def action_copy(self) -> None:
        """Copy the selected value."""
        value = self.value_to_copy()
        self.inspector.copy_text(value, (value or "").partition("\n")[0][:60])

    def action_curl(self) -> None:
        """Copy the request as a curl command."""
        seq = self.record()
        if seq is not None:
            self.attempt(lambda: self._copy_curl(seq))

    def action_copy_as(self) -> None:
        """Copy the whole record in a format that is asked for."""
        seq = self.record()
        if seq is None:
            self.show_message("Nothing to copy here.")
            return

        def complete(text: str) -> list[str]:
            return [name for name in FORMATS if name.startswith(text.strip().lower())]

        self.ask(f"copy as ({', '.join(FORMATS)}): ", lambda text: self._copy_as(seq, text), complete=complete)

    def _copy_as(self, seq: int, text: str) -> None:
        name = text.strip().lower()
        if name == "curl":
            self.attempt(lambda: self._copy_curl(seq))
        elif name in FORMATS:
            self.attempt(lambda: self._copy_record(seq, name))
        else:
            self.show_message(f"There is no format {text.strip()!r}: {', '.join(FORMATS)}.")

    def _copy_record(self, seq: int, name: str) -> None:
        step, owner = self.source.step(seq), self.source.owner(seq)
        if step is None:
            self.show_message(f"There is no record {seq}.")
            return
        step = json_output.masked(step)
        copied = as_json(json_output.show(step, owner)) if name == "json" else "\n".join(plain.markdown(step, owner))
        self.inspector.copy_text(copied, f"record {seq} as {name}, secrets masked")

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
        self.ask("save the body to: ", lambda path: self._write(path, data), name)

    def _write(self, name: str, data: bytes) -> None:
        def write() -> None:
            path = files.named(name)
            with files.created(path) as file:
                file.write(data)
            self.show_message(
                f"wrote {len(data)} bytes to {path}, secrets masked; unmasked: puppet-inspector export --with-secrets"
            )

        self.attempt(write)

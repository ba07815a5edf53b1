"""What can be done with one record, wherever it is shown: mark it, note something, copy from it, save its body."""

from __future__ import annotations

from textual.binding import Binding

from inspector.formats import curl, files
from inspector.model import Exchange
from inspector.tui.exchange_pane import ExchangePane
from inspector.tui.view import View


class OnRecord(View):
    """A view with one record under its cursor, which a pane shows."""

    BINDINGS = [
        Binding("m", "mark", "Mark", show=False),
        Binding("M", "note", "Note", show=False),
        Binding("y", "copy", "Copy the value", show=False),
        Binding("u", "curl", "Copy as curl", show=False),
        Binding("S", "save", "Save the body", show=False),
    ]

    def record(self) -> int | None:
        """The record under the cursor; None if there is none."""
        raise NotImplementedError

    def pane(self) -> ExchangePane:
        """Where it is shown."""
        return self.query_one(ExchangePane)

    def action_mark(self) -> None:
        seq = self.record()
        if seq is not None and self.attempt(lambda: self.inspector.marks.toggle(seq)):
            self.remarked()

    def action_note(self) -> None:
        seq = self.record()
        if seq is not None:
            note = self.inspector.marks.note_of(seq)
            self.ask(f"note on record {seq}: ", lambda text: self._keep(seq, text), note)

    def _keep(self, seq: int, text: str) -> None:
        if self.attempt(lambda: self.inspector.marks.note(seq, text)):
            self.remarked()

    def remarked(self) -> None:
        """A mark or a note has changed."""
        self.tell_mark()

    def tell_mark(self) -> None:
        """Say whether the record is marked, and what was noted."""
        seq = self.record()
        self.say(self.inspector.marks.describe(seq) if seq is not None else "")

    def copied(self) -> str | None:
        """The value under the cursor, as it is shown: what is masked stays so."""
        return self.pane().copy_value()

    def action_copy(self) -> None:
        """Copy the value under the cursor."""
        value = self.copied()
        self.inspector.put_aside(value, (value or "").partition("\n")[0][:60])

    def action_curl(self) -> None:
        """The request as a command."""
        seq = self.record()
        if seq is not None:
            self.attempt(lambda: self._copy_curl(seq))

    def _copy_curl(self, seq: int) -> None:
        found = self.source.record(seq)
        command = curl.command(found) if isinstance(found, Exchange) else None
        self.inspector.put_aside(command, f"record {seq} as a curl command; secrets are replaced by variables")

    def action_save(self) -> None:
        """The body of the tab that is shown, without its secrets."""
        found = self.pane().body()
        if found is None:
            self.say("no body here")
            return
        name, data = found
        self.ask("save the body to: ", lambda path: self._write(path, data), name)

    def _write(self, name: str, data: bytes) -> None:
        def write() -> None:
            path = files.named(name)
            with files.created(path) as file:
                file.write(data)
            self.say(
                f"wrote {len(data)} bytes to {path}, secrets masked; unmasked: puppet-inspector export --with-secrets"
            )

        self.attempt(write)

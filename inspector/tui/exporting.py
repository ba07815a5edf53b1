"""Export of the selected records to a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.worker import get_current_worker

from inspector.errors import InspectorError
from inspector.formats import exporting, files

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from textual.app import App

    from inspector.tui.view import Application, View


def export(view: View, seqs: Sequence[int]) -> None:
    """Ask for a file name, whose ending selects the format, and write these records."""
    if not seqs:
        view.show_message("nothing to export")
        return

    def write(name: str) -> None:
        path = files.named(name)
        kind = exporting.format_of(path)
        view.show_message(f"writing {len(seqs)} records ...")
        # The worker belongs to the application, not to the view: it continues when the view is closed.
        view.app.run_worker(lambda: _write(view.app, view.inspector, path, kind, seqs), thread=True, group="export")

    def attempt(name: str) -> None:
        view.attempt(lambda: write(name))

    suggestion = f"{view.source.path.stem}-{seqs[0]}-{seqs[-1]}.jsonl"
    endings = ", ".join(chosen.endings[0] for chosen in exporting.FORMATS.values())
    label = f"{len(seqs)} records to ({endings}): "
    view.ask(label, attempt, suggestion)


def _write(app: App[object], inspector: Application, path: Path, kind: str, seqs: Sequence[int]) -> None:
    """Write the file in a thread: a selection may be large."""
    try:
        owners = inspector.source.owners(seqs)
        chosen = exporting.Chosen(inspector.source.path, whole=False, owners={seq: owners.get(seq) for seq in seqs})
        number = chosen.write(kind, path)
        message = f"wrote {number} records to {path}, secrets masked; unmasked: puppet-inspector export --with-secrets"
    except InspectorError as error:
        message = str(error)
    if not get_current_worker().is_cancelled:
        app.call_from_thread(inspector.show_message, message)

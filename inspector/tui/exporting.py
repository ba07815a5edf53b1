"""Writing the selected records to a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.worker import get_current_worker

from inspector import export as files
from inspector.errors import InspectorError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from inspector.tui.app import Inspector

FLOWS = (".mitm", ".flow", ".flows")
"""Endings of mitmproxy's flow files."""


def export(app: Inspector, seqs: Sequence[int]) -> None:
    """Ask for a file's name and write these records: lines of JSON, or mitmproxy's flows if the name ends so."""
    view = app.front
    if view is None:
        return
    if not seqs:
        view.say("there is nothing to export")
        return

    def write(name: str) -> None:
        path = files.named(name)
        view.say(f"writing {len(seqs)} records ...")
        # The application's, not the view's: it goes on when the view is left.
        app.run_worker(lambda: _write(app, path, seqs), thread=True, group="export")

    def attempt(name: str) -> None:
        view.attempt(lambda: write(name))

    suggestion = f"{app.source.path.stem}-{seqs[0]}-{seqs[-1]}.jsonl"
    label = f"{len(seqs)} records to (.jsonl, or .mitm for mitmproxy): "
    view.ask(label, attempt, suggestion)


def _write(app: Inspector, path: Path, seqs: Sequence[int]) -> None:
    """In a thread: a selection may be large."""
    try:
        with app.source.capture() as capture:
            records = (record for seq in seqs if (record := capture.record(seq)))
            if path.suffix in FLOWS:
                from inspector.transfer import export_flows  # loads mitmproxy

                number = export_flows(records, path)
            else:
                number = files.write(files.jsonl(records, app.source.owner), path)
        told = f"{number} records are in {path}, secrets masked; with them: puppet-inspector export --with-secrets"
    except InspectorError as error:
        told = str(error)
    if not get_current_worker().is_cancelled:
        app.call_from_thread(app.tell, told)

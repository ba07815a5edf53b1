"""Writing the selected records to a file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from inspector import export as files
from inspector.errors import InspectorError
from inspector.tui.view import View

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inspector.tui.app import Inspector

FLOWS = (".mitm", ".flow", ".flows")
"""Endings of mitmproxy's flow files."""


def export(app: Inspector, seqs: Sequence[int]) -> None:
    """Ask for a file's name and write these records: lines of JSON, or mitmproxy's flows if the name ends so."""
    view = app.screen
    if not isinstance(view, View):
        return
    if not seqs:
        view.say("there is nothing to export")
        return

    def write(name: str) -> None:
        path = Path(name.strip()).expanduser()
        view.say(f"writing {len(seqs)} records ...")
        view.run_worker(lambda: _write(view, path, seqs), thread=True, group="export", exclusive=True)

    suggestion = f"{app.source.path.stem}-{seqs[0]}-{seqs[-1]}.jsonl"
    view.ask(f"{len(seqs)} records to (.jsonl, or .mitm for mitmproxy): ", write, suggestion)


def _write(view: View, path: Path, seqs: Sequence[int]) -> None:
    """In a thread: a selection may be large."""
    try:
        with view.source.capture() as capture:
            records = (record for seq in seqs if (record := capture.record(seq)))
            if path.suffix in FLOWS:
                from inspector.transfer import export_flows  # loads mitmproxy

                number = export_flows(records, path)
            else:
                number = files.write(files.jsonl(records, view.source.owner), path)
        told = f"{number} records are in {path}, with all they hold: secrets are not taken out"
    except InspectorError as error:
        told = f"{error.message} {error.hint or ''}".rstrip()
    view.app.call_from_thread(view.say, told)

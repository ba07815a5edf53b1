"""Writes a file from the inspector: the records that are shown, or the report of a run."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from textual.worker import get_current_worker

from inspector import installation, rules
from inspector.errors import InspectorError
from inspector.formats import exporting, files
from inspector.text import beginning, clean

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from inspector.summaries.source import Source
    from inspector.tui.view import View

LONGEST = 400
"""Characters of a message of the other process."""


def export(view: View, seqs: Sequence[int]) -> None:
    """Ask for a file name, whose ending selects the format, and write these records."""
    if not seqs:
        view.show_message("nothing to export")
        return

    def write(name: str) -> None:
        path = files.named(name)
        kind = exporting.format_of(path)
        view.show_message(f"writing {len(seqs)} records ...")
        source = view.source
        _start(view, lambda: _records_written(source, path, kind, seqs))

    endings = ", ".join(chosen.endings[0] for chosen in exporting.FORMATS.values())
    suggestion = f"{view.source.path.stem}-{seqs[0]}-{seqs[-1]}.jsonl"
    view.ask(
        f"{len(seqs)} records to ({endings}): ",
        lambda name: view.attempt(lambda: write(name)),
        suggestion,
        accept="Write",
    )


def report(view: View, number: int | None) -> None:
    """Ask for a file name, and write the report of a run by its number: one HTML file to pass on."""
    if number is None or number <= 0:
        view.show_message("Select a run whose number is known.")
        return

    def write(name: str) -> None:
        path = files.named(name)
        files.must_be_new(path)
        # A process of its own: a large capture takes minutes, and the screens stay quick.
        words = ("report", str(view.source.path), "--run", str(number), "-o", str(path), *rules.in_use().arguments)
        command = installation.command("inspector.cli.main", *words)
        view.show_message(f"writing the report of run {number} ...")
        _start(view, lambda: _report_written(path, command))

    suggestion = f"{view.source.path.stem}-run-{number}.html"
    view.ask(f"report of run {number} to: ", lambda name: view.attempt(lambda: write(name)), suggestion, accept="Write")


def _start(view: View, write: Callable[[], str]) -> None:
    """Write in a thread, and show the message that is returned."""
    app, inspector = view.app, view.inspector

    def work() -> None:
        message = write()
        if not get_current_worker().is_cancelled:
            app.call_from_thread(inspector.show_message, message)

    # The worker belongs to the application, not to the view: it continues when the view is closed.
    app.run_worker(work, thread=True, group="export")


def _records_written(source: Source, path: Path, kind: str, seqs: Sequence[int]) -> str:
    """Write records; return the message that says so, or why not."""
    try:
        owners = source.owners(seqs)
        chosen = exporting.Chosen(source.path, whole=False, owners={seq: owners.get(seq) for seq in seqs})
        number = chosen.write(kind, path)
    except InspectorError as error:
        return str(error)
    return f"wrote {number} records to {path}, secrets masked; unmasked: puppet-inspector export --with-secrets"


def _report_written(path: Path, command: Sequence[str]) -> str:
    """Write a report; return the message that says so, or why not."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = next(iter(done.stderr.splitlines()), "it ended without a reason").removeprefix("puppet-inspector: ")
        return f"no report was written: {beginning(clean(reason), LONGEST)}"
    return f"wrote {path.resolve()}, values withheld; more in it: puppet-inspector report --with"

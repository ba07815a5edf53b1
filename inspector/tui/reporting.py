"""Writes the report of a run: one HTML file to pass on."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

from textual.worker import get_current_worker

from inspector import installation, rules
from inspector.formats import files
from inspector.text import beginning, clean

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from textual.app import App

    from inspector.tui.view import Application, View

LONGEST = 400
"""Characters of a message of the other process."""


def report(view: View, number: int | None) -> None:
    """Ask for a file name, and write the report of a run by its number."""
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
        view.app.run_worker(lambda: _write(view.app, view.inspector, path, command), thread=True, group="export")

    def attempt(name: str) -> None:
        view.attempt(lambda: write(name))

    view.ask(
        f"report of run {number} to: ",
        attempt,
        f"{view.source.path.stem}-run-{number}.html",
    )


def _write(app: App[object], inspector: Application, path: Path, command: Sequence[str]) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False)
    if done.returncode:
        reason = next(iter(done.stderr.splitlines()), "it ended without a reason").removeprefix("puppet-inspector: ")
        message = f"no report was written: {beginning(clean(reason), LONGEST)}"
    else:
        message = f"wrote {path.resolve()}, values withheld; more in it: puppet-inspector report --with"
    if not get_current_worker().is_cancelled:
        app.call_from_thread(inspector.show_message, message)

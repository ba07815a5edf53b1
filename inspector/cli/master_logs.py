"""``--access-log`` and ``--server-log``: what a master's own logs say about the time of requests."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from inspector.cli.rows import print_rows
from inspector.errors import InspectorError
from inspector.explain.master_log.measured import NOTHING
from inspector.explain.time_split import SHORT, Split
from inspector.formats import master_logs
from inspector.progress import unwatched
from inspector.text import clean, seconds

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from inspector.explain.master_log.measured import MasterTimes
    from inspector.progress import Watch
    from inspector.summaries.summary import RunBrief

LEAST = 0.0005
"""Seconds that are printed."""


def read(arguments: argparse.Namespace, capture: Path, watch: Watch = unwatched) -> MasterTimes:
    """Return what the logs that a user named say about a capture. Raises InspectorError."""
    return master_logs.read(capture, master_logs.MasterLogs(arguments.access_log, arguments.server_log), watch)


def times_of(
    arguments: argparse.Namespace, capture: Path, watch: Watch = unwatched, *, alone: bool = True
) -> MasterTimes:
    """Return the same, and print what was matched. Raises InspectorError; of a capture that is not ``alone`` the error
    is printed."""
    try:
        times = read(arguments, capture, watch)
    except InspectorError as error:
        if alone:
            raise
        print(f"puppet-inspector: {clean(error.message)}", file=sys.stderr)
        return NOTHING
    for note in (*times.notes, *times.file_notes):
        print(f"puppet-inspector: {clean(note)}", file=sys.stderr)
    return times


def print_times(runs: Iterable[RunBrief], splits: Mapping[int, Split], where: str = "") -> None:
    """Print where the time of runs went, as a table; columns without a value are left out. ``where`` names the
    capture."""
    listed = [(str(run.number), clean(run.name), splits[run.number]) for run in runs if run.number in splits]
    if len(listed) > 1:
        listed.append(("all", "", sum((split for _, _, split in listed), Split())))
    parts = [part for part in SHORT if any(split.parts()[part] >= LEAST for _, _, split in listed)]
    rows = [
        [number, name, seconds(split.whole), *(_cell(split.parts()[part]) for part in parts), SHORT[split.largest]]
        for number, name, split in listed
    ]
    if rows:
        print(f"\n{where}where the time went:".replace("\nw", "\nW"))
        print_rows(("run", "agent", "whole", *(SHORT[part] for part in parts), "most"), rows)


def _cell(took: float) -> str:
    return seconds(took) if took >= LEAST else ""

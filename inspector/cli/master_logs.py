"""``--access-log`` and ``--server-log``: what a master's own logs say about the time of requests."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.cli.tables import print_rows
from inspector.errors import InspectorError
from inspector.explain.master_log.measured import NOTHING
from inspector.explain.time_split import SHORT, Split
from inspector.formats import master_logs
from inspector.progress import unwatched
from inspector.text import clean, seconds

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Mapping

    from inspector.explain.master_log.measured import MasterTimes
    from inspector.progress import Watch
    from inspector.summaries.summary import RunBrief

LEAST = 0.0005
"""Seconds that are printed."""

OPTIONS = {
    "--access-log": "puppetserver's access log, also compressed, may be repeated: how much of the time was queue, how "
    "much work (docs/times.md)",
    "--server-log": "puppetserver.log, also compressed, may be repeated: how long catalogs were compiled",
}


def add_master_logs(command: argparse.ArgumentParser) -> None:
    """Add the options with a master's logs; ``times_of`` reads them."""
    for name, about in OPTIONS.items():
        command.add_argument(name, type=Path, metavar="FILE", action="append", default=[], help=about)


def logs_named(arguments: argparse.Namespace) -> bool:
    """Whether the user named logs."""
    return bool(arguments.access_log or arguments.server_log)


def times_of(
    arguments: argparse.Namespace, capture: Path, watch: Watch = unwatched, *, alone: bool = True
) -> MasterTimes:
    """Return what the logs that a user named say about a capture, and print what they do not say. Raises
    InspectorError; of a capture that is not ``alone`` the error is printed."""
    logs = master_logs.MasterLogs(arguments.access_log, arguments.server_log)
    try:
        times = master_logs.read(capture, logs, watch)
    except InspectorError as error:
        if alone:
            raise
        print(f"puppet-inspector: {clean(error.message)}", file=sys.stderr)
        return NOTHING
    for note in times.notes:
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

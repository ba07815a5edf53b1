"""``puppet-inspector runs``: list the runs of captures."""

from __future__ import annotations

import functools
import shlex
import time
from types import MappingProxyType
from typing import TYPE_CHECKING

from inspector import installation
from inspector.capture import paths
from inspector.cli.arguments import add_captures, add_filter, add_full, add_master_logs, add_rules, logs_named
from inspector.cli.master_logs import print_times, times_of
from inspector.cli.output import columns, print_failed, print_json, print_line, print_unanalyzed, print_verdicts
from inspector.cli.progress import shown
from inspector.cli.reading import Unreadable, across_places, show_newest, whole_message
from inspector.cli.rows import print_rows, run_row
from inspector.doctor import agent_end
from inspector.formats import json_output, master_logs
from inspector.progress import named as naming
from inspector.summaries import reading, wording
from inspector.text import clean, counts, plural

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Mapping, Sequence
    from pathlib import Path

    from inspector.explain.master_log.measured import MasterTimes
    from inspector.explain.time_split import Split
    from inspector.model import Finding
    from inspector.progress import Watch
    from inspector.summaries.reading import CaptureRuns
    from inspector.summaries.whole_messages import Whole

EXAMPLE = "puppet-inspector runs captures/FILE.sqlite"
SERVERS = 3
"""Runs whose servers are printed."""
SPARE = ("environment", "version", "began")
"""What a narrow terminal goes without, the first one first."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_captures(parser)
    parser.add_argument("--json", action="store_true", help="print JSON (docs/json/runs.schema.json)")
    add_full(parser, "runs captures/FILE.sqlite")
    add_master_logs(parser)
    add_filter(parser)
    add_rules(parser)


def execute(arguments: argparse.Namespace) -> int:
    """List the runs of captures: agent, versions, outcome, phases and findings."""
    captures = paths.chosen(arguments.captures)
    given = arguments.captures or captures
    if not logs_named(arguments):
        with across_places(captures, given) as (read, named):
            return print_runs(
                read, given, as_json=arguments.json, filtered=arguments.filter, full=arguments.full, named=named
            )
    alone = len(captures) == 1
    return print_runs(
        captures,
        given,
        as_json=arguments.json,
        filtered=arguments.filter,
        full=arguments.full,
        times=lambda capture, watch: times_of(arguments, capture, watch, alone=alone),
    )


def print_runs(
    captures: Sequence[Path],
    given: Sequence[Path] = (),
    *,
    as_json: bool,
    filtered: str = "",
    full: bool = False,
    ends: bool = True,
    healed: bool = False,
    times: Callable[[Path, Watch], MasterTimes] | None = None,
    named: Mapping[Path, Path] = MappingProxyType({}),
) -> int:
    """Print the runs that match a filter, their verdicts and the number of findings; return the exit status.
    ``given`` is how the user named the captures, perhaps by a directory. ``times`` reads what a master's logs say about
    a capture; where the time of each run went is printed too, then. ``ends``: print why an agent ended that `run`
    started, where its traffic does not show it. ``healed``: print the fix of what is over, as what healed it.
    ``named``: how the user called what is read in the place of several captures."""
    unreadable = Unreadable(captures)
    listed = []
    splits: dict[Path, dict[int, Split]] = {}
    if not filtered.strip():
        show_newest(captures)
    with shown() as watch:
        for capture in captures:
            with unreadable.reported():
                one = naming(watch, clean(capture.name)) if len(captures) > 1 else watch
                listed.append(reading.read(capture, filtered, one, time.time()))
                if times:
                    known = master_logs.run_times(capture, times(capture, one), one)
                    splits[capture] = {number: run.total for number, run in known}

    print_failed(reason for found in listed for reason in found.failed.values())

    def whole(capture: Path) -> Whole | None:
        return functools.partial(whole_message, capture) if full else None

    if as_json:
        print_json(
            [
                json_output.run(
                    run.brief,
                    run.seqs,
                    found.unanalyzed,
                    whole(found.capture),
                    found.capture,
                    splits.get(found.capture, {}).get(run.brief.number),
                )
                for found in listed
                for run in found.runs
            ],
            named,
        )
        return unreadable.status
    several = len(captures) > 1
    rows = [[found.capture.name, *run_row(run)] for found in listed for run in found.briefs]
    present = [line for found in listed for line in _present(found, filtered, several=several)]
    if rows:
        heads = ("capture", *wording.RUN_COLUMNS)
        first = 0 if several else 1
        print_rows(heads[first:], [row[first:] for row in rows], below="phases", spare=SPARE)
    elif listed and not present:
        print(_nothing(listed, captures))
    for line in present:
        print_line(line)
    fixes = wording.FixLines(columns())
    for found in listed:
        where = f"{found.capture.name} " if several else ""
        print_verdicts(found.briefs, fixes, whole(found.capture), where, healed=healed)
        print_unanalyzed(found.unanalyzed.items(), where)
        if found.capture in splits:
            print_times(found.briefs, splits[found.capture], where)
        _print_servers(found, where)
    for found in listed if ends and not filtered.strip() else ():
        for diagnosis in agent_end.of_capture(found.capture, found.briefs):
            print_line(f"{found.capture.name if several else ''}{' ' * several}{diagnosis.title}: {diagnosis.detail}")
            print(*fixes.of(diagnosis.steps, diagnosis.title), sep="\n")
    if rows:
        findings: list[Finding] = [finding for found in listed for run in found.briefs for finding in run.findings]
        names = [str(path) for path in given or captures]
        check = installation.typed("check", *names)
        print(f"{counts(findings)}: {check}" if findings else f"no findings: {shlex.join(names)}")
    return unreadable.status


def _print_servers(found: CaptureRuns, where: str) -> None:
    """Print which servers answered the runs that several answered: of the first ones."""
    runs = [run for run in found.briefs if len(run.servers) > 1]
    for run in runs[:SERVERS]:
        print_line(f"{where}run {run.number} was answered by {plural(len(run.servers), 'server')}:")
        for server in run.servers:
            print_line(f"  {clean(server.words)}")
    if (more := len(runs) - SERVERS) > 0:
        print_line(f"{where}and {plural(more, 'more run')}: --filter run:N shows which servers answered one")


def _present(found: CaptureRuns, filtered: str, *, several: bool) -> list[str]:
    """What is under way, of the runs that are listed."""
    chosen = {run.number for run in found.briefs} if filtered.strip() else None
    where = f"{found.capture.name} " if several else ""
    return [line if line.startswith(" ") else f"{where}{line}" for line in wording.going_on(found.judgement, chosen)]


def _nothing(listed: Sequence[CaptureRuns], captures: Sequence[Path]) -> str:
    where = str(captures[0]) if len(captures) == 1 else f"{len(listed)} captures"
    every = sum(found.every for found in listed)
    if not every:
        calls = "; ".join(str(calls) for found in listed for calls in found.judgement.calls)
        return f"There are no runs in {where}{f': {calls}' if calls else ''}."
    return f"Nothing matches the filter, of {plural(every, 'run')} in {where}."

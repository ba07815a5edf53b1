"""``puppet-inspector show``: show one record in full."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from inspector import inputs
from inspector.analysis.analyzer import Analyzer, masked, retrace
from inspector.capture import paths
from inspector.capture.store import Capture
from inspector.cli.arguments import add_capture, add_master_logs, add_rules, logs_named
from inspector.cli.master_logs import times_of
from inspector.cli.output import print_json
from inspector.cli.progress import shown
from inspector.errors import InspectorError
from inspector.formats import json_output, master_logs
from inspector.pages import plain, tabs
from inspector.progress import watched
from inspector.summaries.indexed import IndexedCapture
from inspector.text import seconds

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from inspector.analysis.analyzer import Step
    from inspector.explain.time_split import Split
    from inspector.summaries.summary import RunLike

DIGITS = 19
"""Of the smallest number that no record has."""
EXAMPLE = "puppet-inspector show captures/FILE.sqlite 27"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_capture(parser)
    parser.add_argument("record", help="the record's number, as `list` and `check` print it")
    parser.add_argument("--json", action="store_true", help="print JSON (docs/json/show.schema.json)")
    parser.add_argument("--with-secrets", action="store_true", help="do not mask secrets")
    add_master_logs(parser)
    add_rules(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Show one record in full: both TLS legs, headers, bodies, decoded documents and findings. Secrets are masked."""
    seq = _number(arguments.record, arguments.capture)
    capture = paths.one(arguments.capture)
    found = _of_index(capture, seq) or _of_records(capture, seq)
    if found is None:
        raise InspectorError(f"{capture} has no record {seq}.", "`puppet-inspector list` prints the record numbers.")
    split = _split(arguments, capture, seq)
    step = found.step if arguments.with_secrets else masked(found.step)
    if arguments.json:
        print_json(json_output.show(step, found.run, split))
        return 0
    with Capture.open(capture) as records:
        related = retrace(record for seq in found.before[-tabs.MOST_RELATED :] if (record := records.record(seq)))
        lines = plain.lines(step, found.run, related, masks=not arguments.with_secrets)
    for line in lines:
        print(line)
    if split:
        print(f"\nWhere its time went, since the run's record before: {seconds(split.whole)}\n  {split.words()}")
    return 0


def _split(arguments: argparse.Namespace, capture: Path, seq: int) -> Split | None:
    """Return where a record's time went, if a master's logs are given."""
    if not logs_named(arguments):
        return None
    with shown() as watch:
        times = times_of(arguments, capture, watch)
        found = (run.records.get(seq) for _, run in master_logs.run_times(capture, times, watch))
        return next(filter(None, found), None)


def _number(text: str, capture: Path | None) -> int:
    """Return the number of a record. Raises InspectorError."""
    if text.isascii() and text.isdecimal() and len(text) < DIGITS:
        return int(text)
    if capture is None and ("." in text or inputs.exists(Path(text))):
        raise InspectorError(
            f"The number of the record in {text} is missing.",
            f"`puppet-inspector list {text}` prints the numbers. For example: puppet-inspector show {text} 4",
        )
    if capture is not None and str(capture).isdecimal():
        hint = f"The capture comes first: puppet-inspector show {text} {capture}"
    else:
        hint = "For example: puppet-inspector show captures/FILE.sqlite 4. `puppet-inspector list` prints the numbers."
    raise InspectorError(f"{text!r} is not a record number.", hint)


class _Found(NamedTuple):
    """A record and its run."""

    step: Step
    run: RunLike | None
    before: Sequence[int]
    """Earlier records of the run by which its certificates are judged."""


def _of_index(capture: Path, seq: int) -> _Found | None:
    with IndexedCapture.whole(capture) as indexed, Capture.open(capture) as records:
        record = records.record(seq) if indexed else None
        if indexed is None or record is None:
            return None
        run = indexed.owner(seq)
        briefs = indexed.briefs(run.number) if run else []
        before = [brief.seq for brief in briefs if brief.request_kind in tabs.RELATED and brief.seq < seq]
        return _Found(next(retrace([record], indexed.unanalyzed_all())), run, before)


def _of_records(capture: Path, seq: int) -> _Found | None:
    analyzer, found = Analyzer(), None
    before: list[int] = []
    with Capture.open(capture) as records, shown() as watch:
        for step in analyzer.steps(watched(records.records(), watch, records.count())):
            if step.record.seq == seq:
                found = step
            elif step.match and step.match.endpoint.kind in tabs.RELATED and step.record.seq < seq:
                before.append(step.record.seq)
    analyzer.finish()
    if found is None:
        return None
    own = set(found.run.seqs if found.run else ())
    return _Found(found, found.run, [other for other in before if other in own])

"""``puppet-inspector reduce``: the smallest capture that still shows a finding, for a bug report."""

from __future__ import annotations

import math
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from inspector.capture import paths, replacing
from inspector.capture.store import Capture
from inspector.cli.arguments import add_captures, add_opening, add_rules, add_run, opened_by
from inspector.cli.output import columns, print_block, print_json, print_line
from inspector.cli.progress import shown
from inspector.cli.reading import as_one
from inspector.cli.relay import signals
from inspector.columns import Count
from inspector.errors import InspectorError
from inspector.formats.outgoing import Content
from inspector.formats.reduction import Effort, Ended, Reduction, Shown, Size, chosen, reduce
from inspector.model import Severity
from inspector.rules import known_rules
from inspector.runs.snapshot import Outcome
from inspector.summaries import reading, wording
from inspector.text import clean, plural, size

if TYPE_CHECKING:
    import argparse

EXAMPLE = "puppet-inspector reduce captures/FILE.sqlite --rule S01"
BUDGET = 60.0
"""Seconds for which parts are tried by default."""


class ShownIn(msgspec.Struct):
    """A finding in a capture, and the verdict on its run."""

    records: Count
    """The number of records of the capture."""
    bodies: Count
    """Bytes of all bodies in it, as on the wire."""
    run: Count
    """The number of the run; 0 for what belongs to no run."""
    outcome: Outcome
    """How the run ended."""
    message: str
    """What was found, in a sentence."""
    verdict: str | None
    """The verdict on the run; null if there is nothing to report of it."""


class Reduced(msgspec.Struct):
    """The capture that was made, and that it shows the finding."""

    capture: str
    """Its path."""
    rule: str
    """The rule of the finding."""
    severity: Severity
    is_cause: bool
    """Whether the finding is the cause in the verdict."""
    ended: Ended
    """smallest: without any one of its parts it would not show the finding. Else why it may be larger: budget, the time
    was over; interrupted, by the user; size, the records that are left are too large for parts of bodies to go."""
    tries: Count
    """How often a smaller capture was tried."""
    withheld: list[Content]
    """Kinds of values that were withheld (--with)."""
    before: ShownIn
    """In the capture that was reduced."""
    after: ShownIn
    """In the one that was made."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_captures(parser)
    parser.add_argument("--rule", metavar="RULE", help="the finding of this rule, in the newest failed run that has "
                        "one (default: the cause of the newest failed run)")  # fmt: skip
    add_run(parser, "the cause of this run, or with --rule its finding of that rule")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="default: CAPTURE-reduced.sqlite in the working directory"
    )
    parser.add_argument("--budget", type=float, metavar="SECONDS", default=BUDGET, help="for how long parts are tried "
                        f"(default: {BUDGET:g}); then what was reached is written")  # fmt: skip
    add_opening(parser)
    parser.add_argument("--json", action="store_true", help="print the result as JSON (docs/json/reduce.schema.json)")
    add_rules(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Make the smallest capture that still shows a finding: of the records first, then of what is in their bodies
    (resources, facts, parameters, lines of a report), everything goes that the finding does not need. What is left
    reveals no more than what `share` makes, has the same verdict, and shows nothing that the capture did not. Ctrl-C,
    or the end of the budget, writes what was reached: reduce that again to go on."""
    opened = opened_by(arguments.opened)
    rule = _rule(arguments.rule)
    if not 0 <= arguments.budget < math.inf:
        raise InspectorError(f"--budget {arguments.budget:g} is no time to wait.", "Give a number of seconds.")
    with shown() as watch, as_one(arguments.captures, watch, arguments.run) as capture:
        target = arguments.output or paths.made_from(capture, "-reduced.sqlite")
        replacing.must_be_new(target)
        with Capture.open(capture) as records:
            if "shared" in records.meta():
                print(f"puppet-inspector: {clean(str(capture))} was shared: what it withholds stays withheld",
                      file=sys.stderr)  # fmt: skip
        found = reading.read(capture, watch=watch)
        wanted = chosen(found, rule, arguments.run)
        effort = Effort(arguments.budget, watch)
        with signals(lambda _number, _frame: effort.stop()):
            made = reduce(found, target, wanted, opened, effort, watch)
    if arguments.json:
        print_json(_plain(made, target, effort))
    else:
        _print(made, target, effort, opened)
    return 128 + signal.SIGINT if effort.ended is Ended.INTERRUPTED else 0


def _rule(text: str | None) -> str | None:
    """Return the id of a rule as the user typed it. Raises InspectorError."""
    if text is None:
        return None
    known = {rule.id for rule in known_rules()}
    if text.upper() not in known:
        raise InspectorError(f"There is no rule {text.upper()}.", "`puppet-inspector explain rules` lists them.")
    return text.upper()


def _plain(made: Reduction, target: Path, effort: Effort) -> Reduced:
    before, finding = made.before, made.before.finding
    return Reduced(
        str(target), finding.rule, finding.severity, before.is_cause, effort.ended, effort.tries, made.withheld,
        _shown_in(before, made.whole), _shown_in(made.after, made.left),
    )  # fmt: skip


def _shown_in(shown: Shown, whole: Size) -> ShownIn:
    run, finding = shown
    return ShownIn(
        whole.records, whole.bodies, run.number, run.outcome, clean(finding.message),
        run.verdict.message if run.verdict else None,
    )  # fmt: skip


ENDS = {
    Ended.SMALLEST: "without any one of these parts it would not show that",
    Ended.BUDGET: "its budget was over: reduce it again to go on, or with a larger --budget",
    Ended.INTERRUPTED: "it was interrupted: reduce it again to go on",
    Ended.SIZE: "what is in the bodies stays: they are too large to be taken apart",
}


def _print(made: Reduction, target: Path, effort: Effort, opened: frozenset[Content]) -> None:
    whole, left = made.whole, made.left
    print_line(
        f"{plural(left.records, 'record')} of {whole.records:,}, "
        f"{size(left.bodies)} of {size(whole.bodies)} in bodies, "
        f"written to {clean(str(target))}, without secrets and with pseudonyms"
    )
    for name, found in (("before", made.before), ("after", made.after)):
        print_block(_verdict(name, found))
    print_line(f"tried {plural(effort.tries, 'smaller capture')}: {ENDS[effort.ended]}")
    if kinds := [content for content in made.withheld if content is not Content.OTHER]:
        print_line(f"values are withheld: --with {','.join(kinds)} opens these kinds, secrets stay masked")
    if opened:
        print_line("review the copy before you pass it on")


def _verdict(name: str, shown: Shown) -> wording.Block:
    """The verdict on the run that shows a finding, or the finding if it is not the cause."""
    run, finding = shown
    if shown.is_cause:
        return wording.verdict(run, columns(), f"{name} ")
    marked = f"{name} {wording.which(run)}:"
    text = f"{marked} {wording.shown(finding).strip()}"
    return wording.Block(wording.flowing(text, columns()), marked, finding.severity)

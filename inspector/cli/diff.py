"""``puppet-inspector diff``: what is different between two runs."""

from __future__ import annotations

import contextlib
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from inspector import regex
from inspector.capture import paths
from inspector.capture.store import Capture
from inspector.cli.arguments import add_agent, add_ignoring, add_opening, add_rules, ignored_of, opened_by
from inspector.cli.output import print_json, print_line, print_lines
from inspector.cli.progress import shown
from inspector.cli.reading import documents_of
from inspector.compare import comparison, diff_lines, facts, plain
from inspector.compare.comparison import Choices
from inspector.compare.diff_lines import Line
from inspector.compare.groups import Groups
from inspector.errors import InspectorError
from inspector.formats.outgoing import summary
from inspector.progress import named, watched
from inspector.rehearsal import pairs
from inspector.rehearsal import text as rehearsed
from inspector.rehearsal.pairs import Pairs
from inspector.report.copies import comparable
from inspector.report.lines import html
from inspector.summaries import pairing, reading
from inspector.text import beginning, clean

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Iterator

    from inspector.compare.comparison import Comparison
    from inspector.formats.outgoing import Content
    from inspector.progress import Watch
    from inspector.summaries.pairing import Pair
    from inspector.summaries.reading import CaptureRuns

EXAMPLE = "puppet-inspector diff captures/FILE.sqlite:3 captures/FILE.sqlite:7"
NONE = "none"
"""The pattern of --volatile that stands for no facts."""
NODES = 10
"""Other nodes that are named."""
_NUMBERED = regex.compile(r"(.+):(\d{1,9})", regex.DOTALL)


class Named(NamedTuple):
    """What the user named: a capture, and perhaps a run in it."""

    path: Path
    number: int | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "runs", nargs="*", metavar="capture[:run]",
        help="a capture and the number of a run in it; of one capture the last failed and the last good run of a node "
        "are compared, of two each node's runs; of a directory the newest in it (default: captures/)",
    )  # fmt: skip
    add_agent(parser, "only these nodes, what is different is grouped")
    add_ignoring(parser)
    parser.add_argument(
        "--volatile", metavar="PATTERN", action="append", default=[],
        help="a fact that may change at any time and does not count, besides uptime, memory and the like; 'none': "
        "all facts count",
    )  # fmt: skip
    parser.add_argument("--full", action="store_true", help="print all differences with whole values")
    parser.add_argument("--format", choices=("text", "json", "html"), default="text", help="default: text; html is a "
                        "page to pass on, in which values are withheld")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="same as --format json (docs/json/diff.schema.json)")
    add_opening(parser)
    add_rules(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Show what is different between two runs: outcome, versions, certificates, findings, catalog, file contents,
    facts, requests, report, times. Secrets are compared and not shown. The exit status is 1 if something is different
    (of two captures also: a node has a run in one of them only), 2 if there is nothing to compare (also: a run that got
    no catalog, or an empty one; 1 if it was stopped before it asked for one)."""
    choices = _choices(arguments)
    kind = "json" if arguments.json else arguments.format
    opened = opened_by(arguments.opened)
    if opened and kind != "html":
        raise InspectorError("--with is for pages.", "Add --format html, or leave it out: nothing is withheld.")
    names = [_named(name) for name in arguments.runs] or [Named(paths.one(None), None)]
    if len(names) > 2:
        raise InspectorError("Two runs are compared at a time.", f"For example: `{EXAMPLE}`.")
    if rehearsal := _rehearsal(names, kind):
        return _print_pairs(Pairs(rehearsal, choices), arguments.agent, kind, full=arguments.full)
    with shown() as watch, contextlib.ExitStack() as stack:
        withheld: Counter[Content] = Counter()
        if kind == "html":
            given = [name.path for name in names]
            copies, withheld = stack.enter_context(comparable(given, opened, watch))
            names = [name._replace(path=copies[name.path]) for name in names]
        founds = _read(names, watch)
        found = _groups(names, founds, arguments.agent, choices, watch)
        if found is None:
            compared = _compared(_pair(names, founds, arguments.agent), founds, choices)
    note = summary(withheld)
    if found is not None:
        _print(kind, plain.nodes(found), diff_lines.grouped(found, full=arguments.full), note)
        return found.status
    _print(kind, plain.plain(compared), diff_lines.lines(compared, full=arguments.full), note)
    if len(names) == 1 and names[0].number is None and not arguments.agent and kind == "text":
        _print_others(founds[0], compared.after.name)
    if reason := compared.without_catalogs:
        print(f"puppet-inspector: The catalogs were not compared: {beginning(clean(reason), 1000)}.", file=sys.stderr)
    return compared.status


def _rehearsal(names: list[Named], kind: str) -> Path | None:
    """The capture that is named, if it is that of a rehearsal. Raises InspectorError if more is wanted than it has."""
    named = next((name for name in names if pairs.recorded(name.path)), None)
    found = named.path if named else None
    if named and named.number is not None:
        raise InspectorError(
            f"{found} is the capture of a rehearsal: it has no runs.",
            f"Name it without a number, and --agent NAME for one node: `puppet-inspector diff {found}`.",
        )
    if found and len(names) > 1:
        raise InspectorError(
            f"{found} is the capture of a rehearsal, and names the runs that it is compared with.",
            f"Name it alone: `puppet-inspector diff {found}`.",
        )
    if found and kind == "html":
        raise InspectorError(
            "The page of a rehearsal is written when it is made.", "`puppet-inspector rehearse` has --format html."
        )
    return found


def _print_pairs(found: Pairs, pattern: str | None, kind: str, *, full: bool) -> int:
    """Print what a rehearsal changes, of all nodes or of some. Raises InspectorError."""
    wanted = regex.glob(pattern) if pattern is not None else None
    names = [name for name in found.names if wanted is None or wanted.fullmatch(name)]
    if not names:
        raise InspectorError(f"No node {pattern!r} was rehearsed.", f"{clean(found.names[0])} was, for example."
                             if found.names else "Rehearse again.")  # fmt: skip
    with shown() as watch:
        result = found.compared(watch, names)
    head = Line("head", f"rehearsed at {clean(found.master)}")
    _print(kind, plain.nodes(result.groups), [head, *rehearsed.found(result, full=full)], "")
    return result.groups.status


# -- what is compared ---------------------------------------------------------------------------------------


def _choices(arguments: argparse.Namespace) -> Choices:
    """How runs are compared. Raises InspectorError."""
    volatile = facts.VOLATILE if NONE not in arguments.volatile else ()
    more = [pattern for pattern in arguments.volatile if pattern != NONE]
    return Choices(ignored_of(arguments), facts.Volatile((*volatile, *more)), arguments.tags)


def _named(given: str) -> Named:
    """A capture and a run, as the user named them: the name of a file may end like a run."""
    found = _NUMBERED.fullmatch(given)
    if found is None or Path(given).exists():
        return Named(paths.one(Path(given)), None)
    return Named(Path(found[1]), int(found[2]))


def _read(names: list[Named], watch: Watch) -> list[CaptureRuns]:
    """The runs of each capture that is named, read once. Raises InspectorError."""
    known: dict[Path, CaptureRuns] = {}
    for name in names:
        if name.path not in known:
            known[name.path] = reading.read(name.path, watch=named(watch, clean(name.path.name)))
    return [known[name.path] for name in names]


def _groups(
    names: list[Named], founds: list[CaptureRuns], pattern: str | None, choices: Choices, watch: Watch
) -> Groups | None:
    """Compare two runs of each of several nodes; None: it is one node, of which all is shown. Raises InspectorError."""
    if any(name.number is not None for name in names) or (len(founds) == 1 and pattern is None):
        return None
    found = Groups()
    if len(founds) == 2:
        agents, found.only_before, found.only_after = pairing.common(founds[0], founds[1], pattern)
    else:
        agents = pairing.agents(founds, pattern)
    if len(agents) + len(found.only_before) + len(found.only_after) < 2:
        return None
    with _opened(founds) as captures:
        for agent in watched(agents, watch, len(agents), "comparing node"):
            try:
                one = len(founds) == 1
                pair = pairing.within(founds[0], agent) if one else pairing.across(founds[0], founds[1], agent)
            except InspectorError:  # it has one run only
                found.alone.append(agent)
                continue
            before, after = (documents_of(captures[chosen.found.capture], chosen) for chosen in pair)
            found.add(comparison.compare(before, after, choices))
    return found


@contextlib.contextmanager
def _opened(founds: Iterable[CaptureRuns]) -> Iterator[dict[Path, Capture]]:
    """Open the captures once, for all nodes. Raises CaptureError."""
    with contextlib.ExitStack() as stack:
        yield {found.capture: stack.enter_context(Capture.open(found.capture)) for found in founds}


def _pair(names: list[Named], founds: list[CaptureRuns], agent: str | None) -> Pair:
    """The two runs. Raises InspectorError."""
    chosen = [
        None if name.number is None else pairing.numbered(found, name.number)
        for name, found in zip(names, founds, strict=True)
    ]
    for run in chosen:
        if run is not None and agent is not None and not regex.glob(agent).fullmatch(run.brief.name):
            raise InspectorError(
                f"Run {run.brief.number} of {run.found.capture} is one of {clean(run.brief.name)}, not of {agent!r}.",
                "Leave --agent out, or name another run.",
            )
    match chosen:
        case [None]:
            name = pairing.agents(founds, agent)[0] if agent is not None else pairing.most_failing(founds[0])
            return pairing.within(founds[0], name)
        case [after] if after is not None:
            return pairing.before_of(after)
        case [before, None] if before is not None:
            return pairing.Pair(before, pairing.latest(founds[1], before.brief.name))
        case [None, after] if after is not None:
            return pairing.Pair(pairing.latest(founds[0], after.brief.name, good=True), after)
        case [before, after] if before is not None and after is not None:
            return pairing.Pair(before, after)
    return pairing.across(founds[0], founds[1], pairing.common(founds[0], founds[1], agent)[0][0])


def _compared(pair: Pair, founds: list[CaptureRuns], choices: Choices) -> Comparison:
    """Compare two runs, with what is usual for the node. Raises InspectorError."""
    with _opened(founds) as captures:
        before, after = (documents_of(captures[chosen.found.capture], chosen) for chosen in pair)
        return comparison.compare(before, after, choices, pairing.history(founds, pair))


# -- what is printed ----------------------------------------------------------------------------------------


def _print(kind: str, fields: plain.Pair | plain.Nodes, lines: Iterable[Line], note: str) -> None:
    match kind:
        case "json":
            print_json(fields)
        case "html":
            print(html(lines, "What is different between Puppet runs", note))
        case _:
            print_lines(lines)


def _print_others(found: CaptureRuns, name: str) -> None:
    """Print which other nodes did not go well."""
    others = [clean(other) for other in pairing.failing(found) if other != name]
    if others:
        more = f" and {len(others) - NODES} more" if len(others) > NODES else ""
        listed = f"{', '.join(others[:NODES])}{more}"
        print_line(f"other nodes whose latest run did not go well (--agent NAME): {listed}")

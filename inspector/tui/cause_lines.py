"""The lines of the first screen: causes, what went well, the nodes of both; and each of them in full."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from rich.text import Text

from inspector.model import Severity
from inspector.pages import palette
from inspector.pages.styles import DOUBT
from inspector.rules import rule_of
from inspector.summaries import incidents
from inspector.text import clean, clock, counts, day, plural, seconds
from inspector.tui import verdicts
from inspector.tui.columns import Column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inspector.model import Finding, Phase
    from inspector.summaries.incidents import Incident
    from inspector.summaries.source import Source
    from inspector.summaries.summary import RunBrief
    from inspector.summaries.under_way import UnderWay

NAMES = 60
"""Columns for the names of nodes."""


SHOWN = 6
"""Lines of what is under way."""
OUTSIDE = 4
"""Rules that are named of what was found outside runs."""


class CauseLine(NamedTuple):
    """A cause, or what went well; or, with ``run``, one of its nodes below it."""

    incident: Incident | None
    """None: the nodes that went well."""
    runs: tuple[RunBrief, ...]
    """Of a cause all runs that show it, of what went well the latest of each node; of a node its latest."""
    history: tuple[RunBrief, ...] = ()
    """All runs of its node; of what went well, of all those nodes."""
    node: str = ""
    """The name of its node; empty: it is the line of a cause."""

    @property
    def group(self) -> tuple[str | None, str]:
        """What it has in common with the lines of its nodes."""
        return (self.incident.cause, self.incident.key) if self.incident else (None, "")

    @property
    def ident(self) -> tuple[str | None, str, str]:
        """A key that no other line has."""
        return *self.group, self.node

    @property
    def run(self) -> RunBrief:
        """Its latest run."""
        return self.runs[-1]

    @property
    def counted(self) -> str:
        """How many findings its runs have, by severity; empty if there are none."""
        return counts([finding for run in self.runs for finding in run.findings])


def under_way(doing: Sequence[UnderWay[RunBrief]]) -> Text:
    """What agents do, a line each."""
    shown = doing[:SHOWN]
    wide = max((len(clean(each.name)) for each in shown), default=0)
    lines = []
    for each in shown:
        run = f"run {each.run.label}" if each.run else ""
        words = (each.words, palette.PHASES[each.phase][1])
        lines.append(Text.assemble((f"{clean(each.name):<{wide}}", "bold"), "  ", words, (f"  {run}", "dim")))
    if len(doing) > SHOWN:
        lines.append(Text(f"and {len(doing) - SHOWN} more", style="dim"))
    return Text("\n").join(lines)


def outside_runs(found: Sequence[Finding]) -> Text | None:
    """What needs attention in requests that are part of no run, by rule in one line; None if nothing does."""
    worst: dict[str, Severity] = {}
    for finding in sorted(found, key=lambda finding: -finding.severity.rank):
        if finding.severity is not Severity.NOTICE:
            worst.setdefault(finding.rule, finding.severity)
    if not worst:
        return None
    line = Text("Outside runs (F): ", style="bold")
    for number, (rule, severity) in enumerate(list(worst.items())[:OUTSIDE]):
        line.append(", " if number else "")
        line.append_text(palette.severity(severity)).append(f" {rule} {rule_of(rule).title}")
    return line.append(f" and {len(worst) - OUTSIDE} more rules" if len(worst) > OUTSIDE else "")


def moment(time: float) -> str:
    """Local day and time without year and seconds."""
    return f"{day(time)[5:]} {clock(time)[:5]}"


def _what(line: CauseLine, width: int) -> Text:
    incident = line.incident
    if line.node:
        text = Text(f"  {clean(line.node)}  ")
        return text.append_text(palette.sparkline(line.history, max(1, width - len(text))))
    if incident is None:
        counted = f"; {line.counted}" if line.counted else ""
        text = Text(f"went well{counted}  ", style=palette.OUTCOMES["complete"])
        return text.append_text(palette.sparkline(line.history, max(1, width - len(text))))
    name = f"{incident.cause} " if incident.cause else ""
    text = Text(f"{name}{clean(incident.reason)}", style="bold" if incident.nodes else "dim")
    if incident.nodes:
        text.stylize(palette.SEVERITIES[incident.severity], 0, len(name))
    return text


def _nodes(line: CauseLine, width: int) -> str:
    if line.node:
        return ""
    if line.incident is None:
        return _named([run.name for run in line.runs], width)
    if line.incident.nodes:
        return _named(line.incident.nodes, width)
    state = "over" if line.incident.over else "not seen since"
    return state if len(state) <= width else "-"


def _named(names: Sequence[str], width: int) -> str:
    """The first names that fit, and how many more there are; if not even one fits, how many there are."""
    text = str(len(names))
    for number in range(1, len(names) + 1):
        more = f" +{len(names) - number}" if number < len(names) else ""
        begun = f"{', '.join(map(clean, names[:number]))}{more}"
        if len(begun) > min(width, NAMES):
            break
        text = begun
    return text


def _runs(line: CauseLine) -> str:
    if line.node:
        return f"run {line.run.label}"
    return str(len(line.runs)) if line.incident else ""


COLUMNS: tuple[Column[CauseLine], ...] = (
    Column("cause", _what, 30, 4),
    Column("nodes", _nodes, 5),
    Column("runs", lambda line, _: _runs(line), 7, right=True),
    Column(
        "since",
        lambda line, _: moment(line.incident.since) if line.incident and not line.node else "",
        11,
        least=70,
    ),
    Column("last", lambda line, _: moment(line.run.ended), 11, least=70),
)


LATEST = 10
"""Runs that are listed of what went well."""
MARGIN = 4
"""Columns beside the text of a cause."""


def detail(line: CauseLine, source: Source, width: int, *, alone: bool, whole: bool = False) -> Text:
    """A line in full, for this width. ``alone``: nothing else is wrong; ``whole``: with the whole message."""
    if line.incident is None:
        return _well(line, width, alone=alone)
    return _failed(line.incident, line.run, source, width, whole=whole)


def _well(line: CauseLine, width: int, *, alone: bool) -> Text:
    """Of what went well: only of these nodes, unless there are no others."""
    number, run = len(line.runs), line.run
    if number == 1:
        whose = f"the latest run of {clean(run.name)}"
    else:
        whose = "the latest run of each" if alone else f"the latest run of each of these {number} nodes"
    if line.counted:
        head = f"{whose[0].upper()}{whose[1:]} went well; {line.counted} (F)."
    elif alone:
        head = f"Nothing is wrong: {whose} went well."
    else:
        head = f"{whose[0].upper()}{whose[1:]} went well."
    text = Text(f"{head}\n")
    text.append_text(_lately(sorted(line.history, key=lambda run: run.started), width))
    return text.append(f"\nEnter opens run {run.label}; r shows all runs.", style="dim")


def _lately(runs: Sequence[RunBrief], width: int) -> Text:
    """The latest of some runs, the last one first, and what took most of their time."""
    shown = runs[: -LATEST - 1 : -1]
    if not shown:
        return Text("")
    whose = max(len(clean(run.name)) for run in shown)
    text = Text("\n").append("Latest runs", style="bold").append("\n")
    for run in shown:
        text.append(
            f"run {run.label:<5} {moment(run.started)}  {clean(run.name):<{whose}} {seconds(run.duration):>9}  "
        )
        text.append_text(palette.outcome(run)).append(" " * (11 - len(run.ending)))
        text.append_text(palette.bar(run, max(8, width - whose - 54))).append("\n")
    text.append(f"{palette.phases()}\n", style="dim")
    took: dict[Phase, list[float]] = {}
    for run in runs:
        for span in run.spans:
            took.setdefault(span.phase, []).append(span.duration)
    durations = sorted(run.duration for run in runs)
    slowest = max(took, key=lambda phase: sum(took[phase]), default=None)
    text.append("\n").append("Durations", style="bold").append(f"  of {plural(len(runs), 'run')}: ")
    text.append(f"median {seconds(median(durations))}, longest {seconds(durations[-1])}")
    if slowest is not None:
        text.append("; most time in phase ").append_text(palette.phase(slowest))
        text.append(f": median {seconds(median(took[slowest]))}, longest {seconds(max(took[slowest]))}")
    return text.append("\n").append_text(palette.sparkline(runs, max(8, width - 2 * MARGIN))).append("\n")


def _failed(incident: Incident, run: RunBrief, source: Source, width: int, *, whole: bool) -> Text:
    verdict = run.verdict
    text = Text()
    text.append(f"{clean(verdict.message) if verdict else incident.reason}\n", style="bold")
    others = [name for name in incident.nodes if name != run.name]
    if not incident.nodes:
        since = (
            "It is over: each node that showed it completed a run since."
            if incident.over
            else ("Not seen since: later runs failed of something else, possibly before they could show it.")
        )
        text.append(f"{since}\n", style="dim")
    elif others:
        text.append(f"The same on {clean(', '.join(others))}.\n")
    if whole:
        verdicts.add_whole(text, run.cause_found, source)
    text.append_text(verdicts.steps(run.steps, max(width - 2 * MARGIN, 20), over=incident.over))
    text.append_text(_compared(run, source, width))
    if incident.cause:
        text.append(f"\n{run.explanation_of(incident.cause)}\n", style="dim")
    text.append(f"\nEnter opens run {run.label}.", style="dim")
    return text


def _compared(run: RunBrief, source: Source, width: int) -> Text:
    """The run above the node's last good one, and in what they differ."""
    good = incidents.last_good(source.runs, run)
    if good is None:
        return Text("\nNo earlier run of this node in the capture went well.\n", style="dim")
    text = Text("\n").append("Beside the last good run", style="bold").append("\n")
    room = max(8, min(width - 44, 60))
    for label, each in (("this", run), ("good", good)):
        text.append(f"{label}  run {each.label:<5} {moment(each.started)} {seconds(each.duration):>9}  ")
        text.append_text(palette.bar(each, room)).append("\n")
    text.append(f"{palette.phases()}\n", style="dim")
    for name, before, now in incidents.differences(run, good):
        text.append(f"{name}: {clean(before)}, now {clean(now)}\n", style=DOUBT)
    return text

"""The lines of the first screen: causes, what went well, and the nodes of both."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rich.text import Text

from inspector.pages import palette
from inspector.text import clean, clock, counts, day
from inspector.tui.columns import Column

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inspector.summaries.incidents import Incident
    from inspector.summaries.summary import RunBrief
    from inspector.summaries.under_way import UnderWay


NAMES = 60
"""Columns for the names of nodes."""


SHOWN = 6
"""Lines of what is under way."""


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


def moment(time: float) -> str:
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

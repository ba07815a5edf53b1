"""What is wrong now, by cause: which runs show it, on which nodes, since when; and how nodes did before.

A node is judged in ``judgement``. What its latest run does not show is over if a later run was complete. If later ones
failed of something else, it was not observed since: they may have failed before they could show it.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from inspector import regex
from inspector.model import Severity
from inspector.summaries.judgement import NodeState, severity
from inspector.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from inspector.summaries.judgement import JudgedRun, Judgement
    from inspector.summaries.summary import RunBrief

_QUOTES, _PUNCTUATION = ("'", '"', "`"), "(),;:."
_SERIAL = regex.compile(r" \(serial 0x[0-9a-f]+\)")


@dataclass(slots=True)
class Incident:
    """One cause, and the runs that show it."""

    cause: str | None
    """The rule; None if the cause is not visible in the traffic."""
    reason: str
    """In a sentence, without the node's name; what is quoted in it is as in the latest run."""
    key: str
    """The same for all nodes with this failure, and no other failure's."""
    severity: Severity
    """ERROR if runs did not succeed, or succeeded with errors."""
    runs: list[RunBrief] = field(default_factory=list)
    """In the order in which they began."""
    nodes: list[str] = field(default_factory=list)
    """Those whose state it explains, in the order in which they first showed it; empty if none does."""
    over: bool = False
    """No node's latest run shows it, and each that showed it completed a run since."""
    since: float = math.inf
    """When it was first found."""

    @property
    def last(self) -> float:
        """When it was last found."""
        return max(run.ended for run in self.runs)


class Incidents(NamedTuple):
    """The causes that a judgement shows."""

    now: list[Incident]
    """Those that explain a node's state: the worst first, then those of most nodes, then the latest."""
    past: list[Incident]
    """Those that explain none, the latest first."""
    over: dict[tuple[Path, int], JudgedRun]
    """The runs whose cause does not explain their node's state any more, by capture and number: the run that their node
    completed since."""

    @property
    def every(self) -> list[Incident]:
        """All of them, those of now first."""
        return [*self.now, *self.past]

    def over_since(self, capture: Path, run: RunBrief, rule: str | None = None) -> str:
        """Return which run the node of a run completed since, in words, if the run's cause is over; else nothing. Of a
        ``rule``, if it is that cause or follows from it."""
        later = self.over.get((capture, run.number))
        if later is None or (rule is not None and rule not in (run.cause, *run.symptoms)):
            return ""
        where = f"{clean(later.capture.name)} " if later.capture != capture else ""
        return f"{where}run {later.run.number}"


def by_cause(judgement: Judgement) -> Incidents:
    """Return why nodes are not well, by cause."""
    found: dict[tuple[str | None, str], Incident] = {}
    shown: defaultdict[tuple[str, int], list[JudgedRun]] = defaultdict(list)
    """The runs of each node that show an incident, by its name and the incident's identity."""
    judged = sorted(
        ((each, node) for node in judgement.nodes.values() for each in node.runs if each.conclusive),
        key=lambda pair: pair[0].run.started,
    )
    for each, node in judged:
        run, verdict = each.run, each.run.verdict
        if verdict is None or (node.latest is each and node.run is not run):  # likely the cause of the run before
            continue
        reason = without_node(verdict.reason, node.name)
        key = reason.replace(node.name, "the node") if "." in node.name else reason  # a short one may be in any word
        incident = found.get((verdict.cause, key))
        if incident is None:
            incident = found[verdict.cause, key] = Incident(verdict.cause, reason, key, Severity.NOTICE)
        incident.reason = reason
        incident.runs.append(run)
        shown[node.name, id(incident)].append(each)
        incident.since = min(incident.since, verdict.since)
        incident.severity = max(incident.severity, severity(run), key=lambda severity: severity.rank)
        if node.run is run and node.state not in (NodeState.WELL, NodeState.SILENT):
            incident.nodes.append(node.name)
    by_time = sorted(found.values(), key=lambda incident: -incident.last)
    now = sorted(
        (incident for incident in by_time if incident.nodes),
        key=lambda incident: (-incident.severity.rank, -len(incident.nodes)),
    )
    past = [incident for incident in by_time if not incident.nodes]
    well = {
        node.name: [each for each in node.runs if each.run.outcome == "complete"] for node in judgement.nodes.values()
    }
    over: dict[tuple[Path, int], JudgedRun] = {}
    lasting: set[int] = set()
    """The incidents, by identity, since which a node completed no run."""
    explained = {(name, id(incident)) for incident in now for name in incident.nodes}
    for (name, incident_id), runs in shown.items():
        place = bisect_right(well[name], runs[-1].run.started, key=lambda each: each.run.started)
        if place == len(well[name]) or (name, incident_id) in explained:
            lasting.add(incident_id)
        else:
            over |= {(each.capture, each.run.number): well[name][place] for each in runs}
    for incident in past:
        incident.over = id(incident) not in lasting
    return Incidents(now, past, over)


def without_node(reason: str, name: str) -> str:
    """Return a reason without what differs between nodes with the same failure: their names are in the list of nodes.

    Only a name that is a word of its own is left out: never part of a path, of another word or of a quotation.
    """
    words: list[str] = []
    quote = ""
    for word in _SERIAL.sub("", reason).split(" "):
        inner = word.strip(_PUNCTUATION)
        if not quote and inner[:1] in _QUOTES:
            quote = inner[0]
        if quote:
            quote = "" if len(inner) > 1 and inner[-1] == quote else quote
            words.append(word)
        elif inner != name:
            words.append(word)
        elif words[-1:] == ["for"] or words[-2:] == ["on", "node"]:
            del words[-1 if words[-1] == "for" else -2 :]
            end = word[word.rindex(name) + len(name) :]
            words.append(words.pop() + end if words else end)
        else:
            words.append(word.replace(name, "the node") if "." in name else word)
    return " ".join(words)


def went_well(run: RunBrief) -> bool:
    """Whether a run went well, without anything to report."""
    return run.outcome == "complete" and run.verdict is None


def last_good(runs: Iterable[RunBrief], run: RunBrief) -> RunBrief | None:
    """Return the node's last run that went well before ``run`` began; None if the capture has none."""
    before = (
        other
        for other in runs
        if other.name == run.name and not other.tool and other.started < run.started and went_well(other)
    )  # fmt: skip
    return max(before, key=lambda other: other.started, default=None)


def differences(run: RunBrief, good: RunBrief) -> list[tuple[str, str, str]]:
    """Return what is different from the last good run: its name, what it was, and what it is now."""
    found = (
        ("agent", good.agent_version, run.agent_version),
        ("master", good.master_version, run.master_version),
        ("environment", good.environment, run.environment),
        ("address", good.address, run.address),
    )
    return [(name, before, now) for name, before, now in found if before and now and before != now]

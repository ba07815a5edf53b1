"""What is wrong now, by cause: which runs show it, on which nodes, since when; and how nodes did before.

A node is judged in ``judgement``. What its latest run does not show is over if a later run was complete. If later ones
failed of something else, it was not observed since: they may have failed before they could show it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from inspector.model import Severity
from inspector.summaries.judgement import NodeState, severity, without_node

if TYPE_CHECKING:
    from collections.abc import Iterable

    from inspector.summaries.judgement import Judgement
    from inspector.summaries.summary import RunBrief


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
    since: float = math.inf
    """When it was first found."""

    @property
    def over(self) -> bool:
        """Whether no node's latest run shows it, and each that showed it completed a run since."""
        return all(run.over_since() for run in self.runs)

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

    @property
    def every(self) -> list[Incident]:
        """All of them, those of now first."""
        return [*self.now, *self.past]


def by_cause(judgement: Judgement) -> Incidents:
    """Return why nodes are not well, by cause."""
    found: dict[tuple[str | None, str], Incident] = {}
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
        incident.reason = verdict.tensed(reason)
        incident.runs.append(run)
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
    return Incidents(now, past)


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

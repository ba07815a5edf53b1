"""What is wrong now, by cause: what failed, on which nodes, since when, and what to do.

A node is judged by its latest run. What an earlier one showed is over if a later run was complete. If later ones failed
of something else, it was not seen since: they may have failed before they could show it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from inspector import regex
from inspector.model import Severity

if TYPE_CHECKING:
    from collections.abc import Iterable

    from inspector.summaries.summary import Conclusion, RunBrief

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
    """Those whose latest run shows it, in the order in which they first did; empty if none does."""
    over: bool = False
    """No node's latest run shows it, and each that showed it completed a run since."""
    since: float = math.inf
    """When it was first found."""

    @property
    def last(self) -> float:
        """When it was last found."""
        return max(run.ended for run in self.runs)


@dataclass(slots=True)
class Condition:
    """What a capture shows of its nodes."""

    incidents: list[Incident] = field(default_factory=list)
    """Those of now: the worst first, then those of most nodes, then the latest."""
    past: list[Incident] = field(default_factory=list)
    """Those that no node's latest run shows, the latest first."""
    failing: int = 0
    """Nodes whose latest run did not succeed."""
    flawed: int = 0
    """Nodes whose latest run succeeded with errors."""
    doubtful: int = 0
    """Nodes with warnings only."""
    well: list[RunBrief] = field(default_factory=list)
    """The latest run of each node that went well, with nothing above a notice."""


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


def condition(runs: Iterable[RunBrief]) -> Condition:
    """Return what these runs show of their nodes; calls of tools are no runs of a node."""
    found: dict[tuple[str | None, str], Incident] = {}
    latest: dict[str, tuple[RunBrief, Incident | None]] = {}
    succeeded: dict[str, float] = {}
    for run in sorted(runs, key=lambda run: run.started):
        if run.tool:
            continue
        verdict = run.verdict
        if run.outcome == "complete":
            succeeded[run.name] = run.started
        if verdict is None:
            if run.outcome == "complete":
                latest[run.name] = run, None
            continue
        reason = _without_node(verdict.reason, run.name)
        key = reason.replace(run.name, "the node") if "." in run.name else reason  # a short one may be in any word
        incident = found.get((verdict.cause, key))
        if incident is None:
            incident = found[verdict.cause, key] = Incident(verdict.cause, reason, key, Severity.NOTICE)
        incident.reason = reason
        incident.runs.append(run)
        incident.since = min(incident.since, verdict.since)
        incident.severity = max(incident.severity, _severity(run, verdict), key=lambda severity: severity.rank)
        if verdict.certainty != "not visible" or run.name not in latest:
            latest[run.name] = run, incident
    result = Condition()
    for name, (run, current) in latest.items():
        if current is None:
            result.well.append(run)
            continue
        current.nodes.append(name)
        severity = _severity(run, run.verdict) if run.verdict else Severity.NOTICE
        result.failing += severity is Severity.ERROR and run.outcome != "complete"
        result.flawed += severity is Severity.ERROR and run.outcome == "complete"
        result.doubtful += severity is Severity.WARNING
    by_time = sorted(found.values(), key=lambda incident: -incident.last)
    result.incidents = sorted(
        (incident for incident in by_time if incident.nodes),
        key=lambda incident: (-incident.severity.rank, -len(incident.nodes)),
    )
    result.past = [incident for incident in by_time if not incident.nodes]
    for incident in result.past:
        incident.over = all(succeeded.get(run.name, -math.inf) > run.started for run in incident.runs)
    return result


def _without_node(reason: str, name: str) -> str:
    """A reason without what differs between nodes with the same failure: their names are in the list of nodes.

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


def _severity(run: RunBrief, verdict: Conclusion) -> Severity:
    if verdict.cause is None and (verdict.certainty == "likely" or run.injected):
        return Severity.NOTICE  # likely a command that somebody ran, or a fault that was injected on purpose
    if run.outcome != "complete":
        return Severity.ERROR
    return next((found.severity for found in run.findings if found.rule == verdict.cause), Severity.WARNING)

"""Why an agent ended that `run` started, where its traffic does not show it: by what it printed."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from inspector.analysis import known_errors
from inspector.capture import agent_end
from inspector.capture.store import Capture
from inspector.doctor import findings
from inspector.explain import reference
from inspector.model import Severity
from inspector.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from inspector.capture.agent_end import AgentEnd
    from inspector.doctor.findings import Diagnosis
    from inspector.summaries.summary import RunBrief

WELL = (0, 2)
"""The exit statuses of an agent that succeeded, without and with changes."""
_SIGNALS = 128


def of_capture(path: Path, runs: Iterable[RunBrief]) -> list[Diagnosis]:
    """Return why the agent ended that `run` started, if it failed and no run of the capture shows the cause.
    Raises CaptureError."""
    with Capture.open(path) as capture:
        end = agent_end.read(capture)
    if end is None or end.status in WELL:
        return []
    own = of_agent(end, runs)
    return [] if explained(own) else [diagnosis(end, before_request=not own)]


def of_agent(end: AgentEnd, runs: Iterable[RunBrief]) -> list[RunBrief]:
    """Return the runs of the agent that ended so: others in the capture are earlier ones."""
    return [run for run in runs if run.ended >= end.began and run.started <= end.ended]


def explained(runs: Iterable[RunBrief]) -> bool:
    """Whether one of an agent's runs shows why it failed."""
    return any(map(_explains, runs))


def diagnosis(end: AgentEnd, *, before_request: bool) -> Diagnosis:
    """Return how an agent ended as a diagnosis; ``before_request``: it sent none."""
    how = f"exit status {end.status}"
    if end.status > _SIGNALS:
        how = f"signal {end.status - _SIGNALS}"
    title = f"the agent ended with {how}{' before its first request' if before_request else ''}"
    printed = "\n".join(end.lines)
    found = known_errors.find(printed)
    if found is None:
        return findings.error(title, end.lines[0] if end.lines else "it printed no error")
    explanation = reference.explain_output(printed) or {}
    detail = f"{clean(explanation['message'])}: {found.known.meaning}"
    as_printed = findings.error(title, detail, explanation["steps"])
    if not is_of_time(found.known):
        return as_printed
    if end.master_ahead is None:
        if any(findings.CLOCKS_RIGHT in step.only_if for step in as_printed.steps):
            return as_printed
        rule = next((ident for ident in found.known.rules if ident in findings.OF_TIME), None)
        return findings.doubted(dataclasses.replace(as_printed, rule=rule))
    there = end.ended + end.master_ahead
    if not findings.clocks_differ(end.ended, there):
        return as_printed
    clocks = findings.clocks_difference(end.ended, there, (), "the node's")
    return findings.error(title, f"{clocks.detail}; it printed: {detail}", clocks.steps, "T10")


def _explains(run: RunBrief) -> bool:
    """Whether a run shows why its agent failed."""
    verdict = run.verdict
    if verdict is None or verdict.certainty == "not visible":
        return False
    return run.outcome != "complete" or verdict.severity is Severity.ERROR


def is_of_time(known: known_errors.KnownError) -> bool:
    """Whether a message may come from a wrong clock."""
    return not findings.OF_TIME.isdisjoint(known.rules) or "T10" in known.rules

"""What belongs to no run of an agent: the calls of tools, and of ``puppet`` commands other than the agent."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from inspector.model import REHEARSAL
from inspector.text import clean, plural

if TYPE_CHECKING:
    from inspector.summaries.summary import RunBrief

STATUSES = 3
"""Statuses of a tool's requests that are named."""
CLIENTS = 100
"""Clients without a run that are counted by name: anybody may send any name."""
FOUND = 1000
"""Connections of these with findings that stay in memory."""


@dataclass(slots=True)
class Calls:
    """The requests of a tool, or the calls of a ``puppet`` command other than the agent."""

    name: str
    command: bool = False
    """Whether it is a command of Puppet's."""
    number: int = 0
    """How many calls there were; of a tool, how many connections."""
    failed: int = 0
    """Calls that were not answered as they should be."""
    statuses: Counter[int] = field(default_factory=Counter)
    """How many requests were answered with each status; 0: without an answer."""

    def add(self, run: RunBrief) -> None:
        """Add a call."""
        self.number += 1
        # One that is only likely a command may be an agent that was stopped.
        self.failed += run.tool is not None and run.outcome in ("failed", "refused", "unfinished")
        self.statuses.update(run.statuses)

    def __str__(self) -> str:
        """How many, and how they were answered, in words."""
        if self.command:
            failed = f"{self.failed} failed" if self.failed < self.number else "failed"
            ended = failed if self.failed else "completed"
            return f"{plural(self.number, 'call')} of `{clean(self.name)}`, {ended}"
        bad = Counter({status: number for status, number in self.statuses.items() if not 200 <= status < 400})
        named = [
            f"{number} answered {status}" if status else f"{number} without an answer"
            for status, number in bad.most_common(STATUSES)
        ]
        requests = plural(self.statuses.total(), "request" if self.name else "other request")
        whose = {"": "", REHEARSAL: f" of a {REHEARSAL}"}.get(self.name, f" of {clean(self.name)}")
        return ", ".join([f"{requests}{whose}", *named])


@dataclass(slots=True)
class Apart:
    """The requests of a capture that are part of no run."""

    calls: dict[str, Calls] = field(default_factory=dict)
    """By client: the first ones by name, and the rest together."""
    found: list[RunBrief] = field(default_factory=list)
    """The first of those in which something was found, by connection."""
    ended: float = 0.0
    """When the last of them ended."""

    def add(self, run: RunBrief) -> None:
        """Add the requests of a client on one connection."""
        name, self.ended = run.tool or "", max(self.ended, run.ended)
        if name not in self.calls and len(self.calls) >= CLIENTS:
            name = ""
        self.calls.setdefault(name, Calls(name)).add(run)
        if run.findings and len(self.found) < FOUND:
            self.found.append(run)

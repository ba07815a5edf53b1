"""The runs of each agent in brief, after they are over: for deviations that only several runs show."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inspector.model import Phase
    from inspector.runs import Run

RUNS = 8
"""Past runs that are remembered of each agent."""
STARTS = 1000
"""Beginnings of runs that are remembered of the fleet."""
AGENTS = 10_000
"""Agents that are remembered; who was silent for longest is forgotten first."""


@dataclass(frozen=True, slots=True)
class PastRun:
    """What is remembered of a run."""

    number: int | None
    seqs: tuple[int, int]
    """Its first and its last record."""
    started: float
    ended: float
    address: str | None
    key: str | None
    transaction_uuid: str | None
    phases: frozenset[Phase]
    fetched: frozenset[str]
    """Names of the files whose content was fetched, plugins left out."""
    changed: frozenset[str]
    """Resources that the report calls changed."""


@dataclass(slots=True)
class Fleet:
    """What a capture has shown of whole runs so far."""

    runs: dict[str, deque[PastRun]] = field(default_factory=dict)
    """By certname, the latest last."""
    starts: deque[tuple[float, str, int]] = field(default_factory=lambda: deque(maxlen=STARTS))
    """When runs of agents with a certificate began, their certname and first record, in the order they ended."""

    def before(self, run: Run) -> list[PastRun]:
        """The remembered runs of the same agent, the latest last."""
        return list(self.runs.get(run.certname or "", ()))

    def remember(self, run: Run) -> None:
        """Take in a run that is over, after the rules were asked about it."""
        if run.certname is None or run.tool or not run.seqs or not run.authenticated:
            return
        past = self.runs.pop(run.certname, None)
        if past is None:
            past = deque(maxlen=RUNS)
            if len(self.runs) >= AGENTS:
                del self.runs[next(iter(self.runs))]
        self.runs[run.certname] = past
        fetched = (
            name for name in run.files.fetched if name.partition("/")[0] not in ("plugins", "pluginfacts", "locales")
        )
        past.append(
            PastRun(
                run.number, (run.seqs[0], run.seqs[-1]), run.started, run.ended, run.address, run.key,
                run.transaction_uuid, frozenset(run.spans), frozenset(fetched), frozenset(run.changed),
            )
        )  # fmt: skip
        self.starts.append((run.started, run.certname, run.seqs[0]))

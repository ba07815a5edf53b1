"""The plan of a rehearsal: which masters, on which road, what is compared."""

from __future__ import annotations

import contextlib
import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from inspector import inputs
from inspector.rehearsal.comparing import How
from inspector.rehearsal.fact_changes import FactChanges
from inspector.rehearsal.roads import V4

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inspector.compare.comparison import Choices
    from inspector.rehearsal.client import Target
    from inspector.rehearsal.roads import Road
    from inspector.summaries.pairing import ChosenRun


@dataclass(frozen=True, slots=True)
class Plan:
    """The masters of a rehearsal, and its choices."""

    target: Target
    road: Road
    choices: Choices
    environment: str | None = None
    """Another one than the recorded."""
    facts: FactChanges = field(default_factory=FactChanges)
    twice: bool = False
    old: Target | None = None
    """The recorded master, if its noise is measured as well."""
    files: bool = False
    jobs: int = 2

    def identity(self, nodes: Sequence[ChosenRun]) -> dict[str, str]:
        """Digests that must be the same if a rehearsal is continued, by their names in a sentence."""
        options = [self.road.name, self.environment, str(self.facts), self.twice, self.files]
        runs = sorted((node.brief.name, node.brief.number, node.brief.started) for node in nodes)
        return {
            "another master": " and ".join(str(target) for target in self.targets),
            "another CA": _digest(*(_content(target) for target in self.targets)),
            "runs of other captures or agents": _digest(json.dumps(runs).encode()),
            "other options": json.dumps(options),
        }

    @property
    def how(self) -> How:
        """How the answers are compared."""
        return How(self.choices, self.files, isinstance(self.road, V4))

    @property
    def targets(self) -> list[Target]:
        """The masters that are asked."""
        return [self.target] if self.old is None else [self.target, self.old]


def _content(target: Target) -> bytes:
    with contextlib.suppress(OSError):  # which is said where it is used
        return inputs.read(target.ca)
    return b""


def _digest(*parts: bytes) -> str:
    return hashlib.sha256(b"\0".join(parts)).hexdigest()

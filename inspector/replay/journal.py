"""The journal of a replay: a capture of its own, and counts of the requests refused or not answered as recorded."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from inspector.capture import replacing
from inspector.capture.store import Capture
from inspector.model import REPLAY_OF, Connection, Exchange

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.replay.master import Served

OTHER = "other"
"""The endpoint of requests that are none of Puppet's."""


class Journal:
    """Writes a capture; without a record none remains."""

    def __init__(self, target: Path, of: str) -> None:
        """Create the capture of a replay ``of`` a run. Raises CaptureError, also if there is one."""
        replacing.must_be_new(target)
        self.target = target
        self.requests = 0
        self.missing: Counter[str] = Counter()
        """Why requests were not answered as recorded."""
        self.endpoints: Counter[str] = Counter()
        """The same requests by endpoint."""
        self.refused: Counter[str] = Counter()
        """Why others than the agent were refused."""
        self._capture = Capture.create(target)
        self._capture.set_meta([(REPLAY_OF, of)])

    def take(self, served: Served) -> None:
        """Record what happened. Raises CaptureError."""
        record = served.record
        for leg in record.legs:
            self._capture.note(Connection(leg))
        self._capture.append(record)
        self._capture.flush()
        self.requests += isinstance(record, Exchange)
        if served.refused:
            self.refused[served.refused] += 1
        if served.missing is not None:
            question = served.missing.question
            self.missing[served.missing.reason] += 1
            self.endpoints[question.endpoint if question else OTHER] += 1

    def close(self) -> None:
        """Close the capture, and remove it if it is empty."""
        replacing.close(self._capture)

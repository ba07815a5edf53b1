"""Collects what belongs to a run while it lasts, and sends it as spans when it is over.

What leaves passes through the gate of exports (``formats.outgoing``), in the analysis process. Spans need no bodies and
no certificates, so none are kept.
"""

from __future__ import annotations

import dataclasses
from itertools import islice
from typing import TYPE_CHECKING

from inspector.formats import otlp
from inspector.formats.outgoing import Outgoing, secrets_of
from inspector.model import Exchange, Gap, Handshake
from inspector.proxy.telemetry.sender import Sender

if TYPE_CHECKING:
    from collections.abc import Callable

    from inspector.analysis.analyzer import Step
    from inspector.model import Message, Record
    from inspector.runs.run import Run
    from inspector.summaries.summary import RunBrief

WAITING = 20_000
"""Records of open runs that are kept; what comes on top is dropped."""
SECRETS = 5_000
"""Secrets of a run that are remembered."""
LEARNED = 5_000
"""Records after which what was learned of names is forgotten."""
_HEADERS = ("host", "user-agent")
"""The headers of requests that spans contain."""


class Spans:
    """Sends the runs of a capture to a collector."""

    def __init__(self, url: str, begin: Callable[[], None]) -> None:
        """``url`` is where a collector takes traces; ``begin`` is called before each record's turn to be masked."""
        self.sender = Sender(url)
        self._begin = begin
        self._records: dict[Run, list[Record]] = {}
        self._secrets: dict[Run, set[str]] = {}
        """What the records of open runs mark as secret: error texts may quote it."""
        self._unknown: set[Run] = set()
        """Runs of which not all secrets are known."""
        self._number = 0
        self._gate = Outgoing(pseudonyms=False)
        self._learned = 0

    def step(self, step: Step) -> None:
        """Take a record."""
        run = step.run
        if run is None or not run.real:
            return
        if self._number >= WAITING:
            self.sender.drop("too many records wait", _spans_of(step.record))
            return
        self._begin()
        secrets = self._secrets.setdefault(run, set())
        try:
            secrets.update(islice(secrets_of(step.record), max(0, SECRETS - len(secrets))))
        except Exception:  # noqa: BLE001 - a mistake of ours: what may quote an unknown secret does not leave
            self._unknown.add(run)
        self._records.setdefault(run, []).append(_bare(step.record))
        self._number += 1

    def ended(self, run: Run, brief: RunBrief) -> None:
        """Send a run that is over."""
        # A stretch whose agent was not known at first is part of it by now; so are its own steps.
        mine = [other for other in self._records if other is run or other.place == run.place or other.joined is run]
        records = [record for other in mine for record in self._records.pop(other)]
        self._number -= len(records)
        if self._unknown & {*mine}:
            self._unknown -= {*mine}
            for other in mine:
                self._secrets.pop(other, None)
            self.sender.drop("not masked", sum(map(_spans_of, records)))
            return
        if self._learned > LEARNED:
            self._gate, self._learned = Outgoing(pseudonyms=False), 0
        for secret in sorted(secret for other in mine for secret in self._secrets.pop(other, ())):
            self._gate.known.add(secret)
        leaving = [made for record in sorted(records, key=lambda record: record.seq) if (made := self._leaving(record))]
        if len(leaving) < len(records):
            self.sender.drop("not masked", len(records) - len(leaving))
        lines = list(otlp.lines(leaving, lambda _: brief, self._gate.sentence))
        self.sender.put("".join(lines).encode(), len(lines) - 2)

    def _leaving(self, record: Record) -> Record | None:
        """Return a record as it may leave: only the names in it are known."""
        self._begin()
        self._learned += 1
        self._gate.unmasked.clear()
        self._gate.learn(lambda: [record])
        return self._gate.leaving(record)


def _spans_of(record: Record) -> int:
    return 2 if isinstance(record, Exchange) and record.master else 1


def _bare(record: Record) -> Record:
    """Return a record with what spans need."""
    match record:
        case Exchange():
            request, response, master = record.request, record.response, record.master
            headers = tuple((name, value) for name, value in request.headers if name.lower() in _HEADERS)
            return dataclasses.replace(
                record,
                agent=record.agent.bare,
                master=master.bare if master else None,
                request=dataclasses.replace(_message(request), headers=headers),
                response=dataclasses.replace(_message(response), headers=()) if response else None,
                stripped=(),
            )
        case Handshake():
            return dataclasses.replace(record, leg=record.leg.bare, culprits=())
        case Gap():
            return record


def _message[M: Message](message: M) -> M:
    return dataclasses.replace(message, body=b"", lost=message.size, digest="")

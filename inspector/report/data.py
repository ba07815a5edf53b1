"""Data in a page, for its script: runs and records in columns, and messages; JSON, compressed, as base64.

The browser unpacks a block when it is needed.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from inspector.clocks import finite
from inspector.model import Exchange, Handshake
from inspector.protocol import decode
from inspector.summaries import wording
from inspector.text import clean, utc_second

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from inspector.model import Message, Record
    from inspector.summaries.summary import Brief, RunBrief

LEVEL = 9
"""Of the compression."""
RECORDS = 4000
"""Records whose headers are in one block."""
BODIES = 2_000_000
"""Characters of bodies in one block, or more if one alone has more."""
LONGEST = 4_000_000
"""Characters of a body that a page contains."""
MILLION = 1_000_000


@dataclass(frozen=True, slots=True)
class Block:
    """A block of data, by the name under which the page's script finds it."""

    name: str
    data: str
    """Base64: no character of it has a meaning in HTML."""

    @classmethod
    def of(cls, name: str, value: Any) -> Block:
        """Pack a JSON-able value."""
        text = json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "replace")
        return cls(name, base64.b64encode(gzip.compress(text, LEVEL, mtime=0)).decode())

    def unpacked(self) -> Any:
        """Return the value."""
        return json.loads(gzip.decompress(base64.b64decode(self.data)))


# -- messages ----------------------------------------------------------------------------------------------


@dataclass(slots=True)
class MessageBlocks:
    """Packs the headers and bodies of records, in the order of their numbers: each body once, by its digest."""

    _bodies: dict[bytes, int] = field(default_factory=dict)
    _texts: list[Any] = field(default_factory=list)
    _length: int = 0
    _headers: dict[tuple[tuple[str, str], ...], int] = field(default_factory=dict)
    _records: dict[int, list[Any]] = field(default_factory=dict)
    _made: list[Block] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    """The first body of each block of bodies."""
    firsts: list[int] = field(default_factory=list)
    """The first record of each block of headers."""

    def add(self, record: Record) -> None:
        """Add the next record."""
        match record:
            case Exchange():
                messages = [record.request, record.response]
                self._records[record.seq] = [self._message(message) if message else None for message in messages]
            case Handshake():
                self._records[record.seq] = [None, None, [clean(culprit) for culprit in record.culprits]]
        if len(self._records) >= RECORDS:
            self._end_records()
        if self._length >= BODIES:
            self._end_bodies()

    def blocks(self) -> Iterator[Block]:
        """Return all blocks; nothing can be added any more."""
        self._end_records()
        self._end_bodies()
        yield from self._made
        yield Block.of("messages", {"bodies": self.starts, "records": self.firsts})

    def _message(self, message: Message) -> list[Any]:
        headers = tuple((clean(name), clean(value)) for name, value in message.headers)
        place = self._headers.setdefault(headers, len(self._headers))
        body = self._body(message) if message.body else -1
        return [place, body, message.size, message.lost]

    def _body(self, message: Message) -> int:
        plain = decode.content(message)
        data = message.body if plain is None else plain
        digest = hashlib.sha256(data).digest()
        known = self._bodies.get(digest)
        if known is not None:
            return known
        if not self._texts:
            self.starts.append(len(self._bodies))
        place = self._bodies[digest] = len(self._bodies)
        try:
            text: Any = data.decode()
        except UnicodeDecodeError:
            text = {"base64": base64.b64encode(data[: LONGEST // 2]).decode()}
        if isinstance(text, str) and len(text) > LONGEST:
            text = f"{text[:LONGEST]}\n… ({len(text):,} characters)"
        self._texts.append(text)
        self._length += len(text) if isinstance(text, str) else len(text["base64"])
        return place

    def _end_records(self) -> None:
        if self._records:
            self.firsts.append(next(iter(self._records)))
            number = len(self.firsts) - 1
            headers = list(self._headers)
            self._made.append(Block.of(f"records-{number}", {"headers": headers, "records": self._records}))
            self._records, self._headers = {}, {}

    def _end_bodies(self) -> None:
        if self._texts:
            self._made.append(Block.of(f"bodies-{len(self.starts) - 1}", self._texts))
            self._texts, self._length = [], 0


# -- records and runs --------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Names:
    """Texts that occur often, and the place of each."""

    places: dict[str | None, int] = field(default_factory=dict)

    def place(self, text: str | None) -> int:
        known = text if text is None else clean(text)
        return self.places.setdefault(known, len(self.places))


@dataclass(slots=True)
class RecordColumns:
    """The records of a page, property by property: equal values stand beside each other, so they pack well."""

    _names: _Names = field(default_factory=_Names)
    _columns: dict[str, list[Any]] = field(default_factory=dict)
    _last: tuple[int, int] = (0, 0)

    def add(self, brief: Brief, run: RunBrief | None) -> None:
        """Add the next record."""
        name, time = self._names.place, round(finite(brief.time) * 1000)
        signs = " ".join(f"{sign.rule}:{sign.severity}" for sign in brief.signs)
        if brief.kind == "exchange":
            reason = brief.reason or brief.identity_missing or ""
        else:
            reason = wording.refusal(brief.reason, brief.alert, brief.alert_by) if brief.alert else brief.reason
        values: dict[str, Any] = {
            "seq": brief.seq - self._last[0],  # the distance from the record before
            "time": time - self._last[1],
            "us": round(finite(brief.duration) * MILLION),
            "kind": name(brief.kind),
            "phase": name(str(brief.phase)),
            "run": (run.number if run else 0),
            "certname": name(brief.certname),
            "address": name(brief.address),
            "endpoint": name(brief.endpoint),
            "env": name(brief.environment),
            "method": name(brief.method),
            "target": clean(brief.target),
            "status": brief.status or 0,
            "failed": int(brief.failed),
            "sent": brief.sent,
            "received": brief.received,
            "reason": name(reason),
            "identity": name(brief.identity),
            "signs": name(signs),
        }
        for column, value in values.items():
            self._columns.setdefault(column, []).append(value)
        self._last = brief.seq, time

    def __len__(self) -> int:
        return len(self._columns.get("seq", ()))

    def plain(self) -> dict[str, Any]:
        """Return the columns as a JSON-able structure."""
        return {"names": list(self._names.places), "columns": self._columns}


def runs_plain(runs: Iterable[RunBrief]) -> list[dict[str, Any]]:
    """Return runs for a page's list: its cells, and what its filter looks at."""
    return [
        {
            "number": run.number,
            "cells": _cells(run),
            "certname": clean(run.certname or ""),
            "address": clean(run.address or ""),
            "outcome": run.outcome,
            "ending": run.ending,
            "version": clean(run.agent_version or ""),
            "env": [clean(name or "") for name in (run.environment, run.environment_asked)],
            "started": run.started,
            "ended": run.ended,
            "ms": round(finite(run.duration) * 1000),
            "size": run.sent + run.received,
            "findings": [f"{finding.rule}:{finding.severity}" for finding in run.findings],
            "words": clean(wording.words(run).replace("\n", " ")),
        }
        for run in runs
    ]


COLUMNS = ("run", "began (UTC)", "agent", "version", "environment", "outcome", "time", "findings")
"""The columns of the list of runs."""


def _cells(run: RunBrief) -> list[str]:
    row = wording.run_row(run)
    began = utc_second(run.started)
    return [row[0], began, wording.agent(run), row[3], row[4], run.ending, row[6], row[8]]


def newest(runs: Iterable[RunBrief]) -> list[RunBrief]:
    """Return runs, the newest first."""
    return sorted(runs, key=lambda run: -run.started)


def by_gravity(runs: Iterable[RunBrief]) -> list[RunBrief]:
    """Return runs, those that did not go well first, then the newest first."""

    def rank(run: RunBrief) -> tuple[bool, int, float]:
        worst = max((finding.severity.rank for finding in run.findings), default=0)
        return run.verdict is None, -worst if run.verdict else 0, -run.started

    return sorted(runs, key=rank)

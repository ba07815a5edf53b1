"""Headers and bodies of records for a page: each body once, by its digest."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from inspector.model import Exchange, Handshake
from inspector.protocol import decode
from inspector.report.packing import Block
from inspector.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inspector.model import Message, Record

RECORDS = 4000
"""Records whose headers are in one block."""
BODIES = 2_000_000
"""Characters of bodies in one block, or more if one alone has more."""
LONGEST = 4_000_000
"""Characters of a body that a page contains."""


@dataclass(slots=True)
class MessageBlocks:
    """Packs the messages of records, in the order of their numbers."""

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

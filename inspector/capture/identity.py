"""What identifies a capture, whatever its file is called, and of which others it was merged."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from inspector import regex
from inspector.errors import CaptureError
from inspector.model import Exchange, Handshake

if TYPE_CHECKING:
    from collections.abc import Iterable

    from inspector.capture.store import Capture

SOURCES = "sources"
"""The item of a merged capture's metadata: the identities of the captures that it was made of."""
MERGED = "merged-"
"""How the identity of a merged capture begins."""
MOST = 10_000
"""Captures of which one can be made; more are not read."""
_DIGITS = 16
_IDENTITY = regex.compile(f"[0-9a-f]{{{_DIGITS}}}")


def identity(capture: Capture) -> str:
    """Return what identifies a capture: a digest of its first readable record, also after vacuum; of one that was
    merged, of those of its sources, whatever became of their numbers and times. Empty if it has no record. Raises
    CaptureError."""
    if sources := sources_of(capture):
        return MERGED + _digest(" ".join(sorted(sources)))
    troubles: list[str] = []
    record = next(capture.readable(0, lambda trouble, _: troubles.append(trouble)), None)
    if record is None:
        if troubles:
            raise CaptureError(troubles[0], "The file is damaged; copy it again.")
        return ""
    match record:
        case Exchange():
            about = record.agent.id, record.agent.address, record.agent.port, record.request.target
        case Handshake():
            about = record.leg.id, record.leg.address, record.leg.port, record.reason
        case _:
            about = "", None, None, record.reason
    return _digest(repr((record.seq, record.time, record.ended, *about)))


def sources_of(capture: Capture) -> frozenset[str]:
    """Return the identities of the captures of which one was merged; none if it was not. Raises CaptureError."""
    return frozenset(_IDENTITY.findall(capture.meta().get(SOURCES, "")[: MOST * (_DIGITS + 1)]))


def sources_item(captures: Iterable[Capture]) -> str:
    """Return the item ``SOURCES`` of a capture that is made of these. Raises CaptureError."""
    found = {name for capture in captures for name in sources_of(capture) or {identity(capture)} if name}
    return " ".join(sorted(found))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:_DIGITS]

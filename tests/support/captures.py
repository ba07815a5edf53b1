"""Captures of made-up records, written as the proxy writes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.capture.store import Capture
from inspector.model import Connection, Exchange, Handshake

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.model import Record


def save(path: Path, *records: Record) -> Path:
    with Capture.create(path) as capture:
        keep(capture, *records)
    return path


def keep(capture: Capture, *records: Record) -> None:
    """As the proxy does: each with its connections."""
    for record in records:
        if isinstance(record, Exchange):
            capture.note(Connection(record.agent))
            if record.master:
                capture.note(Connection(record.master))
        elif isinstance(record, Handshake):
            capture.note(Connection(record.leg))
        capture.append(record)
    capture.flush()

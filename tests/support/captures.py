"""Captures of made-up records, written as the proxy writes them."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from inspector.capture.store import Capture
from inspector.model import Connection, OpenConnection, Present

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from inspector.model import OpenRequest, Record


def save(path: Path, *records: Record) -> Path:
    with Capture.create(path) as capture:
        keep(capture, *records)
    return path


def keep(capture: Capture, *records: Record) -> None:
    """As the proxy does: each with its connections."""
    for record in records:
        for leg in record.legs:
            capture.note(Connection(leg))
        capture.append(record)
    capture.flush()


@contextmanager
def recording(
    path: Path, *records: Record, requests: tuple[OpenRequest, ...] = (), legs: tuple[str, ...] = ()
) -> Iterator[Capture]:
    """A capture that a proxy is writing, with these requests and connections open."""
    with Capture.create(path) as capture:
        open_now = tuple(OpenConnection(leg, time.time(), "192.0.2.1") for leg in legs)
        capture.set_present(Present("open", time.time(), requests, open_now))
        keep(capture, *records)
        capture.flush()
        yield capture

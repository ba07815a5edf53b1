"""A capture to share: it has the same findings, and does not reveal whose network was captured.

``outgoing`` replaces what must not leave: secrets, free values, names and addresses. Unchanged are times, sizes,
versions, and the identifiers of environments, classes and facts.
"""

from __future__ import annotations

import contextlib
import itertools
import os
from typing import TYPE_CHECKING

from inspector.capture.store import Capture
from inspector.errors import CaptureError, InspectorError
from inspector.formats.outgoing import Outgoing
from inspector.model import Connection, Gap

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from inspector.formats.outgoing import Content
    from inspector.model import Record

_BATCH = 200


def share(
    source: Path,
    target: Path,
    progress: Callable[[str], None] = lambda _: None,
    opened: frozenset[Content] = frozenset(),
) -> tuple[int, Counter[Content]]:
    """Make the capture to share; return the number of its records, and the numbers of values that were withheld.
    ``progress`` is called with messages about slow steps; ``opened`` is what is not withheld.

    Raises CaptureError, also if ``target`` exists.
    """
    if os.path.lexists(target):
        raise CaptureError(f"{target} already exists.", "Choose another name.")
    with Capture.open(source) as capture:
        # A proxy may be writing, and the names in later records were not learned.
        last, connections = capture.last, capture.connections()
        outgoing = Outgoing.of(capture, last, pseudonyms=True, opened=opened, progress=progress)
        try:
            records = itertools.takewhile(lambda record: record.seq <= last, capture.records())
            number = _write(records, connections, outgoing, target, after=max(capture.first, 1) - 1)
            return number, outgoing.withheld
        except BaseException:
            for path in (target, *(target.with_name(target.name + end) for end in ("-wal", "-shm"))):
                with contextlib.suppress(OSError):
                    path.unlink()
            raise


def _write(
    records: Iterable[Record],
    connections: Iterable[Connection],
    outgoing: Outgoing,
    target: Path,
    *,
    after: int,
) -> int:
    number = 0
    with Capture.create(target, after=after) as made:
        for connection in connections:
            made.note(Connection(outgoing.leg(connection.leg), connection.closed))
        for number, record in enumerate(records, 1):
            leaving = outgoing.leaving(record)
            if leaving is None:  # a gap takes its place, so that numbers stay
                leaving = Gap(record.time, f"this record was not shared: {outgoing.unmasked[record.seq]}", 1)
            if made.append(leaving).seq != record.seq:
                raise InspectorError(
                    f"Records before record {record.seq} are missing, so record numbers would change.",
                    "First renumber them: `puppet-inspector merge CAPTURE -o FILE`.",
                )
            if number % _BATCH == 0:
                made.flush()
        made.set_meta([("shared", "values withheld, names and addresses replaced, certificates issued again")])
    return number

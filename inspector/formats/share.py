"""A copy of a capture that may leave: it has the same findings.

``outgoing`` replaces what must not leave: secrets, free values, and for strangers names and addresses. Unchanged are
times, sizes, versions, and the identifiers of environments, classes and facts.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from inspector.capture.replacing import created
from inspector.capture.store import Capture
from inspector.errors import InspectorError
from inspector.formats.outgoing import Outgoing, records_until
from inspector.model import Connection, Gap
from inspector.progress import unwatched, watched

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from inspector.formats.outgoing import Content
    from inspector.model import Record
    from inspector.progress import Watch

_BATCH = 200


def share(
    source: Path,
    target: Path,
    opened: frozenset[Content] = frozenset(),
    watch: Watch = unwatched,
    *,
    pseudonyms: bool = True,
) -> tuple[int, Counter[Content]]:
    """Make the capture to share; return the number of its records, and the numbers of values that were withheld.
    ``opened`` is what is not withheld. Without ``pseudonyms`` names, addresses, certificates and the texts of errors
    stay, as in an export.

    Raises CaptureError, also if ``target`` exists.
    """
    (number,), withheld = together([(source, target)], opened, watch, pseudonyms=pseudonyms)
    return number, withheld


def together(
    copies: Sequence[tuple[Path, Path]],
    opened: frozenset[Content] = frozenset(),
    watch: Watch = unwatched,
    *,
    pseudonyms: bool = True,
) -> tuple[list[int], Counter[Content]]:
    """Make copies of captures, each a source and its target, in which equal values have equal stand-ins: they can be
    compared. Raises CaptureError."""
    with contextlib.ExitStack() as stack:
        # First the targets: to learn a capture takes minutes.
        made = [(capture := stack.enter_context(Capture.open(source)),
                 stack.enter_context(created(target, after=max(capture.first, 1) - 1)))
                for source, target in copies]  # fmt: skip
        # A proxy may be writing, and the names in later records were not learned.
        known = [(capture, capture.last) for capture, _ in made]
        connections = [capture.connections() for capture, _ in made]
        outgoing = Outgoing.of(*known, pseudonyms=pseudonyms, opened=opened, watch=watch)
        numbers = []
        for (capture, copy), (_, last), legs in zip(made, known, connections, strict=True):
            for connection in legs:
                copy.note(Connection(outgoing.leg(connection.leg), connection.closed))
            records = records_until(capture, last)
            numbers.append(_write(watched(records, watch, capture.count(), "writing record"), outgoing, copy))
            replaced = ", names and addresses replaced, certificates issued again" if pseudonyms else ""
            copy.set_meta([("shared", f"values withheld{replaced}")])
    return numbers, outgoing.withheld


def _write(records: Iterable[Record], outgoing: Outgoing, made: Capture) -> int:
    number = 0
    for number, record in enumerate(records, 1):
        leaving = outgoing.leaving(record)
        if leaving is None:  # a gap takes its place, so that numbers stay
            leaving = Gap(record.time, f"this record was not shared: {outgoing.unmasked[record.seq]}", 1)
        if made.append(leaving).seq != record.seq:
            raise InspectorError(
                f"Records before record {record.seq} are missing, so record numbers would change.",
                "First renumber them: `puppet-inspector captures merge CAPTURE -o FILE`.",
            )
        if number % _BATCH == 0:
            made.flush()
    return number

"""The whole message behind a finding, as the master or the agent wrote it: findings contain as much as fits on a line.

It is read from the finding's evidence when somebody asks for it, and masked like every record that is shown.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.analysis.analyzer import retrace
from inspector.model import Exchange, Handshake
from inspector.privacy import redact
from inspector.protocol import decode
from inspector.protocol import documents as d
from inspector.rules.words import errors
from inspector.text import beginning, clean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Protocol

    from inspector.model import Finding, Record

    class Records(Protocol):
        """Where records are read: a capture, or the source of the terminal inspector."""

        def record(self, seq: int) -> Record | None: ...


type Whole = Callable[[Finding | None], str | None]
"""Reads the whole message behind a finding."""

MOST = 5
"""Most records of the evidence that are read for a message."""
LONGEST = 20_000
"""Most characters of a message, and most of one error of a log."""


def of_finding(finding: Finding | None, records: Records) -> str | None:
    """Return the whole message behind a finding, its lines cleaned; None if its evidence contains none.

    The last record of the evidence shows what went wrong, earlier ones what led to it: they are read if the last one
    has no message. Raises CaptureError.
    """
    for seq in reversed(finding.seqs[-MOST:] if finding else ()):
        record = records.record(seq)
        if record is not None and (text := of_record(record)) is not None:
            return text
    return None


def of_record(record: Record) -> str | None:
    """Return what a record says about a failure, masked, its lines cleaned; None if it says nothing."""
    masked = redact.redacted(record)
    secrets = redact.quotable(record) if isinstance(record, Exchange) else frozenset[str]()
    text = "\n".join(redact.quoted(line, secrets) for part in _parts(masked) for line in part.strip().splitlines())
    return beginning("\n".join(map(clean, text.split("\n"))), LONGEST) or None


def _parts(record: Record) -> Iterator[str]:
    if isinstance(record, Handshake):
        yield record.reason
    if not isinstance(record, Exchange):
        return
    response = record.response
    if response is not None and response.status >= 400:
        yield decode.refusal(response, LONGEST)
    else:
        (step,) = retrace([record])
        if isinstance(step.request, d.Report):
            for entry in errors(step.request):
                yield (f"{entry.source}: " if entry.source else "") + beginning(entry.message.strip(), LONGEST)
    if record.error:
        yield record.error

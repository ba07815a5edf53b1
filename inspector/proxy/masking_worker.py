"""The masking process of a proxy (`puppet_redact`): takes the secrets out of records before they are recorded.

Masking holds the interpreter's lock, for seconds if a body is large, and every agent would have to wait. So the proxy
passes each record through this process, and writes only what it gets back.
"""

from __future__ import annotations

import dataclasses
import os
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from inspector.capture.spool import CHUNK, Spool
from inspector.model import Connection, Exchange
from inspector.privacy import redact
from inspector.proxy import masking_channel, side_process
from inspector.proxy.masking_channel import Answer, Channel, Question

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from inspector.model import Record
    from inspector.proxy.masking_channel import Frame

    type Change = Callable[[Record | Connection], Record | Connection]

CPU = 60.0
"""Seconds of CPU time that one record may take: enough for 20 MB of JSON. The next process leaves it out."""


def main(argv: list[str]) -> int:
    """Run with ``PROXY FOLDER SOCKET [closed]``: the process number of the proxy, a directory for large masked bodies
    (in unnamed files), and the descriptor of the connection to the proxy; with ``closed``, only what is known to be
    harmless is recorded."""
    side_process.attend(int(argv[0]))
    folder, descriptor = Path(argv[1]), int(argv[2])
    change = _closing() if argv[3:] else _redacted
    channel = Channel(socket.socket(fileno=descriptor), masking_channel.ready)
    try:
        while frame := channel.receive():
            for question in msgspec.msgpack.decode(frame.content, type=list[Question]):
                side_process.limit(CPU)
                _answer(channel, question, frame, folder, change)
            frame.close()
    except ConnectionError:
        pass  # the proxy has ended
    return 0


def _closing() -> Change:
    from inspector.formats import outgoing  # it takes a while, and not every proxy needs it

    key = bytes.fromhex(os.environ[masking_channel.KEY])

    def change(record: Record | Connection) -> Record | Connection:
        if isinstance(record, Connection):
            return dataclasses.replace(record, leg=outgoing.leg_alone(record.leg, key))
        return outgoing.alone(record, key)

    return change


def _redacted(record: Record | Connection) -> Record | Connection:
    if not isinstance(record, Connection):
        return redact.redacted(record)
    leg = redact.leg(record.leg)
    return record if leg is record.leg else dataclasses.replace(record, leg=leg)


def _answer(channel: Channel, question: Question, frame: Frame, folder: Path, change: Change) -> None:
    descriptors = [frame.descriptors.pop(0) for _ in question.bodies]
    try:
        answer, spools = _masked(question, descriptors, folder, change)
    except Exception as error:  # noqa: BLE001 - one record must not stop all others
        # Only its type: the text may quote what should have been masked.
        answer, spools = Answer(failure=type(error).__name__), []
    finally:
        for descriptor in descriptors:
            os.close(descriptor)
    channel.send(msgspec.msgpack.encode(answer), [spool.descriptor for spool in spools])
    for spool in spools:
        spool.close()


def _masked(question: Question, descriptors: Sequence[int], folder: Path, change: Change) -> tuple[Answer, list[Spool]]:
    """Return the answer to a question, and the large bodies that come with it."""
    record = masking_channel.unpack(question.record, masking_channel.KINDS[question.kind])
    for body, descriptor in zip(question.bodies, descriptors, strict=True):
        record = _with_body(record, body.side, _content(descriptor, body.size))
    masked = change(record)
    if masked is record:
        return Answer(), []
    spools: dict[str, Spool] = {}
    for body in question.bodies:
        masked, spool = _spooled(masked, body.side, folder)
        if spool:
            spools[body.side] = spool
    bodies, _ = masking_channel.sent(spools)
    return Answer(masking_channel.pack(masked), bodies), list(spools.values())


def _content(descriptor: int, size: int) -> bytes:
    parts = bytearray()
    while data := os.pread(descriptor, CHUNK, len(parts)):
        parts += data
    if len(parts) != size:
        raise OSError("a body is incomplete")
    return bytes(parts)


def _spooled(record: Record | Connection, side: str, folder: Path) -> tuple[Record | Connection, Spool | None]:
    """Move a body that is large to an unnamed file. Raises OSError."""
    body = getattr(record, side).body
    spool = Spool(folder, keep=len(body))
    spool.add(body)
    if spool.cut:
        raise OSError("the disk is full")
    if spool.body is not None:
        return record, None
    return _with_body(record, side, b""), spool


def _with_body(record: Record | Connection, side: str, body: bytes) -> Record | Connection:
    assert isinstance(record, Exchange)  # noqa: S101 - no other record has bodies
    return dataclasses.replace(record, **{side: dataclasses.replace(getattr(record, side), body=body)})

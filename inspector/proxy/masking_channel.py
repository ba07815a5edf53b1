"""What a proxy and its masking process send to each other: records, and the descriptors of large bodies on the disk."""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import socket
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from inspector.capture.spool import Spool
from inspector.model import Connection, Exchange, Gap, Handshake

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from inspector.model import Record

KINDS: dict[str, type[Record | Connection]] = {kind.__name__: kind for kind in (Exchange, Handshake, Gap, Connection)}
DESCRIPTORS = 200
"""Descriptors in a frame; the kernel passes on at most 253 at once."""
_HEAD = struct.Struct("<IH")
"""The size of a frame's content, and the number of descriptors that come with it."""
_PIECE = 2**18
KEY = "PUPPET_INSPECTOR_MASKING_KEY"
"""The variable with the key of stand-ins (`puppet_redact=closed`): all workers of a proxy have the same, and a masking
process that is started again, or values that are equal would differ within a run. Nobody keeps it."""
NIL = msgspec.Raw(msgspec.msgpack.encode(None))
"""No record."""


def make_key() -> None:
    """Make the key of stand-ins, unless the process that started this one did."""
    os.environ.setdefault(KEY, secrets.token_hex(32))


class SentBody(msgspec.Struct, array_like=True):
    """A large body of a record, whose content is in a file that comes with it."""

    side: str
    size: int
    sha256: bytes


class Question(msgspec.Struct, array_like=True):
    """A record to be masked."""

    kind: str
    record: msgspec.Raw
    bodies: list[SentBody] = []


class Answer(msgspec.Struct, array_like=True):
    """The masked record."""

    record: msgspec.Raw = NIL
    """Empty: there is nothing to mask in it."""
    bodies: list[SentBody] = []
    failure: str = ""
    """Why it could not be masked; never a part of it."""


@dataclass(slots=True)
class Frame:
    """Content, and the descriptors that came with it: the receiver owns and closes them."""

    content: bytes
    descriptors: list[int]

    def close(self) -> None:
        """Close the descriptors that were not taken."""
        while self.descriptors:
            os.close(self.descriptors.pop())


class Channel:
    """One end of the connection between the two processes."""

    def __init__(self, end: socket.socket, wait: Callable[[int, int], None]) -> None:
        """``wait`` returns when a descriptor is ready for an event of ``poll``, or raises OSError."""
        end.settimeout(0)
        self._socket = end
        self._wait = wait

    def send(self, content: bytes, descriptors: Sequence[int] = ()) -> None:
        """Send a frame. Raises OSError."""
        rest = memoryview(_HEAD.pack(len(content), len(descriptors)) + content)
        while rest:
            try:
                sent = socket.send_fds(self._socket, [rest[:_PIECE]], descriptors)
            except BlockingIOError:
                self._wait(self._socket.fileno(), select.POLLOUT)
                continue
            rest, descriptors = rest[sent:], ()

    def receive(self) -> Frame | None:
        """Return the next frame; None at the end. Raises OSError."""
        frame = Frame(b"", [])
        try:
            head = self._read(_HEAD.size, frame.descriptors)
            if not head:
                return None
            size, number = _HEAD.unpack(head)
            frame.content = self._read(size, frame.descriptors)
            if len(frame.content) < size or len(frame.descriptors) != number:
                raise ConnectionAbortedError("a frame was cut off")
        except BaseException:
            frame.close()
            raise
        return frame

    def _read(self, size: int, descriptors: list[int]) -> bytes:
        parts = bytearray()
        while len(parts) < size:
            try:
                data, more, _, _ = socket.recv_fds(self._socket, min(_PIECE, size - len(parts)), DESCRIPTORS)
            except BlockingIOError:
                self._wait(self._socket.fileno(), select.POLLIN)
                continue
            descriptors += more
            if not data:
                if parts:
                    raise ConnectionAbortedError("a frame was cut off")
                break
            parts += data
        return bytes(parts)

    def close(self) -> None:
        """Close this end."""
        self._socket.close()


def pack(record: Record | Connection) -> msgspec.Raw:
    """Return a record as a message. Raises ValueError or OverflowError for one that no capture could hold either."""
    try:
        return msgspec.Raw(msgspec.msgpack.encode(record))
    except UnicodeEncodeError:
        # A lone surrogate in it, from bytes that are not UTF-8.
        return msgspec.Raw(msgspec.msgpack.encode(_encodable(msgspec.to_builtins(record, builtin_types=(bytes,)))))


def _encodable(value: Any) -> Any:
    match value:
        case str():
            return value.encode(errors="backslashreplace").decode()
        case dict():
            return {key: _encodable(child) for key, child in value.items()}
        case list() | tuple():
            return [_encodable(child) for child in value]
    return value


def unpack(data: msgspec.Raw, kind: type[Record | Connection]) -> Record | Connection:
    """Return the record of a message. Raises MsgspecError."""
    return msgspec.msgpack.decode(data, type=kind)


def sent(spools: Mapping[str, Spool]) -> tuple[list[SentBody], list[int]]:
    """Return what is sent of large bodies, and their descriptors."""
    bodies = [SentBody(side, spool.size, spool.sha256) for side, spool in spools.items()]
    return bodies, [spool.descriptor for spool in spools.values()]


def received(bodies: Sequence[SentBody], frame: Frame) -> dict[str, Spool]:
    """Return the large bodies that were sent; they own the next descriptors of the frame."""
    return {body.side: Spool.received(frame.descriptors.pop(0), body.size, body.sha256) for body in bodies}


def pair(wait: Callable[[int, int], None]) -> tuple[Channel, socket.socket]:
    """Return one end of a new connection, and the socket of the other end."""
    ours, theirs = socket.socketpair()
    return Channel(ours, wait), theirs


def ready(descriptor: int, event: int) -> None:
    """Wait for a descriptor as long as it takes."""
    poll = select.poll()
    poll.register(descriptor, event)
    with contextlib.suppress(InterruptedError):
        poll.poll()

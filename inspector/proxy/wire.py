"""Records the bytes of both legs as they are on the wire, with the secrets of their TLS sessions (``puppet_wire``).

The event loop only puts what it sends and receives into a queue. A thread writes it, as packets, to a file beside the
capture that Wireshark opens (``formats.wire``). Agents never wait for it: what it cannot write is not recorded.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, NamedTuple

from inspector.clocks import nanoseconds
from inspector.errors import InspectorError
from inspector.formats import pcapng, wire
from inspector.formats.packets import ACK, PSH, SEGMENT, Peer, Stream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from inspector.formats.packets import Packet

FLUSH = 0.2
"""Seconds between writes."""
QUEUE = 64 * 2**20
"""Bytes that wait; above it the recording of the wire ends, as a part of it would be of no use."""
BATCH = 64
"""Packets that are written at once."""
OUTSTANDING = 2**15
"""Bytes of one side after which the other one acknowledges them: until then its next data does."""


class _Item(NamedTuple):
    of: _Connection
    kind: str
    """``open``, ``data``, ``secret``, ``closed`` or ``reset``."""
    time: float
    data: bytes = b""
    by: int = 0
    """Whose data it is, or who closed the connection: the client (0) or the server (1)."""


class _Connection(Stream):
    """A connection in the file."""

    def __init__(self, ident: str, interface: int, client: Peer, server: Peer) -> None:
        super().__init__(ident, client, server)
        self._interface = interface
        self._comment = f"{wire.CONNECTION}{ident}"
        self._outstanding, self._speaker = 0, 0
        """Bytes that are not acknowledged, and of whom."""

    def blocks(self, item: _Item) -> Iterator[bytes]:
        """Yield the pieces of the file for what happened."""
        now = nanoseconds(item.time)
        match item.kind:
            case "secret":
                yield pcapng.secrets(item.data, self._comment)
                return
            case "data":
                packets = self._data(item.by, now, item.data)
            case "open":
                packets = self.open(now, now, self._comment)
            case _:
                packets = self._end(item.by, now, reset=item.kind == "reset")
        for packet in packets:
            yield pcapng.packet(self._interface, *packet)

    def _end(self, by: int, now: int, *, reset: bool) -> Iterator[Packet]:
        yield from self.close(by, now, reset=reset)
        yield from self.close(1 - by, now)

    def _data(self, by: int, now: int, data: bytes) -> Iterator[Packet]:
        for at in range(0, len(data), SEGMENT):
            yield self.packet(by, now, ACK | PSH, data[at : at + SEGMENT])
        self._outstanding = len(data) + (self._outstanding if by == self._speaker else 0)
        self._speaker = by
        if self._outstanding > OUTSTANDING:
            yield self.packet(1 - by, now, ACK)
            self._outstanding = 0


class Wire:
    """The file of a process."""

    def __init__(self, capture: Path, report: Callable[[str], None], room: Callable[[Path], str | None]) -> None:
        """Begin a file beside a capture. ``report`` gets a sentence if the recording ends early, ``room`` returns why
        nothing may be written to the disk. Raises InspectorError."""
        self._report, self._room = report, room
        self._queue: deque[_Item] = deque()
        self._put, self._taken = 0, 0
        """Bytes that the event loop has queued, and that the thread has taken: each counts by itself."""
        self._failed = ""
        self._ended = threading.Event()
        self._path, self._descriptor = _create(capture)
        self._write(pcapng.section(wire.COMMENT) + pcapng.interface("agents") + pcapng.interface("masters"))
        self._thread = threading.Thread(target=self._run, name="wire", daemon=True)
        self._thread.start()

    def put(self, item: _Item) -> None:
        """Queue something. Never waits, never raises."""
        if self._failed:
            return
        self._put += len(item.data)
        if self._put - self._taken > QUEUE:
            self._fail("more comes in than can be written")
            return
        self._queue.append(item)

    def close(self) -> None:
        """Write the rest."""
        self._ended.set()
        self._thread.join()
        os.close(self._descriptor)

    def _fail(self, reason: str) -> None:
        if not self._failed:
            self._failed = reason
            self._queue.clear()
            self._report(f"the wire is not recorded any more ({reason}): {self._path} ends here")

    def _run(self) -> None:
        ended = False
        while not ended and not self._failed:
            ended = self._ended.wait(FLUSH)
            try:
                self._flush()
            except OSError as error:
                self._fail(error.strerror or str(error))
            except Exception as error:  # noqa: BLE001 - a bug of ours must not end anything else
                self._fail(f"internal error: {error!r}")

    def _flush(self) -> None:
        if not self._queue:
            return
        if reason := self._room(self._path):
            raise OSError(reason)
        made: list[bytes] = []
        while self._queue:
            item = self._queue.popleft()
            self._taken += len(item.data)
            made += item.of.blocks(item)
            if len(made) > BATCH:
                self._write(b"".join(made))
                made.clear()
        self._write(b"".join(made))

    def _write(self, data: bytes) -> None:
        while data:
            data = data[os.write(self._descriptor, data) :]


def _create(capture: Path) -> tuple[Path, int]:
    for number in range(wire.FILES):
        path = wire.name(capture, number)
        try:
            return path, os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        except FileExistsError:
            continue
        except OSError as error:
            raise InspectorError(f"Cannot write {path}: {error.strerror}.", "Record in another directory.") from error
    raise InspectorError(f"There are too many files like {wire.name(capture, 0)}.", "Record in another file.")


class Tap:
    """Records one connection. What was received during a handshake waits until the secrets that it leads to are known:
    these must come first."""

    def __init__(self, log: Wire, ident: str, interface: int) -> None:
        self._log, self._ident, self._peer = log, ident, interface
        """The interface is that of the peer: the client (0) or the server (1)."""
        self._connection: _Connection | None = None
        self._held: list[tuple[float, bytes]] = []

    @property
    def opened(self) -> bool:
        """Whether the connection is there."""
        return self._connection is not None

    def open(self, peer: tuple[str, int], own: tuple[str, int], at: float) -> None:
        """Note that the connection is there, once."""
        if self._connection is None:
            ends = (Peer(*peer), Peer(*own)) if self._peer == 0 else (Peer(*own), Peer(*peer))
            self._connection = _Connection(self._ident, self._peer, *ends)
            self._put("open", at)

    def received(self, data: bytes) -> None:
        """Note what the peer sent; ``release`` follows."""
        self._held.append((time.time(), data))

    def secret(self, line: bytes) -> None:
        """Note a secret of the session, which must be before the packets that need it."""
        self._put("secret", time.time(), line + b"\n")

    def sent(self, data: bytes) -> None:
        """Note what was sent to the peer."""
        self.release()
        self._put("data", time.time(), data, 1 - self._peer)

    def release(self) -> None:
        """Note that what was received has been looked at."""
        if self._held:
            for at, data in self._held:
                self._put("data", at, data, self._peer)
            self._held.clear()

    def closed(self, *, by_peer: bool, reset: bool) -> None:
        """Note the end of the connection."""
        self.release()
        self._put("reset" if reset else "closed", time.time(), b"", self._peer if by_peer else 1 - self._peer)

    def _put(self, kind: str, at: float, data: bytes = b"", by: int = 0) -> None:
        if self._connection is not None:
            self._log.put(_Item(self._connection, kind, at, data, by))

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
from inspector.formats.packets import Peer, Stream

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


class _Item(NamedTuple):
    of: _Recorded
    kind: str
    """``open``, ``received``, ``sent``, ``secret`` or ``closed``."""
    time: float
    data: bytes = b""
    by_peer: bool = False
    reset: bool = False


class _Recorded(NamedTuple):
    """A connection in the file."""

    ident: str
    interface: int
    stream: Stream
    peer: int
    """The side of the peer: the client (0) or the server (1)."""


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
            made += _blocks(item)
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


def _blocks(item: _Item) -> Iterator[bytes]:
    recorded, now = item.of, nanoseconds(item.time)
    comment = f"{wire.CONNECTION}{recorded.ident}"
    if item.kind == "secret":
        yield pcapng.secrets(item.data, comment)
        return
    stream, peer = recorded.stream, recorded.peer
    packets: Iterator[Packet]
    if item.kind == "open":
        packets = stream.open(now, now, comment)
    elif item.kind == "closed":
        packets = _end(stream, peer, item, now)
    else:
        packets = stream.send(peer if item.kind == "received" else 1 - peer, now, now, item.data)
    for packet in packets:
        yield pcapng.packet(recorded.interface, *packet)


def _end(stream: Stream, peer: int, item: _Item, now: int) -> Iterator[Packet]:
    first = peer if item.by_peer else 1 - peer
    yield from stream.close(first, now, reset=item.reset)
    yield from stream.close(1 - first, now)


class Tap:
    """Records one connection. What was received during a handshake waits until the secrets that it leads to are known:
    these must come first."""

    def __init__(self, log: Wire, ident: str, interface: int) -> None:
        self._log, self._ident, self._interface = log, ident, interface
        self._recorded: _Recorded | None = None
        self._held: list[tuple[float, bytes]] = []

    def open(self, peer: tuple[str, int], own: tuple[str, int], at: float) -> None:
        """Note that the connection is there, once."""
        if self._recorded is None:
            ends = (Peer(*peer), Peer(*own)) if self._interface == 0 else (Peer(*own), Peer(*peer))
            stream = Stream(self._ident, *ends)
            self._recorded = _Recorded(self._ident, self._interface, stream, self._interface)
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
        self._put("sent", time.time(), data)

    def release(self) -> None:
        """Note that what was received has been looked at."""
        held, self._held = self._held, []
        for at, data in held:
            self._put("received", at, data)

    def closed(self, *, by_peer: bool, reset: bool) -> None:
        """Note the end of the connection."""
        self.release()
        self._put("closed", time.time(), by_peer=by_peer, reset=reset)

    def _put(self, kind: str, at: float, data: bytes = b"", *, by_peer: bool = False, reset: bool = False) -> None:
        if self._recorded is not None:
            self._log.put(_Item(self._recorded, kind, at, data, by_peer, reset))

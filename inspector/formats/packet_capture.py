"""A capture as packets for Wireshark: the HTTP that was recorded, without TLS, over TCP that is made up around it.

What agents and the proxy sent is there as the records have it: masked, and with stand-ins for what is withheld.
"""

from __future__ import annotations

import tempfile
from array import array
from typing import IO, TYPE_CHECKING

from inspector.clocks import nanoseconds
from inspector.formats import pcapng
from inspector.formats.files import created
from inspector.formats.packets import Peer, Stream
from inspector.model import Connection, Exchange, Handshake

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from inspector.formats.lossless import CaptureItem
    from inspector.formats.packets import Packet
    from inspector.model import Closed, Leg, Message, Request, Response

COMMENT = (
    "HTTP as puppet-inspector recorded it between agents and its proxy, without TLS. TCP is made up around it: "
    "addresses, ports and times of agents are true; the address of the proxy is not known (0.0.0.0 or ::, port 8140)."
)
PROXY = Peer(None, 8140)
AGENTS, MASTERS = 0, 1
"""The interfaces, which Wireshark shows and filters by (``frame.interface_name``)."""


def write(items: Iterable[CaptureItem], path: Path) -> int:
    """Write the items of a capture to a new file; return the number of records in it. Raises InspectorError."""
    conversation = _Conversation()
    with created(path) as file, Sorted(path) as packets:
        for number, packet in conversation.packets(items):
            packets.add(number, packet)
        file.write(pcapng.section(COMMENT) + pcapng.interface("agents") + pcapng.interface("masters"))
        packets.write(file)
    return conversation.records


class Sorted:
    """Packets that wait on the disk, without a name, until they are written in the order of time."""

    def __init__(self, path: Path) -> None:
        self._file = tempfile.TemporaryFile(dir=path.parent)  # noqa: SIM115 - it lives as long as this object
        self._times, self._places = array("q"), array("Q", [0])

    def __enter__(self) -> Sorted:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def add(self, interface: int, packet: Packet) -> None:
        """Add a packet."""
        self.add_block(packet.time, pcapng.packet(interface, *packet))

    def add_block(self, time: int, block: bytes) -> None:
        """Add a packet as the block that it is in the file."""
        self._file.write(block)
        self._times.append(time)
        self._places.append(self._places[-1] + len(block))

    def write(self, file: IO[bytes]) -> None:
        """Write all of them; of the same time in the order in which they were added."""
        for at in sorted(range(len(self._times)), key=self._times.__getitem__):
            self._file.seek(self._places[at])
            file.write(self._file.read(self._places[at + 1] - self._places[at]))


class _Conversation:
    """Makes the packets of records."""

    def __init__(self) -> None:
        self.records = 0
        self._streams: dict[str, tuple[int, Stream]] = {}
        self._ends: dict[str, Closed] = {}

    def packets(self, items: Iterable[CaptureItem]) -> Iterator[tuple[int, Packet]]:
        """Yield packets with the interfaces that they are of."""
        for item in items:
            if isinstance(item, Connection):
                if item.closed:
                    self._ends[item.leg.id] = item.closed
            elif isinstance(item, Exchange | Handshake):
                leg = item.agent if isinstance(item, Exchange) else item.leg
                interface, stream = self._stream(leg)
                self.records += 1
                for packet in _exchange(stream, item) if isinstance(item, Exchange) else _handshake(stream, item):
                    yield interface, packet
        for ident, (interface, stream) in self._streams.items():
            if end := self._ends.get(ident):
                # Of the master's connection the proxy is the client.
                by = int((end.by == "peer") is (interface == MASTERS))
                for side in (by, 1 - by):
                    for packet in stream.close(side, nanoseconds(end.at)):
                        yield interface, packet

    def _stream(self, leg: Leg) -> tuple[int, Stream]:
        if leg.id not in self._streams:
            peer = Peer(leg.address, leg.port)
            if leg.side == "agent":
                self._streams[leg.id] = AGENTS, Stream(leg.id, peer, PROXY)
            else:
                self._streams[leg.id] = MASTERS, Stream(leg.id, Peer(None, None), peer)
        return self._streams[leg.id]


def _opening(stream: Stream, leg: Leg, first: float) -> Iterator[Packet]:
    if not stream.opened:
        connected = leg.connected if leg.connected is not None else first
        began = leg.connecting if leg.connecting is not None else connected
        yield from stream.open(nanoseconds(began), nanoseconds(connected), f"connection {leg.id}")


def _exchange(stream: Stream, exchange: Exchange) -> Iterator[Packet]:
    request, response = exchange.request, exchange.response
    yield from _opening(stream, exchange.agent, exchange.time)
    began = nanoseconds(exchange.time)
    ended = max(began, nanoseconds(request.ended or exchange.time))
    data, missing = framed(request_head(request), request)
    yield from stream.send(0, began, ended, data, missing, f"record {exchange.seq}")
    if response is not None:
        answered = max(ended, nanoseconds(response.started or request.ended or exchange.time))
        data, missing = framed(response_head(response), response, empty=request.method == "HEAD")
        last = max(answered, nanoseconds(response.ended or exchange.ended))
        yield from stream.send(1, answered, last, data, missing)
    if exchange.error:
        yield stream.note(1, nanoseconds(exchange.ended), f"record {exchange.seq}: {exchange.error}")


def _handshake(stream: Stream, record: Handshake) -> Iterator[Packet]:
    yield from _opening(stream, record.leg, record.time)
    alert = f" (alert {record.alert}, sent by {record.alert_by or 'nobody known'})" if record.alert else ""
    comment = f"record {record.seq}: the TLS handshake failed: {record.reason}{alert}"
    server = record.alert_by in ("proxy", None) if record.leg.side == "agent" else record.alert_by == "master"
    time = nanoseconds(record.time)
    yield stream.note(int(server), time, comment)


# -- HTTP -------------------------------------------------------------------------------------------------


def request_head(request: Request) -> bytes:
    """Return a request line and its headers."""
    return _head(f"{request.method} {request.target} {_version(request)}", request)


def response_head(response: Response) -> bytes:
    """Return a status line and its headers."""
    return _head(f"{_version(response)} {response.status} {response.reason}", response)


def _version(message: Message) -> str:
    return message.http_version if message.http_version.startswith("HTTP/1.") else "HTTP/1.1"


def _head(first: str, message: Message) -> bytes:
    lines = [first, *(f"{name}: {value}" for name, value in message.headers)]
    return "".join(f"{line}\r\n" for line in (*lines, "")).encode("latin-1", "replace")


def framed(head: bytes, message: Message, *, empty: bool = False) -> tuple[bytes, int]:
    """Return head and body as HTTP sends them, and how many bytes after that were not recorded."""
    if empty:
        return head, 0
    coding = message.header("transfer-encoding") or ""
    if coding.lower().rpartition(",")[2].strip() != "chunked":
        return head + message.body, message.lost
    if not message.size:
        return head + b"0\r\n\r\n", 0
    chunk = head + b"%x\r\n" % message.size + message.body
    return (chunk, message.lost) if message.lost else (chunk + b"\r\n0\r\n\r\n", 0)

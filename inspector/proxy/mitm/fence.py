"""Limits on what a peer may send before mitmproxy's parser reads a byte of it.

mitmproxy has none: a head without end fills the memory, and a header folded into a million lines takes it many seconds,
in which no agent is served. So the connections to agents and masters are examined here first. What exceeds a limit gets
one answer, and the connection is closed.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakValueDictionary

import h11
from h11._readers import ChunkedReader
from mitmproxy.connection import ConnectionState
from mitmproxy.net.http import http1
from mitmproxy.proxy import commands, events
from mitmproxy.proxy.layers.http import _http1
from mitmproxy.proxy.layers.http._base import ReceiveHttp
from mitmproxy.proxy.layers.http._events import ErrorCode, HttpEvent, ResponseEndOfMessage, ResponseProtocolError

from inspector.proxy.limits import BUSY, HEAD, INTERIM, LINE, LINES
from inspector.proxy.limits.admission import PATIENCE
from inspector.proxy.limits.pool import Ticket

if TYPE_CHECKING:
    from h11._receivebuffer import ReceiveBuffer
    from mitmproxy.proxy.context import Context
    from mitmproxy.proxy.layer import CommandGenerator
    from mitmproxy.proxy.layers.http import HttpStream

AHEAD = 256 * 2**10
"""Bytes of further requests that a peer may send before the current one is answered."""
TOO_LARGE, BAD, UNAVAILABLE = 431, 400, 503
LATER = b"\r\nRetry-After: 5\r\n"
"""Tells an agent for how many seconds it should wait. It then asks again instead of failing."""
LOOK = 0.05
"""Seconds between looks whether there is room for an exchange."""


class Head:
    """Examines a head as it arrives; each byte once."""

    def __init__(self) -> None:
        self._begin = self._examined = self._lines = 0
        self.complete = False

    def excess(self, data: bytearray) -> tuple[int, str] | None:
        """Return which limit the head at the beginning of the data exceeds, as an HTTP status and a reason."""
        self.complete = False
        # mitmproxy skips an empty line before a message; it takes only one each time that data arrives.
        blank = data[:1] == b"\n" or data[:2] == b"\r\n"
        while not blank and (at := data.find(b"\n", self._examined)) >= 0:
            line = bytes(data[self._begin : min(at, self._begin + 2)])
            self._begin = self._examined = at + 1
            if line in (b"", b"\r"):
                self.complete = True
                self._begin = self._examined = self._lines = 0
                return _too_large(at)
            self._lines += 1
            if self._lines > LINES:
                return TOO_LARGE, f"there are more than {LINES} headers"
            if self._lines > 1 and line[0] in b" \t":
                return BAD, "a header is folded into several lines"
        self._examined = 0 if blank else len(data)
        return _too_large(len(data))


def _too_large(size: int) -> tuple[int, str] | None:
    return (TOO_LARGE, f"the headers have more than {HEAD} bytes") if size > HEAD else None


class _Chunks(ChunkedReader):
    """Reads a body in chunks without its trailers, for which mitmproxy (12.2) raises an exception."""

    def __call__(self, buf: ReceiveBuffer) -> h11.Data | h11.EndOfMessage | None:
        event: h11.Data | h11.EndOfMessage | None = super().__call__(buf)
        return h11.EndOfMessage() if isinstance(event, h11.EndOfMessage) else event


class _Fenced(_http1.Http1Connection):
    """A connection of mitmproxy's with limits."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._head = Head()

    @property
    def _data(self) -> bytearray:
        data: bytearray = self.buf._data
        return data

    def read_headers(self, event: events.ConnectionEvent) -> CommandGenerator[None]:
        """Read a head if it is within the limits."""
        if isinstance(event, events.DataReceived):
            if excess := self._head.excess(self._data):
                yield from self.refuse(*excess)
                return
            if self._head.complete and (yield from self.postpone()):
                return
        yield from super().read_headers(event)

    def postpone(self) -> CommandGenerator[bool]:
        """Return whether a complete head is not read now."""
        raise NotImplementedError

    @property
    def body_reader(self) -> _http1.TBodyReader:
        return self._body_reader

    @body_reader.setter
    def body_reader(self, reader: _http1.TBodyReader) -> None:
        self._body_reader = _Chunks() if isinstance(reader, ChunkedReader) else reader

    def read_body(self, event: events.Event) -> CommandGenerator[None]:
        """Read a body; what is left to read is part of a line between chunks."""
        yield from super().read_body(event)
        if self.state == self.read_body and len(self.buf) > LINE:
            yield from self.refuse(BAD, f"a chunk's size takes more than {LINE} bytes")

    def wait(self, event: events.Event) -> CommandGenerator[None]:
        """Wait for an answer; a peer that sends without end meanwhile has left."""
        if isinstance(event, events.DataReceived) and len(self.buf) > AHEAD:
            yield from self.refuse(BAD, f"more than {AHEAD} bytes were sent before the answer")
        else:
            yield from super().wait(event)

    def refuse(self, status: int, reason: str) -> CommandGenerator[None]:
        """Answer, and close the connection."""
        reading, waiting = self.state == self.read_body, self.state == self.wait
        self.state = self.done
        self._data.clear()
        if isinstance(self, _http1.Http1Server) and not self.response:
            answer = _http1.make_error_response(status, reason)
            yield commands.SendData(self.conn, answer.replace(b"\r\n", LATER, 1) if status == UNAVAILABLE else answer)
        yield commands.CloseConnection(self.conn)
        if self.stream_id is not None and (reading or waiting or isinstance(self, _http1.Http1Client)):
            agent = isinstance(self, _http1.Http1Server)
            code = ErrorCode.CLIENT_DISCONNECTED if agent else ErrorCode.GENERIC_SERVER_ERROR
            yield ReceiveHttp(self.ReceiveProtocolError(self.stream_id, reason, code=code))


class FencedServer(_Fenced, _http1.Http1Server):
    """The connection of an agent."""

    open: ClassVar[WeakValueDictionary[str, FencedServer]] = WeakValueDictionary()
    """All of them, by the identifier of the agent's connection."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._since = time.monotonic()
        self.streams: dict[int, HttpStream] = {}
        """The exchanges of the connection."""
        self.open[context.client.id] = self
        self._ticket = Ticket.open.get(context.client.id)
        self._held = 0.0
        """Since when the exchange waits."""
        self.cut_off = False
        """Whether the end of the answer is not passed on: it is cut off on purpose."""

    def _handle_event(self, event: events.Event) -> CommandGenerator[None]:
        if isinstance(event, events.DataReceived):
            if self.state == self.read_body or not self.buf:
                self.resume()
            if self._ticket is not None and self.state != self.done and not self._ticket.add(len(event.data)):
                self._ticket.refuse(BUSY)
                yield from self.refuse(UNAVAILABLE, BUSY)
                return
        yield from super()._handle_event(event)

    def begin(self) -> bool:
        """Begin an exchange; return whether there is room for it."""
        return self._ticket is None or self._ticket.begin()

    def postpone(self) -> CommandGenerator[bool]:
        """Let the exchange wait if there is no room for it."""
        if self.begin():
            return False
        self._held, self.state = time.monotonic(), self.held
        yield commands.RequestWakeup(LOOK)
        return True

    def held(self, event: events.Event) -> CommandGenerator[None]:
        """Wait for room."""
        if isinstance(event, events.ConnectionClosed):
            self.state = self.done
            yield commands.CloseConnection(self.conn)
        elif self.begin():
            self.state = self.read_headers
            yield from self.read_headers(events.DataReceived(self.conn, b""))
        elif time.monotonic() - self._held > PATIENCE and self._ticket is not None:
            self._ticket.refuse(BUSY)
            yield from self.refuse(UNAVAILABLE, BUSY)
        elif isinstance(event, events.Wakeup):
            yield commands.RequestWakeup(LOOK)

    def mark_done(self, *, request: bool = False, response: bool = False) -> CommandGenerator[None]:
        """Go on to the next request: what was sent ahead of it counts from now on."""
        self.resume()
        if self._ticket is not None:
            if response:
                self._ticket.end()
            else:
                self._ticket.answering = True
        yield from super().mark_done(request=request, response=response)

    def resume(self) -> None:
        """Count the time from now on: until now the agent could not send, or was not read."""
        self._since = time.monotonic()

    def waits(self) -> bool:
        """Whether more of a body would only wait in memory."""
        if self.state == self.held:
            return True
        return self.state == self.read_body and any(stream._paused is not None for stream in self.streams.values())

    def send(self, event: HttpEvent) -> CommandGenerator[None]:
        """Pass an answer on. If the master breaks it off, so does the proxy: an answer of its own would be another."""
        stream = self.streams.get(event.stream_id)
        response = stream.flow.response if stream is not None else None
        if isinstance(event, ResponseProtocolError) and event.code == ErrorCode.GENERIC_SERVER_ERROR and response:
            if self.conn.state & ConnectionState.CAN_WRITE:
                if stream is not None and not self.response:
                    head = http1.assemble_response_head(response)  # type: ignore[no-untyped-call]
                    yield commands.SendData(self.conn, head + bytes(stream.response_body_buf))
                yield commands.CloseConnection(self.conn)
        elif self.cut_off and isinstance(event, ResponseEndOfMessage):
            yield commands.CloseConnection(self.conn)
        else:
            yield from super().send(event)

    def stalled(self, now: float) -> tuple[str, float] | None:
        """Return what the agent is in the middle of sending (``head``, ``body``), and for how many seconds: of a head
        since its first byte, of a body since its last one. None between requests."""
        if self.state == self.read_headers and self.buf:
            return "head", now - self._since
        if self.state == self.read_body:
            return "body", now - self._since
        return None


class FencedClient(_Fenced, _http1.Http1Client):
    """The connection to the master."""

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        self._interim = 0
        """Interim answers to the current request."""

    def postpone(self) -> CommandGenerator[bool]:
        """Leave out an interim answer: mitmproxy (12.2) would take it for the answer itself."""
        if not self._data.startswith(b"HTTP/1.") or self._data[8:10] != b" 1" or self._data[9:12] == b"101":
            self._interim = 0
            return False
        self._interim += 1
        if self._interim > INTERIM:
            yield from self.refuse(BAD, f"there are more than {INTERIM} interim answers")
        else:
            self.buf.maybe_extract_lines()
            if self.buf:
                yield from self.read_headers(events.DataReceived(self.conn, b""))
        return True

"""What mitmproxy's parsers read of a peer: messages that our own reader has read before.

mitmproxy (12.2) has no limits: a head without end fills its memory, a header folded into a million lines or a body in
chunks of one byte takes it many seconds, it takes an interim answer for the answer itself, and fails at trailers. An
addon may supply the TLS connection of either side (``tls_start_client``, ``tls_start_server``). Through ours mitmproxy
reads whole heads, and of bodies what has arrived, in as few chunks as possible. What the reader refuses is not passed
on, gets one answer, and is the last that is read of the connection.
"""

from __future__ import annotations

import functools
import time
from typing import TYPE_CHECKING, Any, ClassVar

from OpenSSL import SSL

from inspector.proxy.connect import head as connect
from inspector.proxy.engine import framing
from inspector.proxy.engine.framing import CHUNKED, Refused
from inspector.proxy.limits import BUSY, FRAMING, FULL, INTERIM, READ

if TYPE_CHECKING:
    from inspector.proxy.limits.pool import Ticket

AHEAD = 256 * 2**10
"""Bytes of further requests that an agent may send before the current one is answered."""
TLS = b"\x16"
"""How a TLS handshake begins."""
_LAST = b"0\r\n\r\n"


class Clear:
    """What an agent sends before TLS: nothing, unless it uses the proxy as its HTTP proxy."""

    __slots__ = ("_data", "over")

    def __init__(self) -> None:
        self._data = b""
        self.over = False
        """Whether TLS has begun."""

    def read(self, data: bytes) -> bytes:
        """Return what may be passed on of what has arrived: whole heads, and TLS. Raises Refused."""
        data, passed = self._data + data, b""
        while data and not self.over:
            self.over = data[:1] == TLS
            end = data.find(b"\r\n\r\n", 0, connect.LONGEST) + 4
            if self.over or end < 4:
                break
            passed, data = passed + data[:end], data[end:]
        if self.over:
            self._data = b""
            return passed + data
        if len(data) > connect.LONGEST:
            raise Refused(431, f"the head has more than {connect.LONGEST} bytes")
        self._data = data
        return passed


class Exchange:
    """What is under way on an agent's connection."""

    __slots__ = ("begun", "method", "reason", "streamed", "taken", "ticket", "under_way")

    def __init__(self, ticket: Ticket) -> None:
        self.ticket = ticket
        self.under_way = False
        """Whether a request has no complete answer yet."""
        self.method = b""
        """Of that request."""
        self.taken: int | None = None
        """Bytes of its body that were passed on; None: it is passed on when it is complete."""
        self.begun: list[bytes] = []
        """What came of its answer, as far as that is short and not passed on yet."""
        self.streamed = False
        """Whether the answer is passed on as it comes."""
        self.reason = ""
        """Why a peer was refused something, or the master could not be reached."""

    def begin(self, method: bytes) -> None:
        """The head of a request has arrived."""
        self.under_way, self.method, self.taken, self.begun, self.reason = True, method, None, [], ""
        self.streamed = False

    def stream(self) -> None:
        """The answer is passed on as it comes."""
        self.streamed, self.begun = True, []


class _Fenced:
    """A TLS connection, of which mitmproxy reads what it may."""

    __slots__ = ("_chunked", "_end", "_exchange", "_framing", "_reader", "_tls", "over", "passed")
    share: ClassVar[int]
    """How many times as long as its framing a body in chunks must be."""

    def __init__(self, tls: SSL.Connection, exchange: Exchange) -> None:
        self._tls: SSL.Connection | None = tls
        self._exchange = exchange
        self._reader = framing.Reader()
        self._end: SSL.Error | None = None
        """Why nothing more can be received, until more has arrived."""
        self._chunked = False
        self._framing = 0
        """Bytes of the current body's framing."""
        self.passed = 0
        """Bytes of the current body that may be read."""
        self.over = False
        """Whether nothing more is read: something was refused."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tls, name)

    def close(self) -> None:
        """Let go of OpenSSL's connection: mitmproxy's layers are freed late, as they refer to each other."""
        self._tls, self.over = None, True

    def sendall(self, data: bytes) -> None:
        """Send something to the peer, unless its connection has ended."""
        if self._tls is not None:
            self._tls.sendall(data)

    def bio_read(self, size: int) -> bytes:
        """Return what is to be sent to the peer. Raises SSL.WantReadError if that is nothing."""
        if self._tls is None:
            raise SSL.WantReadError
        data: bytes = self._tls.bio_read(size)
        return data

    def bio_write(self, data: bytes) -> int:
        """Add what arrived from the peer."""
        self._end = None
        return int(self._tls.bio_write(data)) if self._tls is not None else len(data)

    def recv(self, _size: int) -> bytes:
        """Return what may be read of what has arrived. Raises SSL.Error, as OpenSSL does if that is nothing."""
        if self.over or self._tls is None:
            raise SSL.ZeroReturnError
        try:
            while self._end is None:  # a peer may send a record for each byte
                self._receive(self._tls)
            passed = b"".join(self.messages())
        except Refused as refused:
            self.refuse(refused.status, refused.message)
            raise SSL.ZeroReturnError from None
        if passed:
            return passed
        raise type(self._end)(*self._end.args)

    def _receive(self, tls: SSL.Connection) -> None:
        try:
            data = tls.recv(READ)
        except SSL.Error as end:
            self._end = end.with_traceback(None)  # which refers to everything that is being done
        else:
            self.count(len(data))
            self._reader.feed(data)

    def count(self, size: int) -> None:
        """Count bytes that have arrived. Raises Refused."""

    def messages(self) -> list[bytes]:
        """Return what may be read. Raises Refused."""
        raise NotImplementedError

    def refuse(self, status: int, reason: str) -> None:
        """Read nothing more."""
        self.over = True
        self._exchange.reason = reason

    def begin_body(self, head: framing.Head) -> None:
        """A head was read."""
        self._chunked, self._framing, self.passed = head.length == CHUNKED, 0, 0

    def body(self) -> list[bytes]:
        """Return what has arrived of a body. Raises Refused."""
        before, pieces = self._reader.unread, []
        while not self._reader.complete:
            unread = self._reader.unread
            pieces.append(self._reader.body())
            if self._reader.unread == unread:
                break
        data = b"".join(pieces)
        self.passed += len(data)
        if not self._chunked:
            return [data] if data else []
        self._framing += before - self._reader.unread - len(data)
        if self._framing > FRAMING + self.passed // self.share:
            raise Refused(400, "a body comes in too many chunks")
        passed = [b"%x\r\n%b\r\n" % (len(data), data)] if data else []
        return [*passed, _LAST] if self._reader.complete else passed


class FencedAgent(_Fenced):
    """The TLS connection with an agent. Each request is read when the one before it is answered."""

    __slots__ = ("_answered", "left", "since")
    share = 8

    def __init__(self, tls: SSL.Connection, exchange: Exchange) -> None:
        super().__init__(tls, exchange)
        self.since = time.monotonic()
        """When the agent began to send a head, or sent the last piece of a body."""
        self.left: int | None = None
        """How many more pieces mitmproxy may send; None: there is no limit."""
        self._answered = False
        """Whether mitmproxy has begun to answer."""

    def sendall(self, data: bytes) -> None:
        """Send something to the agent, unless its answer is cut off."""
        if self._tls is None or self.left == 0:
            return
        if self.left is not None:
            self.left -= 1
        self._answered = True
        self._tls.sendall(data)

    def answer(self, data: bytes) -> None:
        """Answer in mitmproxy's place, for the last time."""
        if data and self._tls is not None and self.left is None and not self._answered:
            self._tls.sendall(data)
        self.left = 0

    def count(self, size: int) -> None:
        if not self._reader.complete or not self._reader.unread:
            self.since = time.monotonic()
        if not self._exchange.ticket.add(size):
            self._exchange.ticket.refuse(BUSY)
            raise Refused(503, BUSY)

    def messages(self) -> list[bytes]:
        passed: list[bytes] = []
        while True:
            if self._reader.complete:
                if self._exchange.under_way:
                    break
                head = self._reader.head(framing.request)
                if head is None:
                    break
                self.begin_body(head)
                self._answered = False
                self._exchange.begin(head.first[0])
                passed.append(head.assembled())
            passed += self.body()
            if not self._reader.complete:
                break
            self._exchange.ticket.answering = True
        if self._reader.complete and self._exchange.under_way and self._reader.unread > AHEAD:
            raise Refused(400, f"more than {AHEAD} bytes were sent before the answer")
        return passed

    def refuse(self, status: int, reason: str) -> None:
        super().refuse(status, reason)
        self.answer(framing.refusal(status, reason))

    @property
    def waiting(self) -> bool:
        """Whether a further request waits for the end of the current one."""
        return self._reader.complete and self._reader.unread > 0

    def stalled(self, now: float) -> tuple[str, float] | None:
        """Return what the agent is in the middle of sending (``head``, ``body``), and for how many seconds: of a head
        since its first byte, of a body since its last one. None between requests."""
        if self.over:
            return None
        if not self._reader.complete:
            return "body", now - self.since
        return ("head", now - self.since) if self._reader.unread and not self._exchange.under_way else None


class FencedMaster(_Fenced):
    """The TLS connection to the master."""

    __slots__ = ("_interim",)
    share = 1

    def __init__(self, tls: SSL.Connection, exchange: Exchange) -> None:
        super().__init__(tls, exchange)
        self._interim = 0
        """Interim answers to the current request."""

    def messages(self) -> list[bytes]:
        passed: list[bytes] = []
        while True:
            if self._reader.complete:
                head = self._reader.head(functools.partial(framing.response, method=self._exchange.method))
                if head is None:
                    break
                if head.first[1].startswith(b"1"):
                    self._interim += 1
                    if self._interim > INTERIM:
                        raise Refused(502, f"there are more than {INTERIM} interim answers")
                    continue
                self.begin_body(head)
                self._interim = 0
                passed.append(head.assembled())
            passed += self.body()
            if not self._reader.complete:
                break
        if not self._exchange.streamed and sum(map(len, self._exchange.begun)) <= FULL:
            self._exchange.begun += passed
        return passed

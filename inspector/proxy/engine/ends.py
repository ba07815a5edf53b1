"""The two ends of a link, each a TLS connection over TCP: what arrives is decrypted, what is sent is encrypted."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import time
import uuid
from collections import deque
from typing import TYPE_CHECKING, cast

from OpenSSL import SSL

from inspector.proxy import tls
from inspector.proxy.connect.alert import SentRecords
from inspector.proxy.limits import FULL, PIECE, READ, RECORDS
from inspector.proxy.limits.waiting_bytes import limit_system

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from inspector.proxy.limits.pool import Ticket
    from inspector.proxy.wire import Tap

RECORD = 2**14
"""Bytes of a TLS record."""
HEADER = 5
"""Bytes before each, of which the last two are its size."""
SEALED = RECORD + 512
"""The same when it is encrypted, at most."""
WRITTEN = 4
"""Records that are sent at a time."""
JAM = 2**19
"""Unsent bytes above which the peer itself is not read: each KeyUpdate of TLS is answered."""
CLOSING = 2.0
"""Seconds that the other side has to close a connection after us."""
STUCK = 60.0
"""Seconds after which a peer that takes nothing of what is unsent is given up."""
TCP_CLOSE = 7
"""The state of a connection that was reset (linux/tcp.h)."""
_buffer = memoryview(bytearray(READ))
"""What is read from any socket is decrypted or copied before another one is read."""


class End(asyncio.BufferedProtocol):
    """A TLS connection. What happens is reported to the methods that raise NotImplementedError here."""

    def __init__(self, tls: SSL.Connection | None, ticket: Ticket | None) -> None:
        """``ticket`` counts the agent's connection as long as that has limits."""
        self.id = str(uuid.uuid4())
        self.tls = tls
        self.ticket = ticket
        self.tap: Tap | None = None
        """What records the bytes of the connection, if that is wanted."""
        self.connected: float | None = None
        """When TCP connected."""
        self.secured: float | None = None
        """When the TLS handshake was finished."""
        self.transport: asyncio.Transport
        self.finished = False
        """Whether the peer sends nothing any more."""
        self.closed = False
        """Whether the connection is closed, or is being closed by us."""
        self.full = False
        """Whether too much is unsent."""
        self.farewell = False
        """Whether the peer has ended TLS before TCP."""
        self.paused = False
        """Whether it is not read for the time being."""
        self.slow = False
        """Whether what is read would wait: then it is little at a time."""
        self._work: deque[Callable[[], None]] = deque()
        """What is done with what arrived, when it is the connection's turn."""
        self._ending: tuple[str | None] | None = None
        """How the peer ended meanwhile."""
        self._lost: tuple[Exception | None, bytes] | None = None
        """How the connection was lost meanwhile, and what arrived last."""
        self._jammed = False
        """Whether so much is unsent that nothing is read that could make it more."""
        self._held: list[bytes] = []
        """What can only be sent later: there is no TLS yet, or the peer renegotiates."""
        self._held_size = 0
        self.sent_records: SentRecords | None = None
        """The records that were sent since the handshake, if somebody counts them."""
        self._unsent = (0, 0.0)
        """Bytes that were unsent, and since when they have not become fewer."""
        self._following: int | None = 0
        """Where the next TLS record begins in what arrives next; None: not known, as its head came in two parts."""
        self._drained = False
        """Whether OpenSSL has given out all that it was given."""

    # -- for subclasses -------------------------------------------------------------------------------

    def on_secured(self) -> None:
        """The handshake is finished."""
        raise NotImplementedError

    def on_refused(self, error: str) -> None:
        """The handshake has failed."""
        raise NotImplementedError

    def on_data(self, data: bytes) -> None:
        """Data arrived."""
        raise NotImplementedError

    def on_end(self, error: str | None) -> None:
        """The peer sends nothing any more; with an error, the connection is broken. Called once."""
        raise NotImplementedError

    def on_lost(self) -> None:
        """The connection is gone. Called once, after everything else."""
        raise NotImplementedError

    def on_room(self) -> None:
        """There is more or less unsent than before."""
        raise NotImplementedError

    def on_bug(self, error: Exception) -> None:
        """One of these methods has failed."""
        raise NotImplementedError

    # -- asyncio ------------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.transport.set_write_buffer_limits(FULL)
        self.connected = time.time()
        limit_system(self.socket)

    @property
    def socket(self) -> socket.socket:
        found: socket.socket = self.transport.get_extra_info("socket")
        return found

    @property
    def peer(self) -> tuple[str, int]:
        """The peer's address and port."""
        address, port, *_ = self.transport.get_extra_info("peername") or ("", 0)
        return str(address), int(port)

    @property
    def blocked(self) -> bool:
        """Whether so much is unsent that the other end is not read."""
        return self.full or self._held_size > FULL

    @property
    def unsent(self) -> int:
        """Bytes that the peer has not taken."""
        return self._held_size + (self.transport.get_write_buffer_size() if self.connected is not None else 0)

    @property
    def _at_once(self) -> bool:
        """Whether what arrives need not wait for its turn."""
        ticket = self.ticket
        return ticket is None or (ticket.verified and not self._work and ticket.limits.turns.allows(ticket.payer))

    def get_buffer(self, _sizehint: int) -> memoryview:
        much = self.ticket is not None and self._at_once and not self._many and not self.slow
        return _buffer if much else _buffer[:PIECE]

    @property
    def _many(self) -> bool:
        return self.ticket is not None and self.ticket.limits.bytes.many

    def buffer_updated(self, nbytes: int) -> None:
        self.arrived(_buffer[:nbytes])

    def arrived(self, received: memoryview) -> None:
        """Take what arrived, now or when it is its turn."""
        if self._at_once:
            began = time.thread_time()
            self.guard(lambda: self.take(received))
            if self.ticket is not None:
                self.ticket.limits.turns.spend(self.ticket.payer, time.thread_time() - began)
        else:
            data = bytes(received)
            self.postpone(lambda: self.take(data))

    def postpone(self, work: Callable[[], None]) -> None:
        """Do some work when it is the connection's turn; until then it is not read. Without a ticket, do it at once."""
        ticket = self.ticket
        if ticket is None:
            work()
            return
        self._work.append(work)
        if len(self._work) == 1:
            ticket.await_turn()
            self._regulate()
            self._wait_for_turn(ticket)

    def _wait_for_turn(self, ticket: Ticket) -> None:
        if ticket.verified:
            ticket.limits.turns.add(lambda: self._take_turn(ticket), ticket.payer)
        else:
            ticket.limits.turns.add(lambda: self._take_turn(ticket))

    def _take_turn(self, ticket: Ticket) -> None:
        if self._work:
            self.guard(self._work[0])  # which may add to it
            self._work.popleft()
        if self._work and not self.closed:
            self._wait_for_turn(ticket)
            return
        self._work.clear()
        ticket.take_turn()
        self._regulate()
        if self._ending:
            ending, self._ending = self._ending, None
            self.guard(lambda: self._end(*ending))
        if self._lost:
            self._lose(*self._lost)

    def take(self, data: bytes | memoryview) -> None:
        """Take what arrived."""
        if self.closed or self.tls is None:
            return
        if self.tap:
            data = bytes(data)
            self.open_tap()
            self.tap.received(data)
        records = self._count(data)
        if self.secured is not None:
            self._receive(data, records)
        else:
            self.tls.bio_write(bytes(data))
            if self.shake_hands():
                self._receive(b"")
        if self.tap:
            self.tap.release()

    def open_tap(self) -> None:
        """Begin to record the bytes of the connection, if that is wanted."""
        if self.tap and not self.tap.opened and self.connected is not None:
            address, port, *_ = self.transport.get_extra_info("sockname") or ("", 0)
            self.tap.open(self.peer, (str(address), int(port)), self.connected)

    def eof_received(self) -> bool:
        self.guard(lambda: self._end(None))
        return not self.closed  # what is under way is still sent

    def connection_lost(self, exc: Exception | None) -> None:
        rest = self._unread() if exc and not self.finished and not self.closed else b""
        if self._work and not self.closed:
            self._lost = exc, rest  # first comes what arrived before
        else:
            self._lose(exc, rest)

    def _unread(self) -> bytes:
        """Read what arrived before the connection was reset: asyncio does not, once it can't send any more."""
        with contextlib.suppress(OSError):
            return os.read(self.socket.fileno(), len(self.get_buffer(0)))
        return b""

    def _lose(self, exc: Exception | None, rest: bytes) -> None:
        """Take what came last, and end: the connection is gone."""
        if rest:
            self.guard(lambda: self.take(rest))
            while self._work:
                self.guard(self._work.popleft())
        if self.tap:
            self.tap.closed(by_peer=self.finished or not self.closed, reset=exc is not None)
        self.guard(lambda: self._end("the connection was reset" if exc else None))
        self.closed = True
        self.guard(self.on_lost)  # also after a bug of ours in the end: else the link would wait for it for ever
        # It refers to its link and the link to it: Python's garbage collector would free both late, as it does not know
        # that these small objects use fifty kilobytes of OpenSSL's.
        self.tls = None

    def pause_writing(self) -> None:
        self.full = True
        self.guard(self.on_room)

    def resume_writing(self) -> None:
        self.full = self._jammed = False
        self._regulate()
        self.guard(self.on_room)

    def guard(self, act: Callable[[], object]) -> None:
        """Call something that must concern no other connection, whatever happens."""
        try:
            act()
        except Exception as error:  # noqa: BLE001
            self.on_bug(error)

    # -- TLS ----------------------------------------------------------------------------------------

    def shake_hands(self) -> bool:
        """Begin the handshake, or go on with it; return whether it is finished."""
        assert self.tls is not None  # noqa: S101 - it was set before
        try:
            self.tls.do_handshake()
        except SSL.WantReadError:
            self._flush()
            return False
        except SSL.Error as error:
            self._flush()  # the alert
            self.finished = True
            self.on_refused(tls.words(error))
            self.close()
            return False
        if self.sent_records is not None:
            self.sent_records = SentRecords()
        self._flush()
        self.secured = time.time()
        self._release()
        self.on_secured()
        return not self.closed

    def _count(self, arrived: bytes | memoryview) -> int:
        """Return of how many TLS records what arrived consists; 0 if it has a part of one, or if that is not known."""
        if self._following is None:
            return 0
        at, records, size = self._following, 0, len(arrived)
        while at + HEADER <= size and records < RECORDS:
            at += HEADER + (arrived[at + 3] << 8 | arrived[at + 4])
            records += 1
        whole = at == size and self._following == 0
        self._following = at - size if at >= size else None
        return records if whole else 0

    def _receive(self, arrived: bytes | memoryview, records: int = 0) -> None:
        """Decrypt what arrived; of many records some. ``records``: it consists of so many."""
        assert self.tls is not None  # noqa: S101 - there was a handshake
        pieces: list[bytes] = []
        at, ended, error = 0, False, None
        if self._drained and arrived:
            self.tls.bio_write(bytes(arrived[:SEALED]))
            at = SEALED
        while not ended and len(pieces) < RECORDS:
            try:
                pieces.append(self.tls.recv(RECORD))
            except SSL.WantReadError:
                if at >= len(arrived):
                    break
                self.tls.bio_write(bytes(arrived[at : at + SEALED]))
                at += SEALED
            except SSL.ZeroReturnError:
                ended = True
            except SSL.Error as raised:
                ended, error = True, tls.words(raised)
            else:
                # Each was data: OpenSSL has nothing left, and nothing to answer. To ask it costs as much as to decrypt.
                if len(pieces) == records:
                    break
        only_data = len(pieces) == records > 0
        self._drained = only_data or len(pieces) < RECORDS
        self.farewell = ended and error is None
        if pieces:
            self.on_data(pieces[0] if len(pieces) == 1 else b"".join(pieces))
        if len(pieces) >= RECORDS and not ended:
            rest = bytes(arrived[at:])
            self.postpone(lambda: self._receive_more(rest))
        if not self.closed:
            self._release()
            if not only_data:
                self._flush()  # answers of TLS itself
        if ended:
            self._end(error)

    def _receive_more(self, rest: bytes) -> None:
        if not self.closed and self.tls is not None:
            self._receive(rest)

    def _end(self, error: str | None) -> None:
        if self.finished or self.closed:
            return
        if self._work:  # first comes what arrived before
            self._ending = (error,)
            return
        self.finished = True
        if self.secured is not None:
            self.on_end(error)
            return
        if self.tls is not None:
            self.on_refused(error or "")
        self.close()

    def send(self, data: bytes) -> None:
        """Send data, now or as soon as that is possible."""
        if self.closed or not data:
            return
        if self.secured is None or self._held:
            self._hold(data)
        else:
            self._encrypt(data)

    def _hold(self, data: bytes) -> None:
        self._held.append(data)
        self._held_size += len(data)

    def _release(self) -> None:
        """Send what could not be sent before."""
        held, self._held, self._held_size = b"".join(self._held), [], 0
        if held:
            self._encrypt(held)
            self.on_room()

    def _encrypt(self, data: bytes) -> None:
        assert self.tls is not None  # noqa: S101 - there was a handshake
        at, encrypted = 0, []
        try:
            while at < len(data):  # OpenSSL takes a record at a time
                at += self.tls.send(data[at : at + RECORD])
                encrypted += self._encrypted()
        except SSL.WantReadError:
            self._hold(data[at:])
            encrypted += self._encrypted()
        self._write(encrypted)

    def _encrypted(self) -> list[bytes]:
        """Take what is encrypted from OpenSSL."""
        assert self.tls is not None  # noqa: S101 - there is TLS
        pieces: list[bytes] = []
        try:
            while not pieces or len(pieces[-1]) == SEALED:
                pieces.append(self.tls.bio_read(SEALED))
        except SSL.WantReadError:
            pass
        return pieces

    def _flush(self) -> None:
        """Send what is encrypted."""
        self._write(self._encrypted())

    def _write(self, pieces: Sequence[bytes]) -> None:
        """Send these pieces."""
        # As long as a part of what was written is not sent, all of it stays in memory.
        for at in range(0, len(pieces), WRITTEN):
            data = b"".join(pieces[at : at + WRITTEN])
            if self.sent_records is not None:
                self.sent_records.add(data)
            if not self.transport.is_closing():
                if self.tap:
                    self.open_tap()
                    self.tap.sent(data)
                self.transport.write(data)
        if self.full and not self._jammed and self.transport.get_write_buffer_size() > JAM:
            self._jammed = True
            self._regulate()

    # -- flow and end -------------------------------------------------------------------------------

    def pause(self, *, paused: bool) -> None:
        """Read nothing from now on, or read again."""
        if paused != self.paused and not self.closed and self.connected is not None:
            self.paused = paused
            self._regulate()

    def _regulate(self) -> None:
        if self.transport.is_closing():
            return
        if self.paused or self._work or self._jammed:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def close(self) -> None:
        """Close the connection once everything is sent."""
        if self.closed:
            return
        self.closed = True
        if self.transport.is_closing():
            return
        self.paused = False
        self._regulate()
        if self.secured is not None and self.tls is not None:
            with contextlib.suppress(SSL.Error):
                self.tls.shutdown()
            self._flush()
        if not self.finished:
            # To close while something is unread would reset the connection, and what was sent would be lost.
            with contextlib.suppress(OSError):  # the peer has reset the connection meanwhile
                self.transport.write_eof()
        self._close_later(0.0 if self.finished else CLOSING)

    def break_off(self) -> None:
        """Close the connection once everything is sent, without TLS's farewell: the message is incomplete."""
        if not self.closed:
            self.closed = True
            self._close_later(0.0)

    def _close_later(self, delay: float) -> None:
        """Close the connection after some seconds, once everything is sent; at once if nothing is taken any more."""
        if delay:
            asyncio.get_running_loop().call_later(delay, self._close_later, 0.0)
        elif self.stuck(time.monotonic()) > STUCK:
            self.transport.abort()
        elif self.transport.get_write_buffer_size():
            asyncio.get_running_loop().call_later(CLOSING, self._close_later, 0.0)
        else:
            self.transport.close()

    def stuck(self, now: float) -> float:
        """Return for how many seconds the peer has taken nothing of what is unsent, counted from an earlier call."""
        size, since = self._unsent
        left = self.transport.get_write_buffer_size() if self.connected is not None else 0
        if not left or left < size or not size:
            since = now
        self._unsent = left, since
        return now - since

    @property
    def broken(self) -> bool:
        """Whether the connection was reset, even if it is not read."""
        if self.connected is None or self.transport.is_closing():
            return self.closed
        return self.socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 1)[0] == TCP_CLOSE

    def abort(self) -> None:
        """Close the connection at once."""
        self.closed = True
        if self.connected is not None:
            self.transport.abort()

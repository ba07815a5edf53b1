"""The two ends of a link: the connection from the agent, and the one to the master."""

from __future__ import annotations

import asyncio
import fcntl
import os
import struct
import termios
import time
from typing import TYPE_CHECKING, Protocol

from OpenSSL.crypto import FILETYPE_ASN1, dump_certificate

from inspector.model import Leg
from inspector.proxy.connect import alert, head
from inspector.proxy.engine import proxy_protocol
from inspector.proxy.engine.ends import End
from inspector.proxy.engine.framing import Reader
from inspector.text import address

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from OpenSSL import SSL

    from inspector.proxy.connection_state import MasterConnection
    from inspector.proxy.limits.pool import Ticket

TLS_HANDSHAKE = 0x16
"""The first byte of a TLS connection (RFC 8446, 5.1)."""


class Events(Protocol):
    """What happens at the two ends."""

    def agent_connected(self) -> None:
        """TCP is connected."""

    def agent_located(self) -> None:
        """A balancer has said where the agent is."""

    def agent_misled(self, reason: str) -> None:
        """A balancer has not said where the agent is."""

    def agent_asks(self, server: tuple[str, int]) -> None:
        """The agent asks for a connection with a server, as of an HTTP proxy."""

    def agent_strays(self, reason: str) -> None:
        """What should ask for a connection asks for none."""

    def meet_agent(self) -> None:
        """The first bytes of TLS have come."""

    def agent_sent_plain(self, data: bytes) -> None:
        """The first bytes are not TLS."""

    def agent_secured(self) -> None:
        """The handshake is finished."""

    def agent_refused(self, error: str) -> None:
        """The handshake has failed."""

    def agent_sent(self, data: bytes) -> None:
        """Data arrived."""

    def agent_ended(self, error: str | None) -> None:
        """The agent sends nothing any more; with an error, its connection is broken."""

    def agent_lost(self) -> None:
        """The connection is gone."""

    def master_unreachable(self, master: MasterEnd, reason: str) -> None:
        """There is no connection."""

    def master_refused(self, master: MasterEnd, error: str) -> None:
        """The handshake has failed."""

    def master_sent(self, master: MasterEnd, data: bytes) -> None:
        """Data arrived."""

    def master_ended(self, master: MasterEnd, error: str | None) -> None:
        """The master sends nothing any more; with an error, its connection is broken."""

    def master_lost(self, master: MasterEnd) -> None:
        """The connection is gone."""

    def room(self) -> None:
        """An end has more or less unsent data than before."""

    def failed(self, error: Exception) -> None:
        """A bug of ours."""


class AgentEnd(End):
    """The connection from the agent."""

    def __init__(self, link: Events) -> None:
        super().__init__(None, None)
        self._link = link
        self.balanced = False
        """Whether a balancer will say where the agent is, before anything else."""
        self._origin: tuple[str, int] | None = None
        """The agent's address and port, as the balancer stated them."""
        self._secret = b""
        self.asking = False
        """Whether the agent asks for a connection with a server first, as of an HTTP proxy."""
        self.early = b""
        """What arrived before the agent was admitted."""
        self.header = b""
        """The balancer's header of the PROXY protocol."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.guard(self._link.agent_connected)
        if self.balanced and self.early:  # another worker has read it
            self.guard(lambda: self._read_origin(b""))

    @property
    def peer(self) -> tuple[str, int]:
        return self._origin or super().peer

    def _read_origin(self, data: bytes) -> None:
        """Read where the agent is, at the beginning of what a balancer sends."""
        self.early += data
        try:
            header = proxy_protocol.read(self.early)
        except proxy_protocol.Unreadable as error:
            self._link.agent_misled(error.message)
            return
        if header is not None:
            self.balanced, self._origin = False, header.source
            self.header, self.early = self.early[: header.size], self.early[header.size :]
            self._link.agent_located()

    def _read_request(self, data: bytes) -> None:
        """Read which server the agent wants to reach."""
        self.early += data
        try:
            request = head.read(self.early)
        except head.Unreadable as error:
            self._link.agent_strays(error.message)
            return
        if request is not None:
            self.asking, self.early = False, self.early[request.size :]
            self._link.agent_asks(request.server)

    def answer(self, data: bytes) -> None:
        """Send something before TLS."""
        if not self.transport.is_closing():
            self.transport.write(data)

    def on_secret(self, line: bytes) -> None:
        """Take a secret of the session, a line of a key log."""
        if line.startswith(alert.SECRET):
            self._secret = line

    def send_alert(self, code: int) -> bool:
        """Send a fatal alert, the last that is sent; return whether that is possible."""
        if self.sent_records is None or self.tls is None or self.closed:
            return False
        record = alert.fatal(code, self._secret, self.tls.get_cipher_name() or "", self.sent_records.number)
        if record is None:
            return False
        self.answer(record)
        self.break_off()
        return True

    def take_early(self) -> None:
        """Take what arrived before the agent was admitted."""
        early, self.early = self.early, b""
        if early:
            self.arrived(memoryview(early))

    def take(self, data: bytes | memoryview) -> None:
        if self.balanced:
            self._read_origin(bytes(data))
            return
        if self.asking:
            self._read_request(bytes(data))
            return
        if self.tls is None and not self.closed:
            if data[0] != TLS_HANDSHAKE and bytes(data[:1]).isalpha():
                if self.tap:
                    self.open_tap()
                    self.tap.received(bytes(data))
                self._link.agent_sent_plain(bytes(data))
                return
            self._link.meet_agent()
        super().take(data)

    def on_secured(self) -> None:
        self._link.agent_secured()

    def on_refused(self, error: str) -> None:
        self._link.agent_refused(error)

    def on_data(self, data: bytes) -> None:
        self._link.agent_sent(data)

    def on_end(self, error: str | None) -> None:
        self._link.agent_ended(error)

    def on_lost(self) -> None:
        self._link.agent_lost()

    def on_room(self) -> None:
        self._link.room()

    def on_bug(self, error: Exception) -> None:
        self._link.failed(error)

    @property
    def sni(self) -> str | None:
        """The name that the agent sent as SNI."""
        name = self.tls.get_servername() if self.tls else None
        return name.decode("ascii", "replace") if name else None

    def facts(self) -> Leg:
        """Return what is known of the connection."""
        address, port = self.peer
        tls = self.tls if self.secured else None
        return Leg(
            id=self.id, side="agent", address=address, port=port, connected=self.connected, secured=self.secured,
            tls_version=tls.get_protocol_version_name() if tls else None,
            cipher=tls.get_cipher_name() if tls else None, sni=self.sni,
        )  # fmt: skip

    @property
    def unacknowledged(self) -> int | None:
        """How many bytes that were sent the agent has not acknowledged yet; None if the connection was reset."""
        if self.transport.is_closing() or self.broken:
            return None
        (sent,) = struct.unpack("i", fcntl.ioctl(self.socket.fileno(), termios.TIOCOUTQ, bytes(4)))
        return int(sent) + self.transport.get_write_buffer_size()


class MasterEnd(End):
    """The connection to the master."""

    def __init__(self, link: Events, tls: SSL.Connection, state: MasterConnection, ticket: Ticket | None) -> None:
        super().__init__(tls, ticket)
        self._link = link
        self.state = state
        self.answers = Reader()
        self.used = False
        """Whether it had an exchange before."""
        self._address = ("", 0)
        self._began: float | None = None
        self._task: asyncio.Task[None] | None = None

    def open(self, host: str, port: int, dial: Callable[[tuple[str, int]], socket.socket] | None = None) -> None:
        """Begin to connect, with ``dial`` if that is given."""
        self._address = host, port
        self._began = time.time()
        self._task = asyncio.get_running_loop().create_task(self._open(host, port, dial))

    async def _open(self, host: str, port: int, dial: Callable[[tuple[str, int]], socket.socket] | None) -> None:
        loop = asyncio.get_running_loop()
        try:
            if dial is None:
                await loop.create_connection(lambda: self, host, port)
            else:
                connection = await asyncio.to_thread(dial, (host, port))
                connection.settimeout(0)
                await loop.create_connection(lambda: self, sock=connection)
        except OSError as error:
            # asyncio's own text says only that the call failed.
            number = error.errno or 0
            reason = os.strerror(number) if number > 0 else error.strerror or str(error)
            self._link.master_unreachable(self, f"cannot connect to the master {address(host, port)}: {reason}")
        except Exception as error:  # noqa: BLE001 - it must concern no other connection
            self._link.failed(error)

    def drop(self) -> None:
        """End the connection, or the attempt to connect."""
        if self.connected is not None:
            self.close()
        elif self._task is not None:
            self.closed = True  # TCP may connect nevertheless; that it is then closed means nothing
            self._task.cancel()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        if not self.closed:
            self.guard(self.shake_hands)

    def on_secured(self) -> None:
        pass  # what was held is sent

    def on_refused(self, error: str) -> None:
        self._link.master_refused(self, error)

    def on_data(self, data: bytes) -> None:
        self._link.master_sent(self, data)

    def on_end(self, error: str | None) -> None:
        self._link.master_ended(self, error)

    def on_lost(self) -> None:
        self._link.master_lost(self)

    def on_room(self) -> None:
        self._link.room()

    def on_bug(self, error: Exception) -> None:
        self._link.failed(error)

    def leg(self) -> Leg:
        """Return this connection as a record."""
        return self.state.leg(self._facts)

    def _facts(self) -> Leg:
        address, port = self.peer if self.connected is not None else self._address
        tls = self.tls if self.secured else None
        presented = tls.get_peer_cert_chain() if tls else None
        return Leg(
            id=self.id, side="master", address=address, port=port, connecting=self._began, connected=self.connected,
            secured=self.secured, tls_version=tls.get_protocol_version_name() if tls else None,
            cipher=tls.get_cipher_name() if tls else None, sni=self.state.sni,
            peer_chain=tuple(dump_certificate(FILETYPE_ASN1, certificate) for certificate in presented or ()),
        )  # fmt: skip

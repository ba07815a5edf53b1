"""Send one GET over TLS to an untrusted server: limited in time and size, and with any server certificate accepted.

The caller verifies the certificate, and so finds all of its problems: an agent stops at the first.
"""

from __future__ import annotations

import http.client
import io
import select
import shlex
import socket
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.serialization import Encoding
from OpenSSL import SSL

from inspector import regex
from inspector.protocol.alerts import ALERTS
from inspector.proxy import tls
from inspector.rules.fixes import advice, on_master, on_node
from inspector.text import clean, size

if TYPE_CHECKING:
    from inspector.proxy.identity import Credentials
    from inspector.rules.fixes import Fix

LIMIT = 64 * 1024 * 1024
"""Bytes of one answer."""

_LENGTH = regex.compile(rb"\r\ncontent-length:[ \t]*(\d{1,18})[ \t]*\r\n", regex.IGNORECASE)
_SERVER = regex.compile(rb"\r\nserver:[ \t]*([!-~]{1,60})", regex.IGNORECASE)


class Unreachable(Exception):
    """The server gave no answer: ``title`` is short, the exception's text the detail, ``fix`` what to do."""

    def __init__(self, title: str, detail: str, fix: Fix = ()) -> None:
        super().__init__(detail)
        self.title, self.fix = title, fix


@dataclass(frozen=True, slots=True)
class Target:
    """The server to connect to."""

    host: str
    port: int
    name: str
    """The server's name in SNI and in ``Host``."""
    timeout: float
    """Seconds for one connection with its request."""


@dataclass(frozen=True, slots=True)
class HttpResponse:
    """An HTTP response."""

    status: int
    headers: dict[str, str]
    """Values by lower-case name."""
    body: bytes


@dataclass(frozen=True, slots=True)
class Session:
    """The result of one TLS connection."""

    protocol: str
    cipher: str
    chain: tuple[bytes, ...]
    """The presented certificates as DER, the server's own first."""
    answer: HttpResponse | None = None
    problem: Unreachable | None = None
    """Why there is no answer although the handshake succeeded."""


def open_session(
    target: Target, path: str | None, credentials: Credentials | None = None, *, only: int | None = None
) -> Session:
    """Connect, make the TLS handshake and, with a path, send one GET.

    ``credentials`` are presented if the server asks for a certificate. ``only`` limits the connection to one protocol
    version.
    Raises Unreachable if there is no handshake.
    """
    deadline = time.monotonic() + target.timeout
    with _connected(target, deadline) as raw:
        line = _TlsStream(raw, _client(target, credentials, only), deadline)
        line.handshake()
        chain = line.tls.get_peer_cert_chain(as_cryptography=True) or []
        session = Session(
            line.tls.get_protocol_version_name(),
            line.tls.get_cipher_name() or "",
            tuple(certificate.public_bytes(Encoding.DER) for certificate in chain),
        )
        if path is None:
            return session
        accept = "s" if path.startswith("/production/") else "text/plain"
        request = (
            f"GET {path} HTTP/1.1\r\nHost: {target.name}:{target.port}\r\nAccept: {accept}\r\n"
            "User-Agent: puppet-inspector\r\nConnection: close\r\n\r\n"
        )
        try:
            return replace(session, answer=_answer(line.ask(request.encode("latin-1", "replace"))))
        except Unreachable as error:
            return replace(session, problem=error)


def _connected(target: Target, deadline: float) -> socket.socket:
    where = f"{target.host}:{target.port}"
    try:
        addresses = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "not a host name"
        look = on_node("look the name up", f"getent hosts {shlex.quote(target.host)}")
        raise Unreachable("unknown host", f"{target.host}: {reason}", (look,)) from error
    failed: OSError | None = None
    for family, kind, protocol, _, address in addresses:
        raw = socket.socket(family, kind, protocol)
        try:
            raw.settimeout(max(0.1, deadline - time.monotonic()))
            raw.connect(address)
        except OSError as error:
            raw.close()
            failed = error
            continue
        raw.settimeout(0)
        return raw
    if isinstance(failed, TimeoutError):
        detail = f"{where} did not answer within {target.timeout:g} s"
        fix = (advice("check for a firewall or a wrong route between this host and the master"),)
        raise Unreachable("no connection", detail, fix) from failed
    reason = f"{where}: {failed.strerror if failed else 'no address'}"
    if isinstance(failed, ConnectionRefusedError):
        reason = f"nothing listens there: {failed.strerror}"
    listening = on_master("see whether a process listens", f"ss -ltn 'sport = :{target.port}'")
    raise Unreachable("no connection", reason, (listening,)) from failed


def _client(target: Target, credentials: Credentials | None, only: int | None) -> SSL.Connection:
    """Return the client end of a TLS connection, which accepts any server certificate."""
    context = SSL.Context(SSL.TLS_CLIENT_METHOD)
    context.set_cipher_list(tls.CIPHERS)
    context.set_min_proto_version(only or SSL.TLS1_VERSION)
    if only:
        context.set_max_proto_version(only)
    if credentials:
        context.use_certificate(credentials.chain[0])
        context.use_privatekey(credentials.key)
        for certificate in credentials.chain[1:]:
            context.add_extra_chain_cert(certificate)
    session = SSL.Connection(context, None)
    if not _is_address(target.name):
        try:
            session.set_tlsext_host_name(target.name.encode("idna"))
        except UnicodeError as error:
            raise Unreachable("unknown host", f"{target.name!r} is not a host name") from error
    session.set_connect_state()
    return session


def _is_address(name: str) -> bool:
    return ":" in name or name.replace(".", "").isdigit()


class _TlsStream:
    """A TLS connection over a socket that never blocks beyond the deadline (seconds of the monotonic clock)."""

    def __init__(self, raw: socket.socket, session: SSL.Connection, deadline: float) -> None:
        self.raw, self.tls, self.deadline = raw, session, deadline
        self.first = b""
        """The peer's first bytes, before decryption."""
        self.alert = ""
        self.secured = False
        session.set_info_callback(self._listen)

    def handshake(self) -> None:
        while True:
            try:
                self.tls.do_handshake()
                self._flush()
                self.secured = True
                return
            except SSL.WantReadError:
                self._flush()
                if not self._receive():
                    raise self._ended("closed the connection during the TLS handshake") from None
            except SSL.Error as error:
                raise self._ended(_reason(error)) from error

    def ask(self, request: bytes) -> bytes:
        """Send a request, and receive until the answer is complete or the peer closes.

        Raises Unreachable, also if nothing was received.
        """
        self.tls.sendall(request)
        self._flush()
        received = bytearray()
        while len(received) <= LIMIT:
            try:
                received += self.tls.recv(65536)
                if _complete(received):
                    break
            except SSL.WantReadError:
                if not self._receive():
                    break
            except SSL.ZeroReturnError:
                break
            except SSL.Error as error:
                if not received:
                    raise self._ended(_reason(error)) from error
                break
        if len(received) > LIMIT:
            raise Unreachable("answer too large", f"the answer is larger than {size(LIMIT)}")
        if not received:
            raise self._ended("closed the connection without an answer")
        return bytes(received)

    def _listen(self, _connection: SSL.Connection, where: int, code: int) -> None:
        if where & SSL.SSL_CB_ALERT and where & SSL.SSL_CB_READ and code & 0xFF:
            self.alert = ALERTS.get(code & 0xFF, f"alert {code & 0xFF}")

    def _ended(self, reason: str) -> Unreachable:
        if self.first.startswith(b"HTTP/") or b"<html" in self.first[:256].lower():
            server = _SERVER.search(self.first)
            return Unreachable(
                "plain HTTP",
                f"the server{f' ({clean(server[1].decode("latin-1"))})' if server else ''} answered the TLS handshake "
                "with HTTP",
                (advice("check what listens at this address, a load balancer without TLS? Agents use TLS only"),),
            )
        if self.alert:
            return Unreachable("TLS refused", f"the server sent the alert {self.alert}")
        line = self.first[:60].partition(b"\n")[0].rstrip()
        greets = not self.secured and line[:1].isalnum() and line.isascii()  # a record of TLS begins otherwise
        sent = f"; it sent {clean(line.decode())!r}" if greets else ""
        return Unreachable(
            "no answer" if self.secured else "no TLS",
            (f"the server {reason}" if reason.startswith("closed") else reason) + sent,
            (advice("check what listens at this address, and the master's log"),),
        )

    def _flush(self) -> None:
        while True:
            try:
                data = self.tls.bio_read(65536)
            except SSL.WantReadError:
                return
            while data:
                self._wait(write=True)
                try:
                    data = data[self.raw.send(data) :]
                except BlockingIOError:
                    continue
                except OSError as error:
                    # The server may have sent the reason before it closed.
                    if not self._receive():
                        raise self._ended(f"closed the connection ({error.strerror})") from error

    def _receive(self) -> bool:
        """Receive what the peer has sent; return False if it has closed."""
        self._wait(write=False)
        try:
            data = self.raw.recv(65536)
        except BlockingIOError:
            return True
        except OSError:
            return False
        self.first = (self.first + data)[:512] if len(self.first) < 512 else self.first
        if data:
            self.tls.bio_write(data)
        return bool(data)

    def _wait(self, *, write: bool) -> None:
        left = self.deadline - time.monotonic()
        ready = select.select([] if write else [self.raw], [self.raw] if write else [], [], max(0.0, left))
        if left <= 0 or not any(ready):
            raise Unreachable(
                "too slow",
                "the server accepted the connection but did not answer in time",
                (advice("check whether the master hangs, or whether something else listens at this address"),),
            )


def _complete(answer: bytearray) -> bool:
    """Tell whether an answer with a length is complete: some servers never close."""
    head, _, _ = bytes(answer[:65536]).partition(b"\r\n\r\n")
    length = _LENGTH.search(head + b"\r\n")
    return length is not None and len(answer) - len(head) - 4 >= int(length[1])


def _reason(error: SSL.Error) -> str:
    entries = error.args[0] if error.args and isinstance(error.args[0], list) else []
    return f"TLS failed: {', '.join(str(entry[-1]) for entry in entries) or 'closed by the server'}"


class _Replayed:
    """An answer in memory, in the shape of a socket for http.client."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def makefile(self, *_: object, **__: object) -> io.BytesIO:
        return io.BytesIO(self.data)


def _answer(data: bytes) -> HttpResponse:
    response = http.client.HTTPResponse(_Replayed(data))  # type: ignore[arg-type]
    try:
        response.begin()
        body = response.read(LIMIT)
    except http.client.IncompleteRead as error:
        body = error.partial
    except (http.client.HTTPException, OSError, ValueError) as error:
        detail = f"{clean(data[:60].decode('latin-1'))!r} is not HTTP: {type(error).__name__}"
        fix = (advice("check which server listens at this address: it is not a master"),)
        raise Unreachable("not HTTP", detail, fix) from error
    return HttpResponse(response.status, {name.lower(): value for name, value in response.getheaders()}, body)

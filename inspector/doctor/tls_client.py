"""One GET over TLS from a server that nobody trusts yet: bounded in time and size, any certificate taken.

What is wrong with the certificate is for the caller to judge, all of it; an agent stops at the first fault.
"""

from __future__ import annotations

import http.client
import io
import re
import select
import socket
import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.serialization import Encoding
from OpenSSL import SSL

from inspector.proxy import tls
from inspector.summaries import wording

if TYPE_CHECKING:
    from inspector.proxy.identity import Credentials

LIMIT = 64 * 1024 * 1024
"""Bytes of one answer."""

_LENGTH = re.compile(rb"\r\ncontent-length:[ \t]*(\d{1,18})[ \t]*\r\n", re.IGNORECASE)


class Unreachable(Exception):
    """No answer: ``what`` in short, the exception's own text in full, ``remedy`` what to do."""

    def __init__(self, what: str, detail: str, remedy: str = "") -> None:
        super().__init__(detail)
        self.what, self.remedy = what, remedy


@dataclass(frozen=True, slots=True)
class Target:
    """Whom to ask."""

    host: str
    port: int
    name: str
    """What the server is called: in SNI and ``Host``."""
    timeout: float
    """Seconds for one connection with all that is asked on it."""


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: dict[str, str]
    """By names in lower case."""
    body: bytes


@dataclass(frozen=True, slots=True)
class Session:
    """What one TLS connection showed."""

    protocol: str
    cipher: str
    chain: tuple[bytes, ...]
    """DER, the server's own first."""
    answer: Answer | None = None
    trouble: Unreachable | None = None
    """Why there is no answer though there was a handshake."""


def talk(target: Target, path: str | None, lent: Credentials | None = None, *, only: int | None = None) -> Session:
    """One connection: the handshake and, with a path, one GET. Raises Unreachable if there is no handshake.

    ``lent`` is shown if the server asks for a certificate; ``only`` is the one protocol version that is spoken.
    """
    deadline = time.monotonic() + target.timeout
    with _connected(target, deadline) as raw:
        line = _Line(raw, _client(target, lent, only), deadline)
        line.handshake()
        chain = line.tls.get_peer_cert_chain(as_cryptography=True) or []
        session = Session(
            line.tls.get_protocol_version_name(),
            line.tls.get_cipher_name() or "",
            tuple(each.public_bytes(Encoding.DER) for each in chain),
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
            return replace(session, trouble=error)


def _connected(target: Target, deadline: float) -> socket.socket:
    where = f"{target.host}:{target.port}"
    try:
        addresses = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no host name"
        raise Unreachable("unknown host", f"{target.host}: {reason}", f"`getent hosts {target.host}`") from error
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
        raw.setblocking(False)
        return raw
    if isinstance(failed, TimeoutError):
        raise Unreachable("no connection", f"{where} does not answer within {target.timeout:g} s",
                          "Look for a firewall or a wrong route between here and there") from failed  # fmt: skip
    reason = failed.strerror if failed else "no address"
    raise Unreachable(
        "no connection", f"{where}: {reason}", f"On the master: `ss -ltn 'sport = :{target.port}'`"
    ) from failed


def _client(target: Target, lent: Credentials | None, only: int | None) -> SSL.Connection:
    """The agent's end, which takes any certificate: what is wrong with it is judged later, all of it."""
    context = SSL.Context(SSL.TLS_CLIENT_METHOD)
    context.set_cipher_list(tls.CIPHERS)
    context.set_min_proto_version(only or SSL.TLS1_VERSION)
    if only:
        context.set_max_proto_version(only)
    if lent:
        context.use_certificate(lent.chain[0])
        context.use_privatekey(lent.key)
        for each in lent.chain[1:]:
            context.add_extra_chain_cert(each)
    session = SSL.Connection(context, None)
    if not _is_address(target.name):
        try:
            session.set_tlsext_host_name(target.name.encode("idna"))
        except UnicodeError as error:
            raise Unreachable("unknown host", f"{target.name!r} is no host name") from error
    session.set_connect_state()
    return session


def _is_address(name: str) -> bool:
    return ":" in name or name.replace(".", "").isdigit()


class _Line:
    """A TLS connection over a socket that never blocks beyond the deadline (seconds of the monotonic clock)."""

    def __init__(self, raw: socket.socket, session: SSL.Connection, deadline: float) -> None:
        self.raw, self.tls, self.deadline = raw, session, deadline
        self.first = b""
        """The peer's first bytes, as they came."""
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
                    raise self._ended("closed the connection in the TLS handshake") from None
            except SSL.Error as error:
                raise self._ended(_reason(error)) from error

    def ask(self, request: bytes) -> bytes:
        """Send, and receive until the peer closes. Raises Unreachable, also if nothing came."""
        self.tls.sendall(request)
        self._flush()
        got = bytearray()
        while len(got) <= LIMIT:
            try:
                got += self.tls.recv(65536)
                if _complete(got):
                    break
            except SSL.WantReadError:
                if not self._receive():
                    break
            except SSL.ZeroReturnError:
                break
            except SSL.Error as error:
                if not got:
                    raise self._ended(_reason(error)) from error
                break
        if len(got) > LIMIT:
            raise Unreachable("too much", f"the answer is larger than {wording.size(LIMIT)}")
        if not got:
            raise self._ended("closed the connection without an answer")
        return bytes(got)

    def _listen(self, _connection: SSL.Connection, where: int, code: int) -> None:
        if where & SSL.SSL_CB_ALERT and where & SSL.SSL_CB_READ and code & 0xFF:
            self.alert = tls.ALERTS.get(code & 0xFF, f"alert {code & 0xFF}")

    def _ended(self, reason: str) -> Unreachable:
        if self.first.startswith(b"HTTP/") or b"<html" in self.first[:256].lower():
            return Unreachable(
                "plain HTTP",
                "it answers a TLS handshake with HTTP",
                "Agents speak TLS only: look at what listens there (a load balancer without TLS?)",
            )
        if self.alert:
            return Unreachable("TLS refused", f"it answers with the alert {self.alert}")
        return Unreachable(
            "no answer" if self.secured else "no TLS",
            f"it {reason}" if reason.startswith("closed") else reason,
            "Look at what listens there, and into the master's log",
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
                    # What it said before it closed may tell why.
                    if not self._receive():
                        raise self._ended(f"closed the connection ({error.strerror})") from error

    def _receive(self) -> bool:
        """Take in what came; False if the peer has closed."""
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
                "it accepted the connection, and then said nothing, or too little, in time",
                "A hanging master, or something else that listens there",
            )


def _complete(got: bytearray) -> bool:
    """An answer with a length is over before the peer closes; some never do."""
    head, _, _ = bytes(got[:65536]).partition(b"\r\n\r\n")
    length = _LENGTH.search(head + b"\r\n")
    return length is not None and len(got) - len(head) - 4 >= int(length[1])


def _reason(error: SSL.Error) -> str:
    parts = [str(each[-1]) for each in (error.args[0] if error.args and isinstance(error.args[0], list) else [])]
    return f"TLS fails: {', '.join(parts) or 'closed by the other end'}"


class _Replayed:
    """An answer that http.client reads as if from a socket."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def makefile(self, *_: object, **__: object) -> io.BytesIO:
        return io.BytesIO(self.data)


def _answer(data: bytes) -> Answer:
    response = http.client.HTTPResponse(_Replayed(data))  # type: ignore[arg-type]
    try:
        response.begin()
        body = response.read(LIMIT)
    except http.client.IncompleteRead as error:
        body = error.partial
    except (http.client.HTTPException, OSError, ValueError) as error:
        detail = f"{wording.clean(data[:60].decode('latin-1'))!r} is no HTTP: {type(error).__name__}"
        raise Unreachable("no HTTP", detail, "Something else than a master listens there") from error
    return Answer(response.status, {name.lower(): value for name, value in response.getheaders()}, body)

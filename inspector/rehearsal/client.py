"""Connections to the master of a rehearsal: what is asked, and what came back, as records.

Only the named master is connected to, and no redirect is followed. What a request may be, ``requests.checked`` decides
again here, right before it is sent.
"""

from __future__ import annotations

import contextlib
import dataclasses
import http.client
import socket
import ssl
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from inspector.errors import InspectorError
from inspector.host import https
from inspector.model import Exchange, Identity, Leg, Response
from inspector.rehearsal import requests
from inspector.text import address, clean, size

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.model import Request
    from inspector.proxy.identity import Credentials

LARGEST = 2**28
"""Bytes of the largest answer."""
PIECE = 2**16
CONNECTING = 20.0
"""Seconds to wait for a connection and its TLS handshake."""


class Unreachable(Exception):
    """There is no connection to the master; the text is the reason."""


@dataclass(slots=True)
class Target:
    """The master of a rehearsal."""

    host: str
    port: int
    ca: Path
    """The CA bundle by which its certificate is verified."""
    timeout: float
    """Seconds for one answer."""
    crl: Path | None = None
    """CRLs of all CAs of its certificate; None: whether it is revoked is not checked."""
    _open: set[socket.socket] = field(default_factory=set)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __str__(self) -> str:
        return address(self.host, self.port)

    def context(self, credentials: Credentials) -> ssl.SSLContext:
        """Return the TLS context for a certificate. Raises InspectorError."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        _load(context, "CA bundle", self.ca, "certificate", "Name the new master's: --ca PEM.")
        if self.crl is not None:
            before, hint = context.cert_store_stats(), "Name the CRLs of the new master's CA: --crl PEM."
            _load(context, "CRLs", self.crl, "CRL", hint)
            after = context.cert_store_stats()
            if after["crl"] == before["crl"]:
                raise InspectorError(f"{self.crl} has no CRL.", hint)
            if after["x509"] != before["x509"]:  # they would be trusted
                raise InspectorError(f"{self.crl} has certificates, not only CRLs.", hint)
            context.verify_flags |= ssl.VERIFY_CRL_CHECK_CHAIN
        credentials.load(context)
        return context

    def abort(self) -> None:
        """End every connection; what waits for an answer gets none."""
        with self._lock:
            for connection in self._open:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)


def _load(context: ssl.SSLContext, what: str, path: Path, part: str, hint: str) -> None:
    try:
        context.load_verify_locations(cafile=path)
    except OSError as error:
        reason = f"it has no {part}" if isinstance(error, ssl.SSLError) else error.strerror
        raise InspectorError(f"Cannot read the {what} {path}: {reason}.", hint) from error


class Client:
    """The connection of one node to the master."""

    def __init__(self, target: Target, credentials: Credentials, identity: Identity, name: str) -> None:
        """``name`` is that of the connection in the capture."""
        self._target, self._identity = target, identity
        self._chain = credentials.ders
        self._context = target.context(credentials)
        self._name = name
        self._connection: http.client.HTTPConnection | None = None
        self._connections = 0
        self._agent = self._master = Leg(name, "agent")

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def connect(self) -> None:
        """Connect, and make the TLS handshake. Raises Unreachable."""
        target, began = self._target, time.time()
        try:
            plain = socket.create_connection((target.host, target.port), CONNECTING)
        except UnicodeError as error:
            raise Unreachable("that is not the name of a host") from error
        except OSError as error:
            raise Unreachable(error.strerror or str(error) or "no connection") from error
        try:
            connected = time.time()
            connection = https.over(plain, self._context, target.host)
        except (OSError, ValueError) as error:
            raise Unreachable(_reason(error)) from error
        secured = connection.sock
        assert isinstance(secured, ssl.SSLSocket)  # noqa: S101 - for the type checker
        secured.settimeout(target.timeout)
        with target._lock:
            target._open.add(secured)
        self._connection = connection
        self._connections += 1
        ident = f"{self._name}.{self._connections}"
        cipher, peer = secured.cipher(), secured.getpeercert(binary_form=True)
        known = Leg(
            f"{ident}/agent", "agent", connecting=began, connected=connected, secured=time.time(),
            tls_version=secured.version(), cipher=cipher[0] if cipher else None, sni=target.host,
            peer_chain=self._chain, own_chain=(peer,) if peer else (),
        )  # fmt: skip
        self._agent = known
        self._master = dataclasses.replace(
            known, id=f"{ident}/master", side="master", address=plain_address(secured), port=target.port,
            peer_chain=known.own_chain, own_chain=self._chain,
        )  # fmt: skip

    def ask(self, request: Request) -> Exchange:
        """Send a request; return the exchange, in which there may be no response. Raises Unreachable."""
        requests.checked(request)
        if self._connection is None:
            self.connect()
        connection = self._connection
        assert connection is not None  # noqa: S101 - for the type checker
        started = time.time()
        ended = started
        host = f"{address(self._target.host, self._target.port)}"
        try:
            connection.putrequest(request.method, request.target, skip_host=True, skip_accept_encoding=True)
            headers = [*request.headers, ("Host", host)]
            if request.body or request.method == "POST":
                headers.append(("Content-Length", str(len(request.body))))
            for name, value in headers:
                connection.putheader(name, value.encode("latin-1"))
            connection.endheaders(request.body or None)
            ended = time.time()
            answer = connection.getresponse()
            first = time.time()
            body = _read(answer, connection.sock, started + self._target.timeout)
        except (OSError, http.client.HTTPException, ValueError) as error:
            self.close()
            sent = dataclasses.replace(request, started=started, ended=ended)
            return self._exchange(sent, None, _reason(error))
        sent = dataclasses.replace(request, headers=tuple(headers), started=started, ended=ended)
        response = Response(
            tuple(answer.getheaders()), body, f"HTTP/{answer.version / 10:g}" if answer.version != 11 else "HTTP/1.1",
            first, time.time(), status=answer.status, reason=answer.reason or "",
        )  # fmt: skip
        if answer.will_close:
            self.close()
        return self._exchange(sent, response, None)

    def _exchange(self, request: Request, response: Response | None, error: str | None) -> Exchange:
        return Exchange(
            self._agent, request, response, self._master, self._identity, error,
            failed=None if response else time.time(),
        )  # fmt: skip

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            with self._target._lock:
                self._target._open.discard(connection.sock)
            connection.close()


def plain_address(connection: socket.socket) -> str | None:
    """Return the address of a connection's peer; None if it is gone."""
    try:
        return str(connection.getpeername()[0])
    except OSError:
        return None


def _read(answer: http.client.HTTPResponse, connection: socket.socket | None, deadline: float) -> bytes:
    """Read a body, which may come byte by byte. Raises ValueError if it is too large or too slow."""
    body = bytearray()
    while True:
        left = deadline - time.time()
        if left <= 0:
            raise ValueError("the answer takes too long")
        if connection is not None:
            connection.settimeout(left)
        piece = answer.read1(PIECE)
        if not piece:
            break
        body += piece
        if len(body) > LARGEST:
            raise ValueError(f"the answer is larger than {size(LARGEST)}")
    if answer.length:
        raise http.client.IncompleteRead(bytes(body), answer.length)
    return bytes(body)


def _reason(error: Exception) -> str:
    match error:
        case ssl.SSLCertVerificationError():
            return f"certificate verify failed: {error.verify_message}"
        case ssl.SSLError():
            return f"TLS: {(error.reason or str(error)).lower().replace('_', ' ')}"
        case TimeoutError():
            return "no answer in time"
        case http.client.RemoteDisconnected():
            return "the connection was closed without an answer"
        case http.client.HTTPException():
            return f"the answer is not HTTP: {clean(str(error))[:100] or type(error).__name__}"
        case OSError() if error.strerror:
            return error.strerror
    return clean(str(error))[:200] or type(error).__name__

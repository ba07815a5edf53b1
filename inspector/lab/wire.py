"""An agent's connections: TLS as in Puppet 7, and requests with Puppet's headers in Puppet's order.

A ``Wire`` has one security context. Its connection is kept alive, and reopened when it was lost.
"""

from __future__ import annotations

import contextlib
import gzip
import http.client
import socket
import ssl
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING

from inspector.host import https

if TYPE_CHECKING:
    from pathlib import Path

VERSION = "7.23.0"
USER_AGENT = f"Puppet/{VERSION} Ruby/3.1.2-p20 (x86_64-linux-gnu)"
_TIMEOUT = 30.0
"""Seconds; Puppet's own is 10 minutes, too long for a lab."""


class WireError(Exception):
    """There is no answer: the connection, the handshake or the response failed. The text is the reason."""


@dataclass(frozen=True, slots=True)
class LabResponse:
    """An HTTP response."""

    status: int
    body: bytes
    """The body without its Content-Encoding."""
    content_type: str

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300


@dataclass(frozen=True, slots=True)
class ServerAddress:
    """The server's address and name: the lab needs no DNS."""

    name: str
    address: tuple[str, int]
    source: str = ""
    """The address to connect from; empty: chosen by the system."""


def insecure() -> ssl.SSLContext:
    """Return a context that verifies nothing, for the download of the CA bundle."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def verifying(ca: Path, crl: Path | None = None, identity: tuple[Path, Path] | None = None) -> ssl.SSLContext:
    """Return a context that verifies the server's name and chain.

    With ``crl`` it checks the chain's revocation. ``identity`` (certificate, key) is presented to the server.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cafile=ca)
    if crl:
        context.load_verify_locations(cafile=crl)
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_CHAIN
    if identity:
        context.load_cert_chain(*identity)
    return context


class Wire:
    """Requests to one server in one security context."""

    def __init__(self, server: ServerAddress, context: ssl.SSLContext) -> None:
        self._server = server
        self._context = context
        self._connection: http.client.HTTPConnection | None = None

    def __enter__(self) -> Wire:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def request(
        self, method: str, target: str, accept: str, body: bytes | None = None, content_type: str = ""
    ) -> LabResponse:
        """Send a request and read the whole answer. Raises WireError if there is none."""
        try:
            connection = self.connect()
            connection.putrequest(method, target, skip_host=True, skip_accept_encoding=True)
            connection.putheader("X-Puppet-Version", VERSION)
            connection.putheader("User-Agent", USER_AGENT)
            connection.putheader("Accept", accept)
            if content_type:
                connection.putheader("Content-Type", content_type)
            connection.putheader("Accept-Encoding", "gzip;q=1.0,deflate;q=0.6,identity;q=0.3")
            connection.putheader("Host", f"{self._server.name}:{self._server.address[1]}")
            if body is not None:
                connection.putheader("Content-Length", str(len(body)))
            connection.endheaders(body)
            response = connection.getresponse()
            data = response.read()
            if response.will_close:
                self.close()
            if response.getheader("Content-Encoding") == "gzip" and data:
                data = gzip.decompress(data)
            return LabResponse(response.status, data, response.getheader("Content-Type", ""))
        except (OSError, http.client.HTTPException, zlib.error, EOFError) as error:
            self.close()
            raise WireError(_reason(error)) from error

    def connect(self) -> http.client.HTTPConnection:
        """Return the open connection, or open one. Raises the exceptions of ``socket`` and ``ssl``."""
        if self._connection is None:
            source = (self._server.source, 0) if self._server.source else None
            plain = socket.create_connection(self._server.address, _TIMEOUT, source)
            self._connection = https.over(plain, self._context, self._server.name)
        return self._connection

    def probe(self) -> None:
        """Connect and close without a request, as Puppet 6.11 and later do to test whether a server is reachable."""
        try:
            self.connect()
        except OSError as error:
            raise WireError(_reason(error)) from error
        self.close()

    def close(self) -> None:
        connection, self._connection = self._connection, None
        if connection and isinstance(connection.sock, ssl.SSLSocket):
            with contextlib.suppress(OSError, ValueError):
                connection.sock.settimeout(0)
                connection.sock.unwrap()  # sends close_notify; waits for no answer
        if connection:
            connection.close()


def _reason(error: Exception) -> str:
    """Return the reason of an error, in OpenSSL's words where possible."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"certificate verify failed: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return f"TLS: {error.reason or error}"
    return str(error) or type(error).__name__

"""A threaded HTTPS server: TLS with client certificates, HTTP/1.1, and a function for the answers.

Handles HTTP framing and TLS, and reports what happened as records; nothing here is specific to Puppet.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import socket
import ssl
import sys
import threading
import time
from email.utils import formatdate
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

from inspector.model import Exchange, Handshake, Headers, Leg, Request, Response

if TYPE_CHECKING:
    from collections.abc import Callable

    type Report = Callable[[Exchange | Handshake], None]

_FRAMING = {"content-length", "transfer-encoding", "connection", "keep-alive", "date"}
_REASONS = {500: "Server Error"}  # Jetty's wording
_LARGEST = 2**28
"""Bytes of the largest body that is read: reports with debug messages have some 10 MB."""
_LINE = 8192
"""Bytes of the longest line between chunks."""
_IDLE = 30.0
"""Seconds of silence after which Jetty closes a connection."""


class LabServer:
    """Serve until closed; calls ``context`` once per connection and ``answer`` once per request. Where that raises
    ConnectionError, the connection is closed instead. ``report`` gets each exchange when it is over, and each handshake
    that failed. All are called in threads, each connection's in one of its own."""

    def __init__(
        self,
        context: Callable[[], ssl.SSLContext],
        answer: Callable[[Request, str | None], Response],
        address: tuple[str, int] = ("127.0.0.1", 0),
        report: Report = lambda _: None,
        strangers: int = _LARGEST,
        places: int = sys.maxsize,
    ) -> None:
        """Listen; the default is a free port on loopback. ``strangers``: bytes of the largest body of who shows no
        certificate. ``places``: such connections; of more the oldest is closed. Raises OSError."""
        self._http = _Server(context, answer, address, report, strangers, places)
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.05,), name="lab-server")
        host, port = self._http.server_address[:2]
        self.address = (str(host), int(port))

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        """Stop, cut every connection and wait for every thread."""
        if self._thread.is_alive():
            self._http.shutdown()
            self._thread.join()
        self._http.cut()
        self._http.server_close()


class _Server(ThreadingHTTPServer):
    """A server whose threads make the TLS handshake: a silent client does not block the others."""

    daemon_threads = False

    def __init__(
        self,
        context: Callable[[], ssl.SSLContext],
        answer: Callable[[Request, str | None], Response],
        address: tuple[str, int],
        report: Report,
        strangers: int,
        places: int,
    ) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        super().__init__(address, BaseHTTPRequestHandler)  # finish_request makes the handler
        self.context, self.answer, self.report = context, answer, report
        self.strangers, self._places = strangers, places
        self._unproven: dict[socket.socket, None] = {}
        """Connections without a certificate, in the order in which they came."""
        self._open: set[socket.socket] = set()
        self._numbers = itertools.count(1)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Take a connection's place, in the one thread that accepts, and serve it in one of its own: those run in any
        order, and another connection would be the oldest."""
        request.settimeout(_IDLE)
        context = self.context()
        with contextlib.suppress(OSError):  # the client left
            secured = context.wrap_socket(request, server_side=True, do_handshake_on_connect=False)
            self._open.add(secured)
            self._make_room(secured)
            super().process_request(secured, client_address)

    def finish_request(self, request: Any, client_address: Any) -> None:
        secured: ssl.SSLSocket = request
        connected = time.time()
        host, port = client_address[:2]
        leg = Leg(str(next(self._numbers)), "agent", str(host), int(port), connected=connected)
        names: list[str | None] = []

        def name(_socket: object, server_name: str | None, _context: object) -> None:
            names.append(server_name)  # no result means: go on

        secured.context.sni_callback = name
        # An error of a client (a refused certificate, a reset) must not affect other connections.
        with contextlib.suppress(OSError), secured:
            try:
                secured.do_handshake()
                leg = _secured(leg, secured, next(iter(names), None))
                if leg.peer_chain:
                    self._unproven.pop(secured, None)
                _Handler(secured, client_address, self, leg)
            except ssl.SSLError as error:
                if leg.secured is None:
                    self.report(_failed(dataclasses.replace(leg, sni=next(iter(names), None)), error))
                _linger(secured)
            finally:
                self._open.discard(secured)
                self._unproven.pop(secured, None)

    def _make_room(self, newcomer: socket.socket) -> None:
        """Close the oldest connections without a certificate if there are too many: a thread and a descriptor each."""
        self._unproven[newcomer] = None
        for oldest in list(self._unproven)[: -self._places]:
            if self._unproven.pop(oldest, oldest) is None:  # else it ended meanwhile, or has proven who it is
                _cut(oldest)

    def cut(self) -> None:
        for connection in list(self._open):
            _cut(connection)


def _secured(leg: Leg, connection: ssl.SSLSocket, name: str | None) -> Leg:
    """Return what is known of a connection after its handshake."""
    certificate, cipher = connection.getpeercert(binary_form=True), connection.cipher()
    return dataclasses.replace(
        leg,
        secured=time.time(),
        tls_version=connection.version(),
        cipher=cipher[0] if cipher else None,
        sni=name,
        peer_chain=(certificate,) if certificate else (),
    )


def _failed(leg: Leg, error: ssl.SSLError) -> Handshake:
    """Return a failed handshake; the alert of a verification is this server's, any other one the client's."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return Handshake(leg, time.time(), f"certificate verify failed: {error.verify_message}", alert_by="master")
    return Handshake(leg, time.time(), str(error.reason or error).lower().replace("_", " "), alert_by="agent")


def _cut(connection: socket.socket) -> None:
    with contextlib.suppress(OSError):
        socket.socket.shutdown(connection, socket.SHUT_RDWR)


def _linger(connection: ssl.SSLSocket) -> None:
    """Close without a reset: with unread data the kernel would send one, and the TLS alert would be lost."""
    connection.settimeout(1.0)
    connection.shutdown(socket.SHUT_WR)
    while socket.socket.recv(connection, 65536):
        pass


class _Handler(BaseHTTPRequestHandler):
    """HTTP/1.1 with keep-alive; passes each request to the master."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = -1  # one write per answer
    server: _Server

    def __init__(self, connection: ssl.SSLSocket, address: Any, server: _Server, leg: Leg) -> None:
        self._leg = leg
        super().__init__(connection, address, server)

    def _answer(self) -> None:
        started = time.time()
        target = self.requestline.split(" ")[1]  # self.path has leading slashes folded
        headers, body = tuple(self.headers.items()), self._body()
        request = Request(headers, body, started=started, ended=time.time(), method=self.command, target=target)
        try:
            response = self.server.answer(request, self._certname())
        except ConnectionError as error:  # no answer: the connection ends
            self.server.report(Exchange(self._leg, request, error=str(error), failed=time.time()))
            raise
        answered = time.time()
        headers = self._send(response, head=self.command == "HEAD")
        self.wfile.flush()
        sent = dataclasses.replace(response, headers=headers, started=answered, ended=time.time())
        self.server.report(Exchange(self._leg, request, sent))

    do_GET = do_HEAD = do_PUT = do_POST = do_DELETE = _answer  # noqa: N815 - http.server's names

    def handle_expect_100(self) -> bool:
        super().handle_expect_100()
        self.wfile.flush()  # the agent waits for it
        return True

    def _certname(self) -> str | None:
        assert isinstance(self.connection, ssl.SSLSocket)  # noqa: S101
        certificate: Any = self.connection.getpeercert() or {}
        subject = dict(pair for rdn in certificate.get("subject", ()) for pair in rdn)
        return subject.get("commonName")

    def _body(self) -> bytes:
        """Read the body. Raises ConnectionError if it is malformed or longer than an agent's."""
        try:
            if (self.headers["Transfer-Encoding"] or "").lower() != "chunked":
                return self._read(int(self.headers["Content-Length"] or 0), 0)
            body = bytearray()
            while size := int(self.rfile.readline(_LINE).partition(b";")[0], 16):
                body += self._read(size, len(body))
                self.rfile.readline(_LINE)
        except ValueError as error:
            raise ConnectionAbortedError("a malformed body") from error
        while self.rfile.readline(_LINE).strip():
            pass  # trailers
        return bytes(body)

    def _read(self, size: int, before: int) -> bytes:
        largest = _LARGEST if self._certname() else self.server.strangers
        if size < 0 or size + before > largest:
            raise ConnectionAbortedError(f"a body of more than {largest} bytes")
        return self.rfile.read(size)

    def _send(self, response: Response, *, head: bool) -> Headers:
        """Send an answer; return its headers."""
        headers = [("Date", formatdate(usegmt=True))]
        headers += [(name, value) for name, value in response.headers if name.lower() not in _FRAMING]
        # As in puppetserver only complete bodies have a Content-Length.
        chunked = bool(response.body) and response.header("Content-Length") is None
        framing = ("Transfer-Encoding", "chunked") if chunked or head else ("Content-Length", str(len(response.body)))
        headers.append(framing)
        self.send_response_only(response.status, response.reason or _REASONS.get(response.status))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        if chunked and not head:
            self.wfile.write(b"%x\r\n%s\r\n0\r\n\r\n" % (len(response.body), response.body))
        elif not head:
            self.wfile.write(response.body)
        return tuple(headers)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - http.server's name
        """Log nothing: requests are in ``received``."""

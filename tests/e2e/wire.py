"""A client that sends exactly the bytes it is told to, over TLS as exactly as it is told to; a master that keeps
exactly the bytes it was sent, and a reader that takes no bytes that could be read in two ways.
"""

from __future__ import annotations

import contextlib
import re
import socket
import ssl
import struct
import threading
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from inspector.host.pki import SslDirPaths


VERSIONS = (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3)


@dataclass(slots=True)
class Peer:
    """Whom to call, and as whom."""

    address: tuple[str, int]
    name: str
    """The name to ask for (SNI) and to verify."""
    ca: Path | None = None
    """Trust this CA bundle; None: whoever answers."""
    identity: tuple[Path, Path] | None = None
    """Certificate and key."""
    contexts: dict[str, ssl.SSLContext] = field(default_factory=dict)

    @classmethod
    def of(cls, address: tuple[str, int], name: str, place: SslDirPaths | None) -> Peer:
        """A peer that trusts and shows what an ssldir holds."""
        if place is None:
            return cls(address, name)
        return cls(address, name, place.ca, (place.certificate, place.key))

    def context(self) -> ssl.SSLContext:
        """Always the same one: only then a session can be resumed."""
        if "" not in self.contexts:
            context = ssl.create_default_context(cafile=str(self.ca) if self.ca else None)
            # Puppet's CA certificates lack what RFC 5280 wants and Python 3.13 checks by default.
            context.verify_flags &= ~ssl.VERIFY_X509_STRICT
            if self.ca is None:
                context.check_hostname = False
                context.verify_mode = ssl.CERT_NONE
            if self.identity:
                context.load_cert_chain(*map(str, self.identity))
            self.contexts[""] = context
        return self.contexts[""]

    @contextmanager
    def connect(self, session: ssl.SSLSession | None = None) -> Iterator[ssl.SSLSocket]:
        """A TLS connection."""
        with (
            socket.create_connection(self.address, timeout=300) as raw,
            self.context().wrap_socket(raw, server_hostname=self.name, session=session) as secure,
        ):
            yield secure

    def send(self, data: bytes, *, head: bool = False) -> Answer:
        """One request on a connection of its own."""
        with self.connect() as connection:
            connection.sendall(data)
            return read(connection, head=head)

    def ask(self, method: str, target: str, /, body: bytes = b"", headers: Mapping[str, str] | None = None) -> Answer:
        """One ordinary request."""
        lines = [f"{method} {target} HTTP/1.1", f"Host: {self.name}:8140", "Accept: */*"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        if body:
            lines.append(f"Content-Length: {len(body)}")
        return self.send("\r\n".join([*lines, "", ""]).encode() + body, head=method == "HEAD")


def alert_of(peer: Peer, version: ssl.TLSVersion) -> str:
    """The alert that a peer gets which only connects: in TLS 1.3 it comes after the handshake."""
    peer.context().minimum_version = peer.context().maximum_version = version
    try:
        with peer.connect() as connection:
            connection.recv(1)
    except ssl.SSLError as error:
        return str(error.reason).lower().partition("_alert_")[2]
    raise AssertionError("it was not refused")


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


def read(connection: ssl.SSLSocket, *, head: bool = False) -> Answer:
    """One response, its body freed from chunks."""
    stream = connection.makefile("rb")
    first = stream.readline()
    if not first:
        raise ConnectionError("the connection was closed without an answer")
    headers: list[tuple[str, str]] = []
    while (line := stream.readline()) not in (b"\r\n", b"\n", b""):
        name, _, value = line.decode("latin-1").partition(":")
        headers.append((name, value.strip()))
    known = {name.lower(): value for name, value in headers}
    status = int(first.split()[1])
    body = b""
    if head or status in (204, 304):
        pass
    elif known.get("transfer-encoding") == "chunked":
        while size := int(stream.readline(), 16):
            body += stream.read(size)
            stream.readline()
        stream.readline()
    elif "content-length" in known:
        body = stream.read(int(known["content-length"]))
    else:
        body = stream.read()
    return Answer(status, tuple(headers), body)


@dataclass(slots=True)
class Heard:
    """What came in on one connection."""

    certname: str | None
    """Whom the certificate names that it was made with; None: there was none."""
    resumed: bool
    data: bytearray = field(default_factory=bytearray)


class Service:
    """Something that accepts TCP connections and serves each as a test wants, in a thread of its own."""

    def __init__(self, serve: Callable[[socket.socket], None], host: str = "127.0.0.1") -> None:
        """What ``serve`` leaves open is closed."""
        self._serve = serve
        self._socket = socket.create_server((host, 0))
        self.address: tuple[str, int] = self._socket.getsockname()
        self.over = threading.Event()
        """Set when no more is wanted."""
        self._threads = [threading.Thread(target=self._accept)]

    @property
    def target(self) -> str:
        """The address as ``puppet_master`` takes it."""
        return "{}:{}".format(*self.address)

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes who waits in accept
        for thread in self._threads:
            thread.join()
        self._socket.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _ = self._socket.accept()
                self._threads.append(threading.Thread(target=self._connected, args=(connection,)))
                self._threads[-1].start()

    def _connected(self, connection: socket.socket) -> None:
        connection.settimeout(30)
        with connection, contextlib.suppress(OSError):
            self._serve(connection)


class ScriptedMaster(Service):
    """A master that serves each TLS connection as a test wants."""

    def __init__(
        self, context: Callable[[], ssl.SSLContext], serve: Callable[[ssl.SSLSocket], None], host: str = "127.0.0.1"
    ) -> None:
        """``context`` is asked once a connection."""

        def secured(raw: socket.socket) -> None:
            with context().wrap_socket(raw, server_side=True) as secure:
                serve(secure)

        super().__init__(secured, host)


class Listener(ScriptedMaster):
    """A master that only listens: each connection by itself, byte for byte. Every silence is answered with 200."""

    def __init__(self, context: Callable[[], ssl.SSLContext]) -> None:
        """``context`` is asked once a connection."""
        super().__init__(context, self._listen)
        self.heard: list[Heard] = []

    def _listen(self, connection: ssl.SSLSocket) -> None:
        certificate: Any = connection.getpeercert() or {}
        names = dict(pair for rdn in certificate.get("subject", ()) for pair in rdn)
        heard = Heard(names.get("commonName"), bool(connection.session_reused))
        self.heard.append(heard)
        connection.settimeout(0.1)
        asked = False
        while not self.over.is_set():
            try:
                data = connection.recv(65536)
            except TimeoutError:
                if asked:
                    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                asked = False
                continue
            if not data:
                return
            heard.data += data
            asked = True


def reset(connection: socket.socket) -> None:
    """Let the connection end with a reset when it is closed."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


_REQUEST_LINE = re.compile(rb"[A-Z]+ [^\x00-\x20]+ HTTP/1\.[01]")
_HEADER_LINE = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]+): ?([^\x00\r\n]*)")


def requests(data: bytes) -> list[tuple[list[bytes], bytes]]:
    """The requests on a connection, each as the lines of its head and its body; the last body may be cut off.

    Raises ValueError for everything that two readers could take for different requests.
    """
    found = []
    while data:
        head, blank, data = data.partition(b"\r\n\r\n")
        lines = head.split(b"\r\n")
        headers = [_HEADER_LINE.fullmatch(line) for line in lines[1:]]
        if not blank or not _REQUEST_LINE.fullmatch(lines[0]) or not all(headers):
            raise ValueError(f"no head that can be read in one way only: {head!r}")
        framing = [
            (header[1].lower(), header[2])
            for header in headers
            if header and header[1].lower() in (b"content-length", b"transfer-encoding")
        ]
        match framing:
            case []:
                body = b""
            case [(b"content-length", length)] if length.isdigit():
                body, data = data[: int(length)], data[int(length) :]
            case [(b"transfer-encoding", coding)] if coding.lower() == b"chunked":
                body, data = _unchunked(data)
            case _:
                raise ValueError(f"no framing that can be read in one way only: {framing!r}, {data!r}")
        found.append((lines, body))
    return found


def _unchunked(data: bytes) -> tuple[bytes, bytes]:
    """The body, and what follows it."""
    body = b""
    while data:
        size, end, data = data.partition(b"\r\n")
        if not end or not re.fullmatch(rb"[0-9a-f]+", size):
            raise ValueError(f"no chunk: {size!r}")
        chunk, end, data = data[: int(size, 16)], data[int(size, 16) :][:2], data[int(size, 16) + 2 :]
        if end != b"\r\n":
            raise ValueError(f"no end of a chunk: {end!r}")
        if not chunk:
            return body, data
        body += chunk
    return body, b""

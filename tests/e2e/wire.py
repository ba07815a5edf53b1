"""A client that sends exactly the bytes it is told to, over TLS as exactly as it is told to."""

from __future__ import annotations

import socket
import ssl
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from inspector.pki import SslDir


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
    def of(cls, address: tuple[str, int], name: str, place: SslDir | None) -> Peer:
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
            socket.create_connection(self.address, timeout=20) as raw,
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

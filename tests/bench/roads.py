"""The ends and the roads of the proxy's benches: a master that costs next to nothing, agents, and proxies to compare.

The roads are mitmproxy as it comes, with the options that a Puppet agent needs, and ours. All of them stand between
the same two ends of the lab's.
"""

from __future__ import annotations

import itertools
import multiprocessing
import os
import re
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Self

from inspector.cli import demo
from inspector.host import pki
from inspector.host.pki import SslDirPaths
from inspector.proxy.launcher import Proxy

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from multiprocessing.synchronize import Event

    from inspector.lab import Lab

SIZE = 8192
"""Bytes of a small answer."""
PIECE = 2**18
"""Bytes of a large body that are sent at a time."""
TICK = os.sysconf("SC_CLK_TCK")
STOCK = "`mitmdump -w`"
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)\r\n", re.IGNORECASE)
_LARGE = re.compile(rb"/(\d+)\.bin\b")


# -- a master that costs next to nothing ------------------------------------------------------------------


def serve(place: SslDirPaths, port: socket.socket, stop: Event, answers: Mapping[bytes, bytes]) -> None:
    """Answer every request, a thread a connection.

    What begins with one of ``answers`` gets that (a JSON object, each time with another first member), a file
    ``NUMBER.bin`` has so many bytes, and everything else 8 KiB that no other answer has.
    """
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(place.ca))
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_cert_chain(str(place.certificate), str(place.key))

    def talk(raw: socket.socket) -> None:
        try:
            with context.wrap_socket(raw, server_side=True) as connection:
                waiting = b""
                while data := connection.recv(65536):
                    waiting += data
                    while (end := waiting.find(b"\r\n\r\n")) >= 0:
                        head, waiting = waiting[: end + 4], waiting[end + 4 :]
                        waiting = _skip(connection, head, waiting)
                        _answer(connection, head.split(b" ", 2)[1], answers)
        except OSError:
            return

    port.settimeout(0.2)
    while not stop.is_set():
        try:
            raw, _ = port.accept()
        except TimeoutError:
            continue
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        raw.settimeout(60)
        threading.Thread(target=talk, args=(raw,), daemon=True).start()


def _skip(connection: ssl.SSLSocket, head: bytes, waiting: bytes) -> bytes:
    """Read a request's body; returns what came after it."""
    found = _LENGTH.search(head)
    missing = int(found[1]) - len(waiting) if found else -len(waiting)
    buffer = bytearray(PIECE)
    while missing > 0:
        got = connection.recv_into(buffer, min(missing, PIECE))
        if not got:
            raise ConnectionError("closed within a body")
        missing -= got
    return waiting[len(waiting) + missing :] if missing < 0 else b""


_numbers = itertools.count()


def _answer(connection: ssl.SSLSocket, target: bytes, answers: Mapping[bytes, bytes]) -> None:
    plain = next((body for path, body in answers.items() if target.startswith(path)), None)
    if plain is not None:
        first = b'{"bench":%d,' % next(_numbers)
        connection.sendall(_head(len(first) + len(plain) - 1, b"application/json") + first)
        connection.sendall(memoryview(plain)[1:])
        return
    if large := _LARGE.search(target):
        left = int(large[1])
        connection.sendall(_head(left))
        piece = os.urandom(PIECE)
        for number in itertools.count():
            if left <= 0:
                return
            some = number.to_bytes(8) + piece[8:]  # no two pieces are the same, nor can they be compressed
            connection.sendall(some if left >= PIECE else some[:left])
            left -= PIECE
    seed = os.urandom(32).hex().encode()
    connection.sendall(_head(SIZE) + (seed * (SIZE // len(seed)))[:SIZE])


def _head(length: int, kind: bytes = b"application/octet-stream") -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nContent-Length: %d\r\n\r\n" % (kind, length)


@contextmanager
def master(place: SslDirPaths, answers: Mapping[bytes, bytes] | None = None) -> Iterator[tuple[str, int]]:
    """A running one."""
    port = socket.create_server(("127.0.0.1", 0), backlog=256)
    context = multiprocessing.get_context("fork")
    stop = context.Event()
    process = context.Process(target=serve, args=(place, port, stop, answers or {}))
    process.start()
    address: tuple[str, int] = port.getsockname()
    port.close()
    try:
        yield address
    finally:
        stop.set()
        process.join(5)
        process.kill()
        process.join()


# -- agents -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Answer:
    """What came, and when."""

    size: int
    """Bytes of its body."""
    first: float
    """Seconds from the end of the request's head to the first byte of the answer's body."""
    whole: float
    """Seconds to its last one."""


class Line:
    """An agent's connection."""

    def __init__(self, name: str, connection: ssl.SSLSocket) -> None:
        self._name = name
        self.connection = connection
        self._buffer = bytearray(PIECE)
        self._paths = itertools.cycle(range(500))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def send(self, method: str = "GET", target: str = "", length: int = 0, kind: str = "") -> None:
        """A request's head; by itself one for a file of 8 KiB."""
        target = target or f"/puppet/v3/file_content/modules/app/file-{next(self._paths)}?environment=production"
        head = f"{method} {target} HTTP/1.1\r\nHost: {self._name}:8140\r\nAccept: application/octet-stream\r\n"
        if method != "GET":
            head += f"Content-Type: {kind or 'application/octet-stream'}\r\nContent-Length: {length}\r\n"
        self.connection.sendall(
            f"{head}X-Puppet-Version: 8.10.0\r\nUser-Agent: Puppet/8.10.0 Ruby/3.2.5\r\n\r\n".encode()
        )

    def read(self, began: float) -> Answer:
        """The answer. Raises ConnectionError."""
        got = b""
        while (end := got.find(b"\r\n\r\n")) < 0 or len(got) == end + 4:
            data = self.connection.recv(65536)
            if not data:
                raise ConnectionError(f"closed after {got[:300]!r}")
            got += data
        first = time.monotonic() - began
        found = _LENGTH.search(got)
        if not got.startswith(b"HTTP/1.1 200") or not found:
            raise ConnectionError(got[:300].decode(errors="replace"))
        size = int(found[1])
        left = size - (len(got) - end - 4)
        while left:
            number = self.connection.recv_into(self._buffer, min(left, PIECE))
            if not number:
                raise ConnectionError(f"closed with {left} bytes to come")
            left -= number
        return Answer(size, first, time.monotonic() - began)

    def ask(self, method: str = "GET", target: str = "", body: bytes = b"", kind: str = "") -> Answer:
        """Ask, and read the answer."""
        self.send(method, target, len(body), kind)
        began = time.monotonic()
        if body:
            self.connection.sendall(body)
        return self.read(began)

    def put(self, target: str, size: int) -> Answer:
        """Send so many bytes that nobody else sends."""
        self.send("PUT", target, size)
        began, piece, left = time.monotonic(), os.urandom(PIECE), size
        for number in itertools.count():
            if left <= 0:
                break
            self.connection.sendall((number.to_bytes(8) + piece[8:])[:left])
            left -= PIECE
        return self.read(began)


@dataclass(frozen=True)
class Caller:
    """Asks through a proxy, with an agent's certificate."""

    address: tuple[str, int]
    name: str
    place: SslDirPaths
    source: str = ""
    """The address to connect from; empty: the system's choice."""

    def connect(self) -> Line:
        context = ssl.create_default_context(cafile=str(self.place.ca))
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        context.check_hostname = False
        context.load_cert_chain(str(self.place.certificate), str(self.place.key))
        raw = socket.create_connection(self.address, 60, (self.source, 0) if self.source else None)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return Line(self.name, context.wrap_socket(raw, server_hostname=self.name))


def enrolled(lab: Lab, certname: str, bits: int | None) -> SslDirPaths:
    """An agent with an RSA key of so many bits (Puppet's default is 4096), or with an EC key."""
    place, key = SslDirPaths(lab.directory / certname, certname), pki.new_key(bits)
    place.create()
    certificate = lab.ca._issue(key.public_key(), certname, ())
    pki.write_private(place.key, pki.key_pem(key))
    place.certificate.write_bytes(pki.pem(certificate))
    place.ca.write_bytes(lab.ca.ca_bundle)
    pki.write_private(lab.identities / f"{certname}.pem", place.key.read_bytes() + place.certificate.read_bytes())
    return place


# -- roads ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Cpu:
    """Seconds of CPU so far."""

    serving: tuple[float, ...]
    """Of each process that serves agents."""
    others: float
    """Of all the processes that they started besides."""

    def __sub__(self, before: Cpu) -> Cpu:
        serving = (now - then for now, then in zip(self.serving, before.serving, strict=True))
        return Cpu(tuple(serving), self.others - before.others)


@dataclass(frozen=True)
class Road:
    """A running proxy."""

    name: str
    address: tuple[str, int]
    pid: int

    def cpu(self) -> Cpu:
        """What it used so far."""
        below = _below(self.pid)
        workers = [
            pid for pid in below if b"inspector.proxy.engine.server" in Path(f"/proc/{pid}/cmdline").read_bytes()
        ]
        serving = workers or [self.pid]
        return Cpu(tuple(map(_cpu, serving)), sum(_cpu(pid) for pid in (self.pid, *below) if pid not in serving))


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _cpu(pid: int) -> float:
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / TICK


def _below(pid: int) -> list[int]:
    """The processes that it started, and those that they did."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    children = [int(part) for thread in threads for part in (thread / "children").read_text().split()]
    return [process for child in children for process in (child, *_below(child))]


@contextmanager
def stock(
    lab: Lab, agent: SslDirPaths, target: tuple[str, int], name: str = STOCK, *, records: bool = True, **more: str
) -> Iterator[Road]:
    """mitmproxy as it comes: no checks, and a fixed certificate for whoever comes. ``records``: all flows to a file."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    with tempfile.TemporaryDirectory() as made:
        folder, shown = Path(made), SslDirPaths(lab.proxy_ssldir, lab.proxy_name)
        (folder / "agent.pem").write_bytes(agent.key.read_bytes() + agent.certificate.read_bytes())
        (folder / "shown.pem").write_bytes(shown.key.read_bytes() + shown.certificate.read_bytes())
        options = {
            "confdir": folder, "client_certs": folder / "agent.pem", "certs": f"*={folder}/shown.pem",
            "ssl_verify_upstream_trusted_ca": agent.ca, "flow_detail": 0, "keep_host_header": "true",
            "ssl_insecure": "true", "request_client_cert": "true", "connection_strategy": "lazy",
        } | more  # fmt: skip
        command = [str(Path(sys.executable).with_name("mitmdump")), "--quiet", "--listen-host", "127.0.0.1"]
        command += ["-p", f"{port}", "--mode", f"reverse:https://127.0.0.1:{target[1]}"]
        if records:
            command += ["-w", str(folder / "flows.mitm")]
        for option, value in options.items():
            command += ["--set", f"{option}={value}"]
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
        try:
            for _ in range(200):
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    time.sleep(0.1)
            yield Road(name, ("127.0.0.1", port), process.pid)
        finally:
            process.terminate()
            process.wait(20)


@contextmanager
def ours(
    lab: Lab,
    target: tuple[str, int],
    name: str,
    *arguments: str,
    own: bool = False,
    **options: str,
) -> Iterator[Road]:
    """Ours, with its checks, its recording and its analysis."""
    with tempfile.TemporaryDirectory() as folder:
        given = demo.options(lab, Path(folder, "capture.sqlite")) | {"puppet_master": f"127.0.0.1:{target[1]}"}
        with Proxy({**given, **options}, arguments=arguments, own=own) as proxy:
            yield Road(name, proxy.address, proxy.process.pid)

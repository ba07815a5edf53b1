"""What the proxy costs an exchange and a connection: `python -m tests.bench.proxy [REQUESTS]` (some three minutes).

One agent asks a fast master for files of 8 KiB over mutual TLS, through each road in turns: mitmproxy as it comes with
its own recording on (`mitmdump -w`), and ours. Counted is the CPU time of the proxy's process, from before the first
to after the last of many requests; the process that understands what is recorded is counted apart. Prints the
tables of docs/performance.md, ratios first.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import ssl
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from inspector import demo, pki
from inspector.lab import Lab
from inspector.pki import SslDir
from inspector.proxy import Proxy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.synchronize import Event

SIZE = 8192
"""Bytes of an answer."""
HEAD = f"HTTP/1.1 200 OK\r\nContent-Type: application/octet-stream\r\nContent-Length: {SIZE}\r\n\r\n".encode()
TICK = os.sysconf("SC_CLK_TCK")
STOCK = "`mitmdump -w`"
AGENT = "agent.lab.example"
KEY = 4096
"""Bits of the agent's key (Puppet's default), with which it and the proxy sign once a connection."""


# -- a master that costs next to nothing ------------------------------------------------------------------


def serve(place: SslDir, port: socket.socket, stop: Event) -> None:
    """Answer every request with 8 KiB that no other answer has; a thread a connection."""
    import threading

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(place.ca))
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    context.verify_mode = ssl.CERT_OPTIONAL
    context.load_cert_chain(str(place.certificate), str(place.key))

    def talk(raw: socket.socket) -> None:
        number = 0
        try:
            with context.wrap_socket(raw, server_side=True) as connection:
                waiting = b""
                while data := connection.recv(65536):
                    waiting += data
                    while (end := waiting.find(b"\r\n\r\n")) >= 0:
                        waiting = waiting[end + 4 :]
                        number += 1
                        seed = os.urandom(32).hex().encode()
                        body = (seed * (SIZE // len(seed)))[:SIZE]
                        connection.sendall(HEAD + body)
        except (OSError, ssl.SSLError):
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


@contextmanager
def master(place: SslDir) -> Iterator[tuple[str, int]]:
    """A running one."""
    port = socket.create_server(("127.0.0.1", 0), backlog=256)
    context = multiprocessing.get_context("fork")
    stop = context.Event()
    process = context.Process(target=serve, args=(place, port, stop))
    process.start()
    address: tuple[str, int] = port.getsockname()
    port.close()
    try:
        yield address
    finally:
        stop.set()
        process.join(5)
        process.kill()


# -- an agent ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Caller:
    """Asks through a proxy, with an agent's certificate."""

    address: tuple[str, int]
    name: str
    place: SslDir

    def connect(self) -> ssl.SSLSocket:
        context = ssl.create_default_context(cafile=str(self.place.ca))
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        context.check_hostname = False
        context.load_cert_chain(str(self.place.certificate), str(self.place.key))
        raw = socket.create_connection(self.address, timeout=60)
        raw.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return context.wrap_socket(raw, server_hostname=self.name)

    def ask(self, requests: int) -> float:
        """Seconds for so many requests on one connection."""
        with self.connect() as connection:
            self._ask(connection, 0)
            began = time.monotonic()
            for number in range(requests):
                self._ask(connection, number)
            return time.monotonic() - began

    def _ask(self, connection: ssl.SSLSocket, number: int) -> None:
        path = f"/puppet/v3/file_content/modules/app/file-{number % 500}?environment=production"
        head = f"GET {path} HTTP/1.1\r\nHost: {self.name}:8140\r\nAccept: application/octet-stream\r\n"
        connection.sendall(f"{head}X-Puppet-Version: 8.10.0\r\nUser-Agent: Puppet/8.10.0 Ruby/3.2.5\r\n\r\n".encode())
        got = b""
        while b"\r\n\r\n" not in got or len(got.partition(b"\r\n\r\n")[2]) < SIZE:
            data = connection.recv(65536)
            if not data:
                raise ConnectionError(f"closed after {got[:300]!r}")
            got += data
        if not got.startswith(b"HTTP/1.1 200"):
            raise ConnectionError(got[:300].decode())


def enrolled(lab: Lab) -> SslDir:
    """An agent with a key such as Puppet makes."""
    place, key = SslDir(lab.directory / "agent", AGENT), pki.new_key(KEY)
    place.create()
    certificate = lab.ca._issue(key.public_key(), AGENT, ())
    pki.write_private(place.key, pki.key_pem(key))
    place.certificate.write_bytes(pki.pem(certificate))
    place.ca.write_bytes(lab.ca.ca_bundle)
    pki.write_private(lab.identities / f"{AGENT}.pem", place.key.read_bytes() + place.certificate.read_bytes())
    return place


# -- roads ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Road:
    """A running proxy."""

    name: str
    address: tuple[str, int]
    pid: int
    recorded: Path

    def cpu(self) -> tuple[float, float]:
        """Seconds of CPU so far: of the proxy, and of the processes that it started."""
        return _cpu(self.pid), sum(map(_cpu, _children(self.pid)))


def _stat(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def _cpu(pid: int) -> float:
    fields = _stat(pid)
    return (int(fields[11]) + int(fields[12])) / TICK


def _children(pid: int) -> list[int]:
    found = []
    for each in Path("/proc").iterdir():
        try:
            if each.name.isdigit() and int(_stat(int(each.name))[1]) == pid:
                found.append(int(each.name))
        except OSError:
            continue
    return found


@contextmanager
def stock(lab: Lab, agent: SslDir, target: tuple[str, int], folder: Path) -> Iterator[Road]:
    """mitmproxy as it comes, which records: no checks, and a fixed certificate for whoever comes."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port = probe.getsockname()[1]
    shown = SslDir(lab.proxy_ssldir, lab.proxy_name)
    (folder / "agent.pem").write_bytes(agent.key.read_bytes() + agent.certificate.read_bytes())
    (folder / "shown.pem").write_bytes(shown.key.read_bytes() + shown.certificate.read_bytes())
    options = {
        "confdir": folder, "client_certs": folder / "agent.pem", "certs": f"*={folder}/shown.pem",
        "ssl_verify_upstream_trusted_ca": agent.ca, "flow_detail": 0, "keep_host_header": "true",
        "ssl_insecure": "true", "request_client_cert": "true", "connection_strategy": "lazy",
    }  # fmt: skip
    command = [
        str(Path(sys.executable).with_name("mitmdump")),
        "--quiet",
        "--listen-host",
        "127.0.0.1",
        "-p",
        f"{port}",
    ]
    command += ["--mode", f"reverse:https://127.0.0.1:{target[1]}", "-w", str(folder / "flows.mitm")]
    for name, value in options.items():
        command += ["--set", f"{name}={value}"]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    try:
        for _ in range(200):
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                time.sleep(0.1)
        yield Road(STOCK, ("127.0.0.1", port), process.pid, folder / "flows.mitm")
    finally:
        process.terminate()
        process.wait(20)


@contextmanager
def ours(
    lab: Lab, target: tuple[str, int], folder: Path, name: str, *, own: bool = False, **options: str
) -> Iterator[Road]:
    """Ours, with its checks, its recording and its analysis."""
    capture = folder / "capture.sqlite"
    given = demo.options(lab, capture) | {"puppet_master": f"127.0.0.1:{target[1]}"} | options
    with Proxy(given, own=own) as proxy:
        yield Road(name, proxy.address, proxy.process.pid, capture)


# -- figures ----------------------------------------------------------------------------------------------


def requests(road: Road, caller: Caller, number: int) -> tuple[float, float, float]:
    """CPU of the proxy and of its children, and wall time, in seconds a request."""
    before = road.cpu()
    taken = caller.ask(number)
    time.sleep(1.0)  # what is recorded in batches is part of it
    after = road.cpu()
    return (after[0] - before[0]) / number, (after[1] - before[1]) / number, taken / number


def connections(road: Road, caller: Caller, number: int) -> tuple[float, float, float]:
    """The same a connection that carries one request."""
    before, began = road.cpu(), time.monotonic()
    for _ in range(number):
        with caller.connect() as connection:
            caller._ask(connection, 0)
    taken = time.monotonic() - began
    time.sleep(1.0)
    after = road.cpu()
    return (after[0] - before[0]) / number, (after[1] - before[1]) / number, taken / number


def bench(number: int, turns: int = 3) -> Iterator[str]:
    """The tables."""
    with ExitStack() as stack:
        lab = stack.enter_context(Lab(autosign=True))
        place = enrolled(lab)
        target = stack.enter_context(master(SslDir(lab.directory / "master", lab.master_name)))
        roads = []
        for each in range(3):
            folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
            if each == 0:
                roads.append(stack.enter_context(stock(lab, place, target, folder)))
            elif each == 1:
                roads.append(stack.enter_context(ours(lab, target, folder, "`mitmdump -s addons/puppet.py`")))
            else:
                roads.append(stack.enter_context(ours(lab, target, folder, "`puppet-inspector proxy`", own=True)))
        for title, count, measure in (
            ("request on a kept connection", number, requests),
            ("new connection with one request", number // 20, connections),
        ):
            figures: dict[str, list[tuple[float, float, float]]] = {road.name: [] for road in roads}
            for turn in range(-1, turns):
                for road in roads:
                    found = measure(
                        road, Caller(road.address, lab.proxy_name, place), count if turn >= 0 else count // 10
                    )
                    if turn >= 0:
                        figures[road.name].append(found)
            yield f"| {title} | to {STOCK} | CPU of the proxy | of its other process | wall time |"
            yield "|---|---|---|---|---|"
            base = statistics.median(each[0] for each in figures[STOCK])
            for name, taken in figures.items():
                cpu, others, wall = (statistics.median(column) * 1e6 for column in zip(*taken, strict=True))
                yield f"| {name} | {cpu / base / 1e6:.2f} | {cpu:,.0f} µs | {others:,.0f} µs | {wall:,.0f} µs |"
            yield ""


def main() -> None:
    """Measure and print."""
    for line in bench(int(sys.argv[1]) if sys.argv[1:] else 5000):
        print(line, flush=True)


if __name__ == "__main__":
    main()

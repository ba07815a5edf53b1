"""A command of a node, run directly and through `puppet-inspector run`, and what is the same of both.

Both nodes are new and alike. What is compared is normalized: names, times, ids, and what stands for itself in a
connection through an HTTP proxy (the answer 502 around the reason).
"""

from __future__ import annotations

import base64
import difflib
import json
import re
import select
import shutil
import socket
import ssl
import struct
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inspector import installation
from inspector.host import pki
from inspector.model import RUN_CA
from tests.real.agent import RealAgent
from tests.real.machine import write_puppet_conf

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from datetime import timedelta

    from tests.real.puppet import RealMaster

    type Prepare = Callable[[Node], None]
    type Words = Sequence[str] | Callable[[Node], Sequence[str]]

AGENT = ("puppet", "agent", "-t", "--color=false", "--waitforcert", "0")
_BLOCK = re.compile(rb"-----BEGIN (?:CERTIFICATE|X509 CRL)-----([^-]+)-----END")
_NORMAL = (
    (r"\d+(\.\d+)? seconds", "N seconds"),
    (r"configuration version '\d+'", "configuration version 'V'"),
    (r"transaction_uuid=[0-9a-f-]{36}", "transaction_uuid=ID"),
    (r"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d( UTC|\S*)", "TIME"),
    (r"([0-9A-F]{2}:){31}[0-9A-F]{2}", "FINGERPRINT"),
    (r" peeraddr=\S+", ""),
    (r'connect\(2\) for ("\S+" port \d+|[0-9.]+:\d+)', "connect(2) for SERVER"),  # as this or that Ruby has it
)


class Node:
    """A node with files of its own."""

    def __init__(self, master: RealMaster, base: Path, certname: str, agent: RealAgent | None = None) -> None:
        """``agent`` is below ``base``, and of another release than this machine's."""
        self.master, self.certname = master, certname
        self.agent = agent or RealAgent(base / certname, certname)
        self.base, self.ssldir = self.agent.base, self.agent.ssldir
        self.ca, self.crl = self.ssldir / "certs/ca.pem", self.ssldir / "crl.pem"
        self.certificate = self.ssldir / f"certs/{certname}.pem"
        self.key = self.ssldir / f"private_keys/{certname}.pem"
        self.environment: dict[str, str] = dict(self.agent._environment)
        self.configure()

    def configure(self, **settings: object) -> None:
        """Write puppet.conf; ``settings`` replace those for this master."""
        own = {"server": self.master.name, "serverport": self.master.port}
        write_puppet_conf(self.agent.confdir, {"main": {**self.agent._main, **own, **settings}})

    def enrol(self, lifetime: timedelta = pki.LEAF_LIFETIME, *, signed: bool = False) -> None:
        """Give it a certificate of the master's CA, and what belongs to it. ``signed``: the CA knows of it."""
        authority, key = pki.read_authority(self.master.cadir), pki.new_key(2048)
        certificate = pki.pem(pki.sign(authority, key.public_key(), self.certname, lifetime=lifetime))
        for path in (self.certificate, self.key):
            path.parent.mkdir(exist_ok=True)
        self.certificate.write_bytes(certificate)
        self.key.write_bytes(pki.key_pem(key))
        shutil.copyfile(self.master.ssldir / "certs/ca.pem", self.ca)
        shutil.copyfile(self.master.cadir / "ca_crl.pem", self.crl)
        if signed:
            (self.master.cadir / f"signed/{self.certname}.pem").write_bytes(certificate)

    def words(self, words: Words) -> list[str]:
        """A command of this node's."""
        return [*(words(self) if callable(words) else words), "--confdir", str(self.agent.confdir)]

    def popen(self, command: Sequence[str]) -> subprocess.Popen[str]:
        """Start a command; each of its processes can be told by its working directory."""
        pipe = subprocess.PIPE
        return subprocess.Popen(command, env=self.environment, cwd=self.base, stdin=subprocess.DEVNULL, stdout=pipe,
                                stderr=pipe, text=True, errors="replace")  # fmt: skip

    def normal(self, text: str) -> str:
        """What is printed, without what no two nodes or runs have in common."""
        text = text.replace(self.certname, "NODE").replace(str(self.base), "BASE")
        text = re.sub(r'502 "(.*)"', lambda found: found[1].replace('\\"', '"'), text)
        for pattern, replacement in _NORMAL:
            text = re.sub(pattern, replacement, text)
        return text

    def files(self) -> dict[str, tuple[int, int, int, bytes]]:
        """The ssldir: modes, owners, and what the agent has learned."""
        found = {}
        for path in self.ssldir.rglob("*"):
            status, learned = path.stat(), path in (self.ca, self.crl)
            name = str(path.relative_to(self.ssldir)).replace(self.certname, "NODE")
            found[name] = (status.st_mode, status.st_uid, status.st_gid, path.read_bytes() if learned else b"")
        return found

    def trusts_a_run(self) -> bool:
        """Whether anything in its ssldir is of the CA of a run."""
        files = (path for path in self.ssldir.rglob("*") if path.is_file())
        blocks = (block for file in files for block in _BLOCK.findall(file.read_bytes()))
        return any(RUN_CA.encode() in base64.b64decode(block) for block in blocks)

    def processes(self) -> dict[int, str]:
        """The processes that were started for this node and still run, with their commands."""
        found = {}
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if (entry / "cwd").resolve().is_relative_to(self.base):
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        return found

    def is_quiet(self, processes: Iterable[int], seconds: float = 60) -> bool:
        """Whether all its processes end within these seconds, and these are reaped: a lock of one that is not counts
        for Puppet."""
        deadline = time.monotonic() + seconds
        while self.processes() or any(Path(f"/proc/{process}").exists() for process in processes):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.1)
        return True


def blocks(path: Path) -> list[bytes]:
    """The certificates or CRLs of a file, in PEM."""
    return re.findall(rb"-----BEGIN[^-]+-----[^-]+-----END[^-]+-----\n", path.read_bytes())


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended."""

    status: int
    out: str
    err: str
    files: dict[str, tuple[int, int, int, bytes]]

    def differences(self, other: Ended) -> Iterator[str]:
        """How another one ended in another way."""
        if self.status != other.status:
            yield f"exit status {self.status}, and {other.status}"
        for one, another in ((self.out, other.out), (self.err, other.err)):
            lines = difflib.unified_diff(one.splitlines(), another.splitlines(), "one", "other", lineterm="", n=0)
            yield from (line for line in lines if not line.startswith(("---", "+++", "@@")))
        for name in sorted({*self.files, *other.files}):
            if self.files.get(name) != other.files.get(name):
                yield f"{name}: {self.files.get(name)}, and {other.files.get(name)}"


@dataclass(frozen=True, slots=True)
class Inspected:
    """What `run` says besides what its command says."""

    node: Node
    ended: Ended
    runs: list[dict[str, Any]] = field(default_factory=list)
    """As ``runs --json`` has them."""
    notes: str = ""
    """On standard error."""

    @property
    def verdicts(self) -> list[tuple[str, str | None]]:
        """Of each run its outcome, and the rule of its cause."""
        return [(run["outcome"], run["verdict"] and run["verdict"]["cause"]) for run in self.runs]


def directly(node: Node, words: Words, before: Sequence[str] = ()) -> Ended:
    """Run a command; ``before`` are words to begin it with."""
    process = node.popen([*before, *node.words(words)])
    out, err = process.communicate(timeout=300)
    return Ended(process.returncode, node.normal(out), node.normal(err), node.files())


def run_command(node: Node, words: Words, options: Sequence[str] = (), before: Sequence[str] = ()) -> list[str]:
    """The command that runs a command through `run`."""
    capture = str(node.base / "capture.sqlite")
    own = installation.command("inspector.cli.main", "run", *options, "-o", capture, "--json", "--")
    return [*before, *own, *node.words(words)]


def inspected(node: Node, words: Words, options: Sequence[str] = (), before: Sequence[str] = ()) -> Inspected:
    """Run a command through `run`."""
    process = node.popen(run_command(node, words, options, before))
    out, err = process.communicate(timeout=300)
    return split(node, process.returncode, out, err)


def split(node: Node, status: int, out: str, err: str) -> Inspected:
    """Separate what `run` has printed from what its command has."""
    found = re.search(r"^\[(\]|\n.*^\])\n\Z", out, re.DOTALL | re.MULTILINE)
    printed, document = (out[: found.start()], found[0]) if found else (out, "[]")
    ours = re.compile(r"^puppet-inspector: .*\n(?:  .*\n)*", re.MULTILINE)
    ended = Ended(status, node.normal(printed), node.normal(ours.sub("", err)), node.files())
    return Inspected(node, ended, json.loads(document), "".join(ours.findall(err)))


class Theatre:
    """Plays a command directly and through `run`."""

    def __init__(self, master: RealMaster, base: Path) -> None:
        self.master, self.base = master, base

    def node(self, name: str) -> Node:
        """A new node; the CA signs what its name begins with "auto"."""
        return Node(self.master, self.base, f"{name}.example")

    def same(
        self,
        name: str,
        prepare: Prepare = lambda _: None,
        words: Words = AGENT,
        options: Sequence[str] = (),
        before: Sequence[str] = (),
        *,
        status: int,
    ) -> Inspected:
        """Play a command on both roads at once, each with a node that is prepared before, and check that it is the
        same; return what `run` printed besides."""
        return self.again(self.pair(name, prepare), words, options, before, status=status)

    def pair(self, name: str, prepare: Prepare = lambda _: None) -> tuple[Node, Node]:
        """Two new nodes that are alike."""
        nodes = self.node(f"{name}-d"), self.node(f"{name}-r")
        for node in nodes:
            prepare(node)
        return nodes

    @staticmethod
    def again(
        nodes: tuple[Node, Node], words: Words = AGENT, options: Sequence[str] = (), before: Sequence[str] = (),
        *, status: int,
    ) -> Inspected:  # fmt: skip
        """Play a command with these nodes, the first directly."""
        with ThreadPoolExecutor() as pool:
            direct = pool.submit(directly, nodes[0], words, before)
            through = pool.submit(inspected, nodes[1], words, options, before)
            expected, found = direct.result(), through.result()
        assert expected.status == status, expected
        assert (differences := [*expected.differences(found.ended)]) == [], "\n".join([*differences, found.notes])
        assert not nodes[1].trusts_a_run()
        return found


# -- servers between a node and its master ----------------------------------------------------------------------------


def _join(one: socket.socket, other: socket.socket) -> None:
    """Pass bytes on until one side ends. In one thread: two must not use one TLS connection."""
    others = {one: other, other: one}
    with one, other:
        while True:
            pending = [each for each in others if isinstance(each, ssl.SSLSocket) and each.pending()]
            for source in pending or select.select(list(others), (), ())[0]:
                source.settimeout(0)
                try:
                    data = source.recv(65536)
                except ssl.SSLWantReadError:  # a session ticket
                    continue
                if not data:
                    return
                others[source].settimeout(60)
                others[source].sendall(data)


@contextmanager
def serving(host: str, serve: Callable[[socket.socket], None]) -> Iterator[int]:
    """Serve each connection with a thread; yields the port."""

    def served(connection: socket.socket) -> None:
        with suppress(OSError), connection:
            serve(connection)

    def accept() -> None:
        with suppress(OSError):
            while True:
                threading.Thread(target=served, args=(listening.accept()[0],), daemon=True).start()

    with closing(socket.create_server((host, 0))) as listening:
        threading.Thread(target=accept, daemon=True).start()
        try:
            yield listening.getsockname()[1]
        finally:
            listening.shutdown(socket.SHUT_RDWR)


@contextmanager
def site_proxy(allowed: str, master: RealMaster) -> Iterator[int]:
    """An HTTP proxy that connects with one server only, which is the master, and refuses all else as a firewall does;
    yields its port."""

    def serve(connection: socket.socket) -> None:
        head = b""
        while not head.endswith(b"\r\n\r\n") and (byte := connection.recv(1)):
            head += byte
        if not head.startswith(f"CONNECT {allowed} ".encode()):
            connection.sendall(b"HTTP/1.1 403 Forbidden by the firewall\r\nContent-Length: 0\r\n\r\n")
            return
        there = socket.create_connection((master.host, master.port))
        connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
        _join(connection, there)

    with serving("127.0.0.1", serve) as port:
        yield port


@contextmanager
def srv_records(host: str, target: str, port: int) -> Iterator[None]:
    """A DNS server whose SRV records all name one server, and which knows nothing else."""
    question = re.compile(rb"(?:[^\x00].*?)?\x00(?P<type>..)\x00\x01", re.DOTALL)
    name = b"".join(bytes((len(word),)) + word.encode() for word in target.split(".")) + b"\0"
    record = struct.pack(">HHH", 0, 0, port) + name

    over = threading.Event()

    def answer() -> None:
        while not over.is_set():
            with suppress(TimeoutError):
                query, peer = server.recvfrom(2000)
                asked = question.match(query, 12)
                assert asked
                known = asked["type"] == b"\0\x21"
                head = struct.pack(">HHHHH", 0x8180 if known else 0x8183, 1, known, 0, 0)
                found = b"\xc0\x0c\0\x21\0\1" + struct.pack(">IH", 60, len(record)) + record if known else b""
                server.sendto(query[:2] + head + asked[0] + found, peer)

    with closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as server:
        server.bind((host, 53))
        server.settimeout(0.2)  # one that is closed while somebody reads from it keeps its port
        thread = threading.Thread(target=answer)
        thread.start()
        try:
            yield
        finally:
            over.set()
            thread.join()


@contextmanager
def another_name(master: RealMaster, name: str) -> Iterator[int]:
    """A server of another name, with a certificate of the master's CA, before the same master; yields its port."""
    front = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    front.load_cert_chain(master.ssldir / f"certs/{name}.pem", master.ssldir / f"private_keys/{name}.pem")
    back = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    back.check_hostname, back.verify_mode = False, ssl.CERT_NONE

    def serve(connection: socket.socket) -> None:
        agent = front.wrap_socket(connection, server_side=True)
        _join(agent, back.wrap_socket(socket.create_connection((master.host, master.port))))

    with serving("127.0.0.1", serve) as port:
        yield port

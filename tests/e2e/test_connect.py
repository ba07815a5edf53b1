"""`run` with the lab's agent, which uses the proxy as its HTTP proxy: nothing of us stays on its node."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cryptography import x509

from inspector.host.pki import SslDirPaths
from inspector.lab.ca import LabCA
from inspector.lab.master import LabMaster
from inspector.model import RUN_CA, Handshake
from inspector.protocol.endpoints import match
from inspector.proxy.connect.interception import ADDED
from tests.support import node_agents, proxies
from tests.support.node_agents import NAME, OF_THE_LAB
from tests.support.waiting import eventually, is_running

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inspector.model import Exchange


@dataclass
class Node:
    """A node and its master."""

    folder: Path
    ca: LabCA
    master: LabMaster
    place: SslDirPaths

    @property
    def capture(self) -> Path:
        return self.folder / "run.sqlite"

    @property
    def files(self) -> dict[str, bytes]:
        """What is in the ssldir."""
        return {
            str(path.relative_to(self.place.path)): path.read_bytes()
            for path in self.place.path.rglob("*")
            if path.is_file()
        }

    def command(self, *options: str) -> list[str]:
        confdir = node_agents.configure(self.folder / "conf", self.place, self.master.address)
        program = node_agents.install(self.folder, OF_THE_LAB, self.place)
        return [str(program), "agent", "-t", "--confdir", str(confdir), *options]

    def start(self, command: list[str]) -> subprocess.Popen[str]:
        """Start a command; what is temporary goes to a directory of its own."""
        temporary = self.folder / "tmp"
        temporary.mkdir(exist_ok=True)
        environment = {
            **{name: value for name, value in os.environ.items() if name.lower() not in ("http_proxy", "no_proxy")},
            "STATE": str(self.folder / "state"), "TMPDIR": str(temporary), "COLUMNS": "200",
        }  # fmt: skip
        (self.folder / "state").mkdir(exist_ok=True)
        return subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        )

    def run(self, *options: str) -> subprocess.CompletedProcess[str]:
        """Run the agent through the proxy."""
        inspected = [sys.executable, "-m", "inspector.cli", "run", "-o", str(self.capture), *options, "--"]
        return self.done([*inspected, *self.command()])

    def forget(self) -> None:
        """Let the next run be the agent's first one."""
        shutil.rmtree(self.folder / "state")

    def directly(self) -> subprocess.CompletedProcess[str]:
        """Run the agent without."""
        return self.done(self.command())

    def done(self, command: list[str]) -> subprocess.CompletedProcess[str]:
        process = self.start(command)
        out, err = process.communicate(timeout=300)
        return subprocess.CompletedProcess(command, process.returncode, out, err)


@pytest.fixture
def node(answers: list[Exchange], tmp_path: Path) -> Iterator[Node]:
    """A fresh node."""
    ca = LabCA("puppet.example", autosign=True)
    with LabMaster(ca, ca.enrol(tmp_path / "master", "puppet.example", [NAME]), answers) as master:
        yield Node(tmp_path, ca, master, SslDirPaths(tmp_path / "ssl", NAME))


@pytest.fixture
def enrolled(node: Node) -> Node:
    node.ca.enrol(node.place.path, NAME)
    return node


def kinds(exchanges: list[Exchange]) -> list[str]:
    found = [match(exchange.request.method, exchange.request.target) for exchange in exchanges]
    return [each.endpoint.name if each else "?" for each in found]


def nothing_stays(node: Node) -> None:
    """Whether neither the node's files nor the directory for temporary ones have anything of ours."""
    for name, content in node.files.items():
        assert RUN_CA.encode() not in content, name
        if b"CERTIFICATE" in content:
            for certificate in x509.load_pem_x509_certificates(content):
                assert "puppet-inspector" not in certificate.issuer.rfc4514_string(), name
        if b"X509 CRL" in content:
            assert "puppet-inspector" not in x509.load_pem_x509_crl(content).issuer.rfc4514_string(), name
    assert list((node.folder / "tmp").iterdir()) == []


def test_an_enrolled_agent_runs_and_its_files_stay_as_they_are(enrolled: Node) -> None:
    before = enrolled.files
    done = enrolled.run()
    assert done.returncode in (0, 2), done.stdout + done.stderr
    assert "step by step" not in done.stdout
    assert enrolled.files == before
    nothing_stays(enrolled)
    exchanges = node_agents.exchanges(enrolled.capture)
    assert {"catalog", "report"} <= set(kinds(exchanges))
    assert {received.certname for received in enrolled.master.received} == {NAME}
    for exchange in exchanges:
        assert exchange.error is None
        assert exchange.identity
        assert (exchange.identity.certname, exchange.agent.node, exchange.added) == (NAME, NAME, "")
        assert exchange.agent.for_one_run
        assert exchange.master
        assert len(exchange.master.peer_chain) > 0


def test_a_fresh_agent_is_enrolled_and_nothing_of_ours_stays(node: Node) -> None:
    done = node.run()
    assert done.returncode in (0, 2), done.stdout + done.stderr
    *_, last = done.stdout.splitlines()
    assert last.startswith("the bootstrap, step by step: ")
    assert last.endswith(f" -m inspector.cli bootstrap {node.capture}"), "as it was started"
    assert (node.place.ca.read_bytes(), node.place.crl.read_bytes()) == (node.ca.ca_bundle, node.ca.crl_bundle)
    assert node.place.certificate.read_bytes() == node.ca.certificate(NAME)
    nothing_stays(node)
    exchanges = node_agents.exchanges(node.capture)
    names = kinds(exchanges)
    assert names[:4] == ["ca", "crl", "certificate_request", "certificate"]
    assert {"catalog", "report"} <= set(names)
    for name, exchange in zip(names, exchanges, strict=True):
        assert exchange.agent.node == NAME
        assert exchange.response
        assert exchange.added == (ADDED if name in ("ca", "crl") else ""), name
    bodies = {
        name: exchange.response.body for name, exchange in zip(names, exchanges, strict=True) if exchange.response
    }
    assert (bodies["ca"], bodies["crl"]) == (node.ca.ca_bundle, node.ca.crl_bundle)
    again = node.directly()
    assert again.returncode in (0, 2), "and without the proxy it goes on as if there had been none"


def test_what_was_sent_is_what_a_direct_run_sends(enrolled: Node) -> None:
    through = enrolled.run()
    seen = [
        (received.request.method, received.request.path, received.certname) for received in enrolled.master.received
    ]
    enrolled.forget()
    enrolled.master.received.clear()
    directly = enrolled.directly()
    assert through.returncode == directly.returncode
    assert seen == [
        (received.request.method, received.request.path, received.certname) for received in enrolled.master.received
    ]


@pytest.mark.parametrize("trouble", ["revoked", "wrong CA", "expired CRL"])
def test_an_agent_that_fails_prints_what_it_prints_in_a_direct_run(trouble: str, enrolled: Node) -> None:
    match trouble:
        case "revoked":
            enrolled.ca.revoke(NAME)
        case "wrong CA":
            other = LabCA("other.example")
            enrolled.place.ca.write_bytes(other.ca_bundle)
            enrolled.place.crl.write_bytes(other.crl_bundle)
        case "expired CRL":
            enrolled.ca.publish_crl(datetime(2020, 1, 1, tzinfo=UTC), datetime(2020, 1, 2, tzinfo=UTC))
            enrolled.place.crl.write_bytes(enrolled.ca.crl_bundle)
            enrolled.ca.publish_crl()
    before = enrolled.files
    direct = enrolled.directly()
    enrolled.forget()
    through = enrolled.run()
    assert direct.returncode == 1
    assert through.returncode == 1
    assert "step by step" not in through.stdout
    _, *errors = direct.stdout.splitlines()
    assert errors
    assert through.stdout.splitlines()[1 : len(errors) + 1] == errors
    assert enrolled.files == before
    nothing_stays(enrolled)
    records = proxies.records(enrolled.capture)
    assert any(isinstance(record, Handshake) for record in records)


def test_an_agent_whose_master_is_gone_says_so(enrolled: Node) -> None:
    enrolled.master.__exit__()
    through = enrolled.run()
    assert through.returncode == 1
    assert (
        f"502 Failed to open TCP connection to {NAME}:{enrolled.master.address[1]} (Connection refused"
        in through.stdout
    )
    exchanges = node_agents.exchanges(enrolled.capture)
    assert {(exchange.request.method, exchange.agent.node) for exchange in exchanges} == {("CONNECT", NAME)}
    nothing_stays(enrolled)


PLAIN = f"""#!{sys.executable}
import sys, urllib.request
if "--version" in sys.argv:
    sys.exit(print("7.23.0"))
print(urllib.request.urlopen("http://elsewhere.example/page", timeout=60).read().decode())
"""


def test_what_an_agent_starts_uses_the_environments_proxy_without_tls(enrolled: Node) -> None:
    """That one's, and not ours: `http_proxy` is for everything that is started in this environment."""
    asked: list[str] = []

    class SiteProxy(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"from the site's proxy")

        def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
            """Print nothing."""

    program = node_agents.install(enrolled.folder, PLAIN, enrolled.place)
    confdir = node_agents.configure(enrolled.folder / "conf", enrolled.place, enrolled.master.address)
    with ThreadingHTTPServer(("127.0.0.1", 0), SiteProxy) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        site = f"http://127.0.0.1:{server.server_address[1]}"
        run = [sys.executable, "-m", "inspector.cli", "run", "-o", str(enrolled.capture), "--"]
        agent = [str(program), "agent", "-t", "--confdir", str(confdir)]
        done = enrolled.done(["/usr/bin/env", f"http_proxy={site}", *run, *agent])
        server.shutdown()
    assert done.returncode == 0, done.stderr
    assert "from the site's proxy" in done.stdout
    assert asked == ["http://elsewhere.example/page"]
    assert "http_proxy and no_proxy of the environment are changed" in done.stderr


def test_a_run_that_is_killed_leaves_neither_agent_nor_proxy(enrolled: Node) -> None:
    """And of the agent's files what a direct run could have left."""
    program = node_agents.install(
        enrolled.folder, '#!/bin/sh\n[ "$1" = --version ] && exit\nexec sleep 600\n', enrolled.place
    )
    before = enrolled.files
    inspected = [sys.executable, "-m", "inspector.cli", "run", "-o", str(enrolled.capture), "--"]
    confdir = node_agents.configure(enrolled.folder / "conf", enrolled.place, enrolled.master.address)
    running = enrolled.start([*inspected, str(program), "agent", "-t", "--confdir", str(confdir)])
    try:
        assert eventually(lambda: any("sleep" in name for name in _below(running.pid).values()))
        processes = _below(running.pid)
    finally:
        running.send_signal(signal.SIGKILL)
        running.communicate()
    assert len(processes) > 1
    assert eventually(lambda: not any(map(is_running, processes)))
    assert enrolled.files == before


def _below(process: int) -> dict[int, str]:
    """The processes that a process started, and those that these started, with their names."""
    found: dict[int, str] = {}
    for thread in Path(f"/proc/{process}/task").glob("*/children"):
        try:
            children = [int(number) for number in thread.read_text().split()]
        except OSError:
            continue
        for child in children:
            try:
                found[child] = Path(f"/proc/{child}/comm").read_text().strip()
            except OSError:
                continue
            found |= _below(child)
    return found

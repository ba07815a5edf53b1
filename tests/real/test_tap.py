"""`tap` on the host of a real master, with real agents of other hosts, in network namespaces of the tests' own."""

from __future__ import annotations

import functools
import hashlib
import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import pytest
from cryptography import x509

from inspector.host import pki
from tests.e2e.wire import Peer
from tests.real.agent import RealAgent
from tests.real.machine import missing
from tests.real.puppet import RealMaster
from tests.support import places
from tests.support.namespaces import Network
from tests.support.taps import Tapping
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.real.agent import CompletedRun, RunningAgent
    from tests.real.releases import System

NAME = "tapped.example"
CHANGED, UNCHANGED, FAILED = 2, 0, 1


@dataclass
class Theatre:
    """A master's host, three agents' hosts, and what lies between."""

    network: Network
    master: RealMaster
    base: Path
    systems: tuple[System | None, ...]
    agents: dict[str, int] = field(default_factory=dict)

    def agent(self, name: str, number: int = 0) -> RealAgent:
        """An agent at one of the hosts: of Puppet 7, 8 and OpenVox 9."""
        made = RealAgent(self.base / name, f"auto-{name}.example", system=self.systems[number])
        self.master.demo(made.certname, made.target)
        self.agents[made.certname] = number
        return made

    def begin(self, agent: RealAgent) -> RunningAgent:
        """Start a run at the agent's host."""
        host = self.network.agents[self.agents[agent.certname]]
        return self.network.call(host, lambda: agent.popen(server=NAME, port=self.master.port))

    def run(self, agent: RealAgent) -> CompletedRun:
        with self.begin(agent) as running:
            return running.wait()

    def all(self, *agents: RealAgent) -> list[int]:
        """The exit statuses of agents that run at once."""
        with ExitStack() as stack:
            running = [stack.enter_context(self.begin(agent)) for agent in agents]
            return [each.wait().status for each in running]

    @contextmanager
    def tap(self, name: str, *options: str) -> Iterator[Tapping]:
        """A tap that is ended at the latest when the block is left."""
        made = Tapping(self.network, self.master.confdir / "conf.d", self.base / f"{name}.sqlite")
        try:
            made.start(*options)
            yield made
            made.stop()
            assert self.network.ruleset() == "", "nothing is left"
        finally:
            made.close()
            self.network.run(self.network.master, "nft", "flush", "ruleset")

    @contextmanager
    def connected(self, agent: RealAgent) -> Iterator[http.client.HTTPConnection]:
        """A connection with an agent's certificate, which is kept."""
        peer = Peer.of((self.network.address(), self.master.port), NAME, pki.SslDirPaths(agent.ssldir, agent.certname))
        made = http.client.HTTPConnection(NAME)
        made.auto_open = 0
        with ExitStack() as stack:
            host = self.network.agents[self.agents[agent.certname]]
            made.sock = self.network.call(host, lambda: stack.enter_context(peer.connect()))
            yield made

    def runs(self, tapping: Tapping) -> dict[str, str]:
        """The certnames whose runs are in a capture, with their outcome."""
        words = [sys.executable, "-m", "inspector.cli", "runs", "--json", str(tapping.capture)]
        done = subprocess.run(words, cwd=places.ROOT, capture_output=True, text=True, check=False)
        return {run["certname"]: run["outcome"] for run in json.loads(done.stdout)}

    def files(self) -> dict[str, str]:
        """What the server is set to and whom its CA has signed."""
        places = [self.master.confdir / "puppet.conf", self.master.cadir, self.master.ssldir,
                  *(self.master.confdir / name for name in ("conf.d", "services.d"))]  # fmt: skip
        paths = [path for place in places for path in ([place] if place.is_file() else place.rglob("*"))]
        return {
            str(path): f"{hashlib.sha256(path.read_bytes()).hexdigest()} {path.stat().st_mode:o} {path.stat().st_uid}"
            for path in paths
            if path.is_file()
        }


@pytest.fixture(scope="module", params=["7.9.5"])
def theatre(
    request: pytest.FixtureRequest, trixie: System, sid: System, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Theatre]:
    if reason := missing():
        pytest.fail(reason)
    with ExitStack() as stack:
        network = stack.enter_context(Network(3))
        system = trixie if request.param == "8.7" else None

        def started() -> RealMaster:
            made = RealMaster(NAME, host=network.address(), idle_timeout=20, system=system)
            return stack.enter_context(made)

        master = network.call(network.master, started)
        yield Theatre(network, master, tmp_path_factory.mktemp("tap"), (None, trixie, sid))


@pytest.mark.parametrize("theatre", ["8.7", "7.9.5"], indirect=True)
def test_every_agent_and_nothing_is_changed(theatre: Theatre) -> None:
    """Of three versions, enrolled ones and fresh ones, all at once."""
    old = [theatre.agent(f"old{number}", number) for number in range(3)]
    assert theatre.all(*old) == [CHANGED] * 3
    fresh = [theatre.agent(f"fresh{number}", number) for number in range(3)]
    before = theatre.files()
    with theatre.tap("all") as tapping:
        assert theatre.all(*old, *fresh) == [CHANGED] * 6
        printed = tapping.stop()
    assert theatre.runs(tapping) == {agent.certname: "complete" for agent in (*old, *fresh)}
    assert all(agent.certname in printed for agent in (*old, *fresh))
    after = theatre.files()
    signed = {path for path in after if any(agent.certname in path for agent in fresh)}
    books = {path for path in after if path.endswith(("/inventory.txt", "/serial"))}
    assert {path: after[path] for path in after if path not in signed | books} == {
        path: before[path] for path in before if path not in books
    }
    assert not any("direct from now on" in line for line in tapping.lines), tapping.lines
    assert theatre.all(*old, *fresh) == [CHANGED] * 6, "directly again"


def asked(connection: http.client.HTTPConnection, agent: RealAgent) -> int:
    """The status of an answer."""
    target = f"/puppet/v3/node/{agent.certname}?environment=production"
    connection.request("GET", target, headers={"Accept": "application/json"})
    answer = connection.getresponse()
    answer.read()
    return answer.status


@contextmanager
def asking(*connections: http.client.HTTPConnection, agent: RealAgent) -> Iterator[list[int]]:
    """Use connections all the while: the server ends one that is idle for 30 s, and a command may take longer. Returns
    the statuses of the answers; 0: there was none."""
    statuses: list[int] = []
    ended = threading.Event()

    def ask() -> None:
        while not ended.wait(1):
            for connection in connections:
                try:
                    statuses.append(asked(connection, agent))
                except (OSError, http.client.HTTPException):
                    statuses.append(0)
                    return

    thread = threading.Thread(target=ask)
    thread.start()
    try:
        yield statuses
    finally:
        ended.set()
        thread.join()


def retrieving(running: RunningAgent) -> bool:
    """Whether an agent has begun to talk to the master."""
    return "Retrieving plugin" in running.log.read_text(errors="replace")


def applying(running: RunningAgent) -> bool:
    """Whether an agent has its catalog, and applies it."""
    return "Applying configuration" in running.log.read_text(errors="replace")


@pytest.mark.parametrize("moment", [retrieving, applying])
def test_runs_in_which_it_begins_or_ends_are_as_ever(theatre: Theatre, moment: Callable[[RunningAgent], bool]) -> None:
    agents = [theatre.agent(f"{moment.__name__}{number}", number) for number in range(3)]
    assert theatre.all(*agents) == [CHANGED] * 3
    with ExitStack() as stack:
        running = [stack.enter_context(theatre.begin(agent)) for agent in agents]
        assert eventually(lambda: any(map(moment, running)))
        tapping = stack.enter_context(theatre.tap(moment.__name__))
        assert [each.wait().status for each in running] == [CHANGED] * 3
        running = [stack.enter_context(theatre.begin(agent)) for agent in agents]
        assert eventually(lambda: any(map(moment, running)))
        tapping.stop()
        assert [each.wait().status for each in running] == [CHANGED] * 3
    assert not any("direct from now on" in line for line in tapping.lines), tapping.lines


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_proxy_that_fails_hangs_nobody(theatre: Theatre, number: signal.Signals) -> None:
    agent = theatre.agent(f"hangs{number}")
    assert theatre.run(agent).status == CHANGED
    with theatre.tap(f"fails-{number}") as tapping, theatre.begin(agent) as running:
        assert eventually(lambda: retrieving(running))
        proxy = tapping.proxy()
        os.kill(proxy, number)
        assert "expired" not in running.wait().output, "it did not wait for its own time to be over"
        tapping.ended()
        assert theatre.run(agent).status == CHANGED


def test_a_server_that_restarts(theatre: Theatre) -> None:
    agent = theatre.agent("restart")
    assert theatre.run(agent).status == CHANGED
    with theatre.tap("restart") as tapping:
        theatre.master.stop()
        assert eventually(lambda: not tapping.hands_over())
        assert "Connection refused" in theatre.run(agent).output
        theatre.network.call(theatre.network.master, theatre.master.start)
        assert eventually(tapping.hands_over)
        assert theatre.run(agent).status == CHANGED
        tapping.stop()
    assert theatre.runs(tapping) == {agent.certname: "complete"}


def test_a_node_that_is_revoked_meanwhile(theatre: Theatre) -> None:
    """It is refused from its next connection on, as it would be directly, and served until then."""
    agent, other = theatre.agent("revoked"), theatre.agent("revoked-too", 1)
    assert theatre.all(agent, other) == [CHANGED] * 2
    with theatre.connected(agent) as directly, theatre.tap("revoked") as tapping, theatre.connected(agent) as handed:
        with asking(directly, handed, agent=agent) as statuses:
            assert theatre.run(agent).status == CHANGED
            for each in (agent, other):
                theatre.network.call(theatre.network.master, functools.partial(theatre.master.revoke, each.certname))
            before = len(statuses)
            assert eventually(lambda: len(statuses) >= before + 8)
        assert set(statuses) == {200}
        through = theatre.run(agent)
        tapping.stop()
    direct = theatre.run(other)
    assert through.status == direct.status == FAILED
    # Java's words for it are fewer.
    assert "alert certificate revoked" in through.output
    assert "alert certificate unknown" in direct.output


def test_who_may_more_than_others_waits_and_is_direct(theatre: Theatre) -> None:
    agent, key = theatre.agent("privileged"), pki.new_key(2048)
    oid = x509.ObjectIdentifier("1.3.6.1.4.1.34380.1.3.39")
    extension = x509.Extension(oid, critical=False, value=x509.UnrecognizedExtension(oid, b"\x0c\x04true"))
    authority = pki.read_authority(theatre.master.cadir)
    place = pki.SslDirPaths(agent.ssldir, agent.certname)
    place.create()
    place.key.write_bytes(pki.key_pem(key))
    signed = pki.sign(authority, key.public_key(), agent.certname, extensions=[extension])
    place.certificate.write_bytes(pki.pem(signed))
    assert theatre.run(agent).status == CHANGED
    with theatre.tap("privileged") as tapping:
        run = theatre.run(agent)
        tapping.stop()
    assert run.status == CHANGED, run.output
    assert "Sleeping for 5 seconds before retrying the request" in run.output
    assert any("its certificate has pp_cli_auth" in line for line in tapping.lines), tapping.lines


def test_a_compiler_without_the_cas_key(theatre: Theatre) -> None:
    agent = theatre.agent("compiled", 1)
    assert theatre.run(agent).status == CHANGED
    key = theatre.master.cadir / "ca_key.pem"
    aside = key.rename(key.with_suffix(".aside"))
    try:
        with theatre.tap("compiler") as tapping:
            run = theatre.run(agent)
            tapping.stop()
    finally:
        aside.rename(key)
    assert run.status == CHANGED, run.output
    assert "Sleeping for 5 seconds before retrying the request" in run.output
    assert any("the CA's key" in line and "direct from now on" in line for line in tapping.lines)


def test_a_certificate_that_only_the_server_accepts(theatre: Theatre) -> None:
    """Signed with SHA-1, as the CA of Puppet 2.7 did: whatever the proxy makes of it, the server answers."""
    place = pki.SslDirPaths(theatre.base / "sha1", "auto-sha1.example")
    place.create()
    key = pki.new_key(2048)
    place.key.write_bytes(pki.key_pem(key))
    request = theatre.base / "sha1.csr"
    request.write_bytes(pki.pem(pki.make_csr("auto-sha1.example", key)))
    ca = theatre.master.cadir
    words = ["openssl", "x509", "-req", "-sha1", "-days", "30", "-set_serial", "0x7777", "-in", str(request), "-CA",
             str(ca / "ca_crt.pem"), "-CAkey", str(ca / "ca_key.pem"), "-out", str(place.certificate)]  # fmt: skip
    subprocess.run(words, check=True, capture_output=True)
    peer = Peer((theatre.network.address(), theatre.master.port), NAME)
    context = peer.context()
    context.set_ciphers("DEFAULT:@SECLEVEL=0")
    context.load_cert_chain(place.certificate, place.key)
    target = "/puppet/v3/node/auto-sha1.example?environment=production"

    def asked() -> int:
        try:
            return theatre.network.call(theatre.network.agents[2], lambda: peer.ask("GET", target).status)
        except OSError:
            return 0

    assert asked() == 200
    with theatre.tap("sha1"):
        asked()
        time.sleep(2)
        assert asked() == 200

"""`tap`: connections to a master are handed over for a while, and nothing is changed on anybody."""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import socket
import ssl
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from cryptography import x509

from inspector.host import pki, serverconf
from inspector.lab.agent import LabAgent
from inspector.lab.ca import LabCA
from inspector.lab.master import LabMaster
from inspector.lab.server import LabServer
from inspector.lab.wire import ServerAddress
from inspector.protocol.oids import AUTHORIZATION_OIDS
from inspector.proxy.tap import table
from inspector.proxy.tap.plan import DIRECT
from tests.e2e.wire import Peer
from tests.support.namespaces import USABLE, Network, run
from tests.support.taps import Tapping
from tests.support.waiting import eventually, is_running

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from inspector.lab.agent import AgentResult
    from inspector.model import Exchange, Request, Response

pytestmark = pytest.mark.skipif(
    not USABLE and not os.environ.get("PUPPET_INSPECTOR_REAL"), reason="needs root, iproute2 and nftables"
)

PORT = 8140
NAME = "puppet.example"
NODE = "/puppet/v3/node/web1.example?environment=production"


@dataclass
class Site(Tapping):
    """A master's host, and agents of other hosts."""

    folder: Path = field(kw_only=True)
    ca: LabCA = field(kw_only=True)
    master: LabMaster = field(kw_only=True)
    answering: threading.Event = field(default_factory=threading.Event, kw_only=True)
    """Not set: the master lets everybody wait."""

    def serve(self) -> None:
        """Let the master listen on its host, for both versions of IP."""
        master = self.master
        master._server.close()
        master._server = self.network.call(
            self.network.master, lambda: LabServer(master.context, self._answer, ("::", PORT))
        )
        master._server.start()

    def _answer(self, request: Request, name: str | None) -> Response:
        if "/status/" not in request.path:
            self.answering.wait(30)
        return self.master.answer(request, name)

    def agent(self, name: str, number: int = 0, version: int = 4) -> AgentResult:
        """A run of an agent at one of the hosts."""
        server = ServerAddress(NAME, (self.network.address(number, version=version), PORT))
        made = LabAgent(name, self.folder / name, server)
        return self.network.call(self.network.agents[number], made.run)

    def place(self, name: str) -> pki.SslDirPaths:
        return self.ca.enrol(self.folder / name / "ssl", name)

    def peer(self, name: str = "web1.example", number: int = 0) -> Peer:
        return Peer.of((self.network.address(number), PORT), NAME, self.place(name))

    @contextmanager
    def connected(self, number: int = 0) -> Iterator[http.client.HTTPConnection]:
        """A connection of an agent, which is kept."""
        peer, made = self.peer(number=number), http.client.HTTPConnection(NAME)
        made.auto_open = 0
        with ExitStack() as stack:
            made.sock = self.network.call(self.network.agents[number], lambda: stack.enter_context(peer.connect()))
            yield made

    def asked(self, peer: Peer, number: int = 0) -> int:
        """The status of an answer."""
        name = peer.identity[0].stem if peer.identity else ""
        target = f"/puppet/v3/node/{name}?environment=production"
        return self.network.call(self.network.agents[number], lambda: peer.ask("GET", target).status)


@pytest.fixture
def site(answers: list[Exchange], tmp_path: Path) -> Iterator[Site]:
    ca = LabCA(NAME, autosign=True)
    place = ca.enrol(tmp_path / "master", NAME, [NAME])
    ca.write_cadir(tmp_path / "ca")
    (tmp_path / "conf.d").mkdir()
    web = {
        "ssl-host": serverconf.EVERYWHERE[0],
        "ssl-port": PORT,
        "ssl-cert": str(place.certificate),
        "ssl-key": str(place.key),
        "ssl-ca-cert": str(tmp_path / "ca/ca_crt.pem"),
        "ssl-crl-path": str(tmp_path / "ca/ca_crl.pem"),
    }
    (tmp_path / "conf.d/webserver.conf").write_text(json.dumps({"webserver": web}))
    (tmp_path / "conf.d/puppetserver.conf").write_text(f'jruby-puppet: {{\n  server-conf-dir: "{tmp_path}"\n}}\n')
    (tmp_path / "puppet.conf").write_text(f"[server]\ncadir = {tmp_path}/ca\nssldir = {tmp_path}/master\n")
    with Network(2) as network, LabMaster(ca, place, answers) as master:
        made = Site(network, tmp_path / "conf.d", tmp_path / "tap.sqlite", folder=tmp_path, ca=ca, master=master)
        made.answering.set()
        made.serve()
        yield made
        made.close()


def test_agents_are_recorded_and_nothing_is_changed(site: Site) -> None:
    site.place("old.example")
    direct = site.agent("direct.example")
    before = site.network.ruleset()
    site.start()
    results = [site.agent("old.example"), site.agent("fresh.example"), site.agent("six.example", version=6)]
    printed = site.stop()
    assert [result.status for result in results] == [direct.status] * 3, [result.log for result in results]
    assert site.network.ruleset() == before
    assert site.process
    assert site.process.returncode == 0
    recorded = site.recorded()
    names = {exchange.identity.certname for exchange in recorded if exchange.identity}
    assert {"old.example", "fresh.example", "six.example"} <= names
    assert {exchange.agent.address for exchange in recorded} == {"10.77.0.2", "fd77::2"}
    assert "/status/" not in "".join(exchange.request.target for exchange in recorded), "the look at the proxy is ours"
    assert "ended: asked to; new connections are direct" in "\n".join(site.lines)
    assert re.search(r"^1 .* old\.example ", printed, re.MULTILINE)


def test_what_is_open_stays_where_it_is_when_it_begins(site: Site) -> None:
    with site.connected() as direct:
        assert asked(direct).status == 200
        site.start()
        assert asked(direct).status == 200
        site.stop()
        assert asked(direct).status == 200
    assert site.recorded() == []


def test_agents_go_over_to_the_master_when_it_ends(site: Site) -> None:
    """What is under way is served, and an agent between two requests is asked to leave with the next one."""
    site.start()
    assert site.process
    with site.connected() as waiting, site.connected() as between, site.connected() as idle:
        assert asked(between).getheader("Connection") != "close"
        assert asked(idle).status == 200
        site.answering.clear()
        waiting.request("GET", NODE)
        site.process.send_signal(signal.SIGINT)
        assert eventually(lambda: any("what agents have begun" in line for line in site.lines))
        assert site.network.ruleset() == "", "new connections are direct at once"
        site.answering.set()
        last = asked(between)
        assert (last.status, last.getheader("Connection")) == (200, "close")
        answer = waiting.getresponse()
        assert answer.status == 200
        assert answer.read()
        assert site.process.poll() is None
        site.ended()
        assert idle.sock.recv(1) == b"", "it was closed in order"
    assert [exchange.error for exchange in site.recorded()] == [None] * 4


def test_ctrl_c_again_ends_it_at_once(site: Site) -> None:
    site.start()
    assert site.process
    proxy = site.proxy()
    with site.connected() as waiting:
        site.answering.clear()
        waiting.request("GET", NODE)
        site.process.send_signal(signal.SIGINT)
        assert eventually(lambda: any("what agents have begun" in line for line in site.lines))
        site.process.send_signal(signal.SIGINT)
        site.process.wait(10)
        assert site.network.ruleset() == ""
        site.answering.set()
        assert waiting.getresponse().status == 200, "the proxy goes on without it"
    assert eventually(lambda: not is_running(proxy))


def asked(connection: http.client.HTTPConnection) -> http.client.HTTPResponse:
    """The answer to a request on a connection that is kept."""
    connection.request("GET", NODE)
    answer = connection.getresponse()
    answer.read()
    return answer


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP])
def test_a_proxy_that_fails_costs_seconds(site: Site, number: signal.Signals) -> None:
    site.start()
    peer = site.peer()
    proxy = site.proxy()
    os.kill(proxy, number)
    assert eventually(lambda: answers(site, peer))
    site.ended()
    assert site.network.ruleset() == ""


def answers(site: Site, peer: Peer) -> bool:
    """Whether a request is answered."""
    try:
        return site.asked(peer) == 200
    except OSError:
        return False


def test_a_tap_that_is_killed_is_over_in_three_seconds(site: Site) -> None:
    site.start()
    assert site.process
    site.process.kill()
    assert eventually(lambda: not site.hands_over())
    assert site.asked(site.peer()) == 200
    assert f"table inet {table.NAME}" in site.network.ruleset()
    words = [sys.executable, "-m", "inspector.cli", "tap", "--remove"]
    assert "is removed" in run(*site.network.words(site.network.master, *words))
    assert site.network.ruleset() == ""


def test_a_master_that_is_away_is_away_for_agents_too(site: Site) -> None:
    """And while it is, nothing is handed over; when it is there again, it is."""
    site.start()
    site.master._server.close()
    assert eventually(lambda: not site.hands_over())
    with pytest.raises(ConnectionRefusedError):
        site.asked(site.peer())
    site.serve()
    assert eventually(site.hands_over)
    assert site.asked(site.peer()) == 200
    site.stop()
    assert "the master does not answer: connections are direct until it does" in "\n".join(site.lines)


def test_who_refuses_us_is_direct_from_then_on(site: Site) -> None:
    site.start()
    other = LabCA("other.example")
    forged = f"web1\n{DIRECT}10.77.1.2: x"
    stranger = pki.SslDirPaths(site.folder / "stranger", "stranger")
    stranger.create()
    key = pki.new_key()
    authority = pki.make_ca(f"CN\n{DIRECT}10.77.1.2: x")
    stranger.certificate.write_bytes(pki.pem(pki.sign(authority, key.public_key(), forged)))
    stranger.key.write_bytes(pki.key_pem(key))
    stranger.ca.write_bytes(other.ca_bundle)
    with pytest.raises(ssl.SSLError):
        site.asked(Peer.of((site.network.address(), PORT), NAME, stranger))
    assert eventually(site.exempt)
    assert site.asked(site.peer()) == 200
    assert "10.77.1.2" not in site._set("exempt4"), "what a certificate says is no line of ours"
    site.stop()
    assert [line.partition(" on: ")[2].partition(":")[0] for line in site.lines if "direct from" in line] == [
        "10.77.0.2"
    ]
    assert site.recorded() == []


@pytest.mark.parametrize("name", ["pp_cli_auth", "pp_auth_role"])
def test_who_may_more_than_others_is_not_signed_again(name: str, site: Site) -> None:
    site.start()
    authority, key = pki.read_authority(site.folder / "ca"), pki.new_key()
    (oid,) = (x509.ObjectIdentifier(each) for each, named in AUTHORIZATION_OIDS.items() if named == name)
    extension = x509.Extension(oid, critical=False, value=x509.UnrecognizedExtension(oid, b"\x0c\x04true"))
    place = pki.SslDirPaths(site.folder / "privileged", "cli.example")
    place.create()
    place.certificate.write_bytes(pki.pem(pki.sign(authority, key.public_key(), "cli.example", extensions=[extension])))
    place.key.write_bytes(pki.key_pem(key))
    place.ca.write_bytes(site.ca.ca_bundle)
    peer = Peer.of((site.network.address(), PORT), NAME, place)
    first = site.network.call(site.network.agents[0], lambda: peer.ask("GET", NODE))
    assert (first.status, dict(first.headers)["Retry-After"]) == (503, "5"), "agents wait, and ask again"
    assert eventually(site.exempt)
    assert site.asked(peer) not in (403, 503)
    site.stop()
    assert any(f"its certificate has {name}" in line for line in site.lines)
    assert site.recorded() == []


def test_without_the_cas_key_bootstraps_are_recorded_and_runs_are_direct(site: Site) -> None:
    """A compiler: its CA is another host."""
    (site.folder / "ca/ca_key.pem").unlink()
    site.start()
    assert "503" in site.agent("fresh.example").log[-1], "Puppet waits, and asks again"
    assert site.asked(site.peer("old.example", 1), 1) == 503
    assert eventually(lambda: site._set("exempt4").count("10.77") == 2)
    assert site.agent("fresh.example").status in (0, 2)
    assert site.asked(site.peer("old.example", 1), 1) == 200
    site.stop()
    recorded = {(exchange.agent.address, exchange.request.path.split("/")[1]) for exchange in site.recorded()}
    assert recorded == {("10.77.0.2", "puppet-ca")}
    assert sum("direct from now on: 10.77" in line for line in site.lines) == 2


def test_only_the_agents_that_were_chosen(site: Site) -> None:
    site.start("--agent", site.network.of_agent(1))
    assert site.asked(site.peer(), 0) == 200
    assert site.asked(site.peer("web2.example", 1), 1) == 200
    site.stop()
    assert {exchange.agent.address for exchange in site.recorded()} == {"10.77.1.2"}


def test_what_the_host_forwards_is_not_its_own(site: Site) -> None:
    """Another host's 8140, behind the master's host."""
    site.network.run(site.network.master, "sysctl", "-qw", "net.ipv4.ip_forward=1")
    behind, here = site.network.agents[1], site.network.agents[0]
    listening = site.network.call(behind, lambda: socket.create_server((site.network.of_agent(1), PORT)))
    site.start()
    forwarded = site.network.of_agent(1), PORT
    with listening, site.network.call(here, lambda: socket.create_connection(forwarded, 10)) as made:
        accepted, (peer, _) = listening.accept()
        with accepted:
            assert peer == site.network.of_agent(0)
            accepted.sendall(b"mine")
            assert made.recv(10) == b"mine"
    site.stop()


def herd(site: Site, agents: int) -> list[int]:
    """The exit statuses of so many agents at once."""
    address = site.network.address(), str(PORT)
    names = [f"herd{number}.example" for number in range(agents)]
    words = [sys.executable, "-m", "tests.support.herd", str(site.folder), NAME, *address, *names]
    return [status for status, *_ in json.loads(site.network.run(site.network.agents[0], *words))]


def test_a_herd_runs_as_it_would_without(site: Site) -> None:
    """Fresh agents and then the same ones again, and while it ends."""
    agents = 40
    site.start()
    assert herd(site, agents) == [2] * agents
    assert herd(site, agents) == [2] * agents
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(herd, site, agents)
        time.sleep(0.5)
        site.stop()
        assert running.result() == [2] * agents
    names = {exchange.identity.certname for exchange in site.recorded() if exchange.identity}
    assert len(names - {None}) == agents
    assert not any("direct from now on" in line for line in site.lines)


def test_a_disk_that_becomes_full_ends_it(site: Site) -> None:
    disk = site.folder / "disk"
    disk.mkdir()
    run("mount", "-t", "tmpfs", "-o", "size=700m", "none", str(disk))
    try:
        site.capture = disk / "tap.sqlite"
        site.start()
        assert site.asked(site.peer()) == 200
        assert eventually(lambda: len(site.recorded()) == 1)
        with (disk / "more").open("wb") as more:
            os.posix_fallocate(more.fileno(), 0, 300 * 2**20)
        site.ended()
        assert any(f"ended: {disk} is nearly full" in line for line in site.lines), site.lines
        assert site.process
        assert site.process.returncode == 1
        assert site.asked(site.peer()) == 200
    finally:
        run("umount", str(disk))


def test_another_program_that_clears_the_hosts_rules_ends_it(site: Site) -> None:
    """As a firewall does that is started again."""
    site.start()
    site.network.run(site.network.master, "nft", "flush", "ruleset")
    site.ended()
    assert any("ended: the host's rules were changed by another program" in line for line in site.lines), site.lines
    assert site.asked(site.peer()) == 200


FIREWALL = """
table inet site {
  chain input {
    type filter hook input priority filter; policy drop;
    ct state established,related accept
    iifname "lo" accept
    icmpv6 type { nd-neighbor-solicit, nd-neighbor-advert } accept
    tcp dport 8140 accept
  }
}
"""


def test_the_sites_firewall_lets_it_pass_and_stays_as_it_is(site: Site) -> None:
    run(*site.network.words(site.network.master, "nft", "-f", "-"), given=FIREWALL)
    before = site.network.ruleset()
    site.start()
    assert site.asked(site.peer()) == 200
    assert f"table inet {table.NAME}" in site.network.ruleset()
    site.stop()
    assert site.network.ruleset() == before
    assert len(site.recorded()) == 1


def test_a_crl_that_expires_ends_it(site: Site) -> None:
    site.start()
    site.ca.publish_crl(datetime(2020, 1, 1, tzinfo=UTC), datetime(2020, 1, 2, tzinfo=UTC))
    site.ca.write_cadir(site.folder / "ca")
    site.ended()
    assert any("ended: agents cannot be verified" in line for line in site.lines), site.lines
    assert site.network.ruleset() == ""


def test_it_ends_after_a_run_of_a_node(site: Site) -> None:
    site.place("web1.example")
    site.start("--until", "web1.example")
    assert site.agent("web1.example").status in (0, 2)
    assert "web1.example" in site.ended()
    assert any("ended: web1.example has run" in line for line in site.lines), site.lines

"""`puppet-inspector run` with real agents: what they print, their exit status and their files are those of a direct
run, whatever is wrong with the node, and `run` says what."""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from cryptography import x509

from inspector import installation
from inspector.host import pki
from inspector.model import Exchange
from tests.real.agent import installed
from tests.real.as_http_proxy import (
    AGENT,
    Theatre,
    another_name,
    blocks,
    directly,
    inspected,
    run_command,
    serving,
    site_proxy,
    srv_records,
)
from tests.real.machine import free_port, host_names
from tests.real.through import PROXY_HOST, PROXY_NAME
from tests.support.proxies import records

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable
    from pathlib import Path

    from tests.real.as_http_proxy import Inspected, Node
    from tests.real.puppet import RealMaster
    from tests.real.releases import System

    type Verdicts = list[tuple[str, str | None]]

BOOTSTRAP = ["certificates", "node", "plugins", "catalog", "report"]
COMPLETE: Verdicts = [("complete", None)]


@pytest.fixture
def theatre(master: RealMaster, tmp_path: Path) -> Theatre:
    return Theatre(master, tmp_path)


# -- what may be wrong with a node ------------------------------------------------------------------------------------


def fresh(node: Node) -> None:
    """It has nothing yet."""


def enrolled(node: Node) -> None:
    node.enrol()


def lost_key(node: Node) -> None:
    node.enrol(signed=True)
    node.key.unlink()
    node.certificate.unlink()


def mismatched_key(node: Node) -> None:
    node.enrol()
    node.key.write_bytes(pki.key_pem(pki.new_key(2048)))


def expired(node: Node) -> None:
    node.enrol(lifetime=timedelta(seconds=-60))


@functools.cache
def other_ca() -> tuple[bytes, bytes]:
    """A CA of which no master knows, and its CRL."""
    other = pki.make_ca("Other CA")
    return pki.pem(other.certificate), pki.pem(pki.make_crl(other))


def wrong_ca(node: Node) -> None:
    node.enrol()
    for path, content in zip((node.ca, node.crl), other_ca(), strict=True):
        path.write_bytes(content)


def incomplete_bundle(node: Node) -> None:
    """Without the root."""
    node.enrol()
    node.ca.write_bytes(blocks(node.ca)[0])


def expired_crl(node: Node) -> None:
    """Of the CA that signs; the root's is valid."""
    node.enrol()
    began, ended = (datetime(year, 1, 1, tzinfo=UTC) for year in (2020, 2021))
    old = pki.make_crl(pki.read_authority(node.master.cadir), last_update=began, next_update=ended)
    others = (block for block in blocks(node.crl) if x509.load_pem_x509_crl(block).issuer != old.issuer)
    node.crl.write_bytes(b"".join((pki.pem(old), *others)))


def missing_crl(node: Node) -> None:
    node.enrol()
    node.crl.unlink()


def missing_ca(node: Node) -> None:
    node.enrol()
    node.ca.unlink()


def wrong_name(node: Node) -> None:
    node.enrol()
    node.configure(server=node.master.host)


def closed_port(node: Node) -> None:
    node.enrol()
    node.configure(serverport=1)


def unknown_ca_server(node: Node) -> None:
    node.configure(ca_server="no-such-ca.invalid")


def first_of_server_list_dead(node: Node) -> None:
    node.enrol()
    name = node.master.name
    node.configure(server_list=f"{name}:1,{name}:{node.master.port}")


def revocation(value: str) -> Callable[[Node], None]:
    def configured(node: Node) -> None:
        node.enrol()
        node.configure(certificate_revocation=value)

    return configured


def fingerprint(*, right: bool) -> Callable[[Node], None]:
    def configured(node: Node) -> None:
        digest = hashlib.sha256((node.master.cadir / "ca_crt.pem").read_bytes()).hexdigest()
        node.configure(ca_fingerprint=digest if right else "00" * 32)

    return configured


AHEAD, BEHIND = ("faketime", "-f", "+20y"), ("faketime", "-f", "-20y")
SCENES = {
    "fresh": (fresh, (), 0, COMPLETE, ""),
    "lost key": (lost_key, (), 1, [("waiting", "B18")], ""),
    "mismatched key": (mismatched_key, (), 1, [], "does not match its private key"),
    "expired certificate": (expired, (), 1, [], "has expired, verify time is synchronized"),
    "wrong ca": (wrong_ca, (), 1, [("refused", "T08")], ""),
    "incomplete ca bundle": (incomplete_bundle, (), 1, [], "of certificate 'CN=Puppet CA: .*' is missing"),
    "expired crl": (expired_crl, (), 1, [], "The CRL issued by .* has expired, verify time is synchronized"),
    "missing crl": (missing_crl, (), 0, COMPLETE, ""),
    "missing ca": (missing_ca, (), 0, COMPLETE, ""),
    "clock ahead": (enrolled, AHEAD, 1, [], "The CRL issued by .* has expired, verify time is synchronized"),
    "clock behind": (enrolled, BEHIND, 1, [], "The CRL issued by .* is not yet valid, verify time is synchronized"),
    "wrong name": (wrong_name, (), 1, [("refused", "T07")], ""),
    "closed port": (closed_port, (), 1, [("unfinished", "T18")], ""),
    "first of server_list dead": (first_of_server_list_dead, (), 0, [("complete", "T18")], ""),
    "unknown ca_server": (unknown_ca_server, (), 1, [("unfinished", "T19")], ""),
    "no revocation": (revocation("false"), (), 0, COMPLETE, ""),
    "leaf revocation": (revocation("leaf"), (), 0, COMPLETE, ""),
    "right fingerprint": (fingerprint(right=True), (), 0, COMPLETE, ""),
    "wrong fingerprint": (fingerprint(right=False), (), 1, [("unfinished", None)], "did not match expected digest"),
}


def test_a_node_ends_as_it_does_directly(theatre: Theatre, subtests: pytest.Subtests) -> None:
    """Two scenes at a time: an agent waits a lot."""

    def play(scene: str) -> Inspected:
        prepare, before, status, _, _ = SCENES[scene]
        return theatre.same(f"auto-{re.sub('[ _]', '-', scene)}", prepare, before=before, status=status)

    with ThreadPoolExecutor(2) as pool:
        played = {scene: pool.submit(play, scene) for scene in SCENES}
        for scene, (_, _, _, expected, explained) in SCENES.items():
            with subtests.test(scene):
                found = played[scene].result()
                assert found.verdicts == expected, found.notes
                assert re.search(f"the agent printed: .*{explained}", found.notes) or not explained


@pytest.mark.parametrize("shift", ["+6y", "-6y"])
@pytest.mark.parametrize("prepare", [enrolled, fresh])
def test_the_clock_comes_before_every_certificate(
    theatre: Theatre, prepare: Callable[[Node], None], shift: str
) -> None:
    """Nothing that is printed deletes: with the right clock, all is well as it is."""
    node = theatre.node(f"auto-{prepare.__name__}-{'ahead' if shift[0] == '+' else 'behind'}")
    prepare(node)
    found = inspected(node, AGENT, before=("faketime", "-f", shift))
    judged = subprocess.run(
        installation.command("inspector.cli.main", "doctor", str(node.base / "capture.sqlite")),
        capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    assert (found.ended.status, judged.returncode) == (1, 1)
    direction = "behind" if shift[0] == "+" else "ahead of"
    of_run = "\n".join(run["verdict"]["remedy"] for run in found.runs)
    printed = (found.notes + of_run, judged.stdout)
    for text in printed:
        assert "timedatectl set-ntp true" in text
        assert not any(words in text for words in ("ca clean", "ssl clean", "-delete", "rm -f", "new-crl"))
    assert f"the master's clock is 6 years {direction} the node's" in judged.stdout
    if not found.runs:
        assert found.notes.startswith(f"puppet-inspector: the clocks differ: the master's clock is 6 years {direction}")
    assert directly(node, AGENT).status == 0


def test_a_revoked_node(theatre: Theatre) -> None:
    nodes = theatre.pair("revoked", lambda node: node.enrol(signed=True))
    theatre.master.revoke(",".join(node.certname for node in nodes))
    found = theatre.again(nodes, status=1)
    assert found.verdicts == [("refused", "T05")], found.notes


def test_a_node_waits_and_goes_on_when_it_is_signed(theatre: Theatre) -> None:
    """Two runs, and one story: the second goes to the same capture."""
    nodes = theatre.pair("waits")
    assert theatre.again(nodes, status=1).verdicts == [("waiting", None)]
    theatre.master.sign(",".join(node.certname for node in nodes), timeout=0)
    found = theatre.again(nodes, status=0)
    assert found.verdicts == COMPLETE
    assert [phase["phase"] for phase in found.runs[0]["phases"]] == BOOTSTRAP
    assert nodes[1].certificate.exists()


# -- servers between, and elsewhere -----------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["puppet.conf", "environment"])
def test_the_sites_own_proxy_is_used_for_every_connection(theatre: Theatre, by: str) -> None:
    """It is a firewall: nothing else leads to the master, and it lets nothing else pass. What it refuses, the agent
    prints."""
    master, outside = theatre.master, free_port(theatre.master.host)
    with site_proxy(f"{master.name}:{outside}", master) as port:

        def behind(node: Node, server: str = master.name) -> None:
            if by == "environment":
                node.environment["http_proxy"] = f"http://127.0.0.1:{port}"
                node.configure(server=server, serverport=outside)
            else:
                node.configure(server=server, serverport=outside, http_proxy_host="127.0.0.1", http_proxy_port=port)

        nodes = theatre.pair(f"auto-by-{by.replace('.', '-')}", behind)
        found = theatre.again(nodes, status=0)
        assert found.verdicts == COMPLETE
        assert ("http_proxy and no_proxy of the environment are changed" in found.notes) == (by == "environment")
        if by == "puppet.conf":
            for node in nodes:
                behind(node, server=PROXY_NAME)
            refused = theatre.again(nodes, status=1)
            assert '403 "Forbidden by the firewall"' in refused.ended.err
            assert refused.verdicts == [*COMPLETE, ("unfinished", "T27")]
            assert "403 Forbidden by the firewall" in refused.runs[-1]["verdict"]["message"]


def test_servers_that_the_dns_names(theatre: Theatre, subtests: pytest.Subtests) -> None:
    """SRV records, which are known to the agent only. It has an /etc/resolv.conf of its own."""
    (settings := theatre.base / "resolv.conf").write_text("nameserver 127.53.53.53\n")
    mounted = ("unshare", "-m", "sh", "-c", 'mount --bind "$0" /etc/resolv.conf && exec "$@"', str(settings))
    with srv_records("127.53.53.53", theatre.master.name, theatre.master.port):
        for name, prepare in (("fresh", fresh), ("enrolled", enrolled)):

            def by_records(node: Node, prepare: Callable[[Node], None] = prepare) -> None:
                prepare(node)
                node.configure(server="nobody.invalid", use_srv_records="true", srv_domain="site.example")

            with subtests.test(name):
                assert theatre.same(f"auto-srv-{name}", by_records, before=mounted, status=0).verdicts == COMPLETE


def test_a_ca_server_elsewhere(theatre: Theatre) -> None:
    """Another server, with a certificate of its own."""
    with another_name(theatre.master, PROXY_NAME) as port, host_names({PROXY_NAME: PROXY_HOST}):
        nodes = theatre.pair("auto-ca-server", lambda node: node.configure(ca_server=PROXY_NAME, ca_port=port))
        found = theatre.again(nodes, status=0)
    assert found.verdicts == COMPLETE
    asked = [record for record in records(nodes[1].base / "capture.sqlite") if isinstance(record, Exchange)]
    assert {record.request.path.split("/")[1] for record in asked if record.master and record.master.port == port} == {
        "puppet-ca"
    }


# -- options of `run`, and other commands -----------------------------------------------------------------------------


def test_a_fault_on_purpose_reaches_a_fresh_node(theatre: Theatre) -> None:
    node = theatre.node("auto-fault")
    found = inspected(node, AGENT, ("--fault", "500 phase:catalog"))
    assert (found.ended.status, found.verdicts) == (1, [("failed", None)])
    assert "answered 500: POST" in found.notes
    assert node.certificate.exists()
    assert not node.trusts_a_run()


def test_another_master_than_the_configured_one(theatre: Theatre) -> None:
    master = theatre.master
    nodes = theatre.pair("auto-master", enrolled)
    nodes[1].configure(server="no-such-master.invalid")
    assert theatre.again(nodes, options=("--master", f"{master.name}:{master.port}"), status=0).verdicts == COMPLETE


def wrapped(node: Node) -> list[str]:
    """A script that runs the agent with a server of its own."""
    script, (name, port) = node.base / "agent.sh", (node.master.name, node.master.port)
    script.write_text(f'#!/bin/sh\n{shlex.join(AGENT)} --server {name} --serverport {port} "$@"\nexit $?\n')
    script.chmod(0o755)
    return [str(script)]


def test_a_script_that_names_its_own_server(theatre: Theatre) -> None:
    """`run` cannot know of it: it is passed on unread, unless it is named."""
    where = f"127.0.0.1:{free_port('127.0.0.1')}"
    also = f"{theatre.master.name}:{theatre.master.port}"

    def configured(node: Node) -> None:
        node.enrol()
        node.configure(server="no-such-master.invalid")

    nodes = theatre.pair("auto-script", configured)
    unread = theatre.again(nodes, wrapped, ("--listen", where), status=0)
    assert unread.verdicts == []
    assert f"passed on unread: {also}, none of the node's Puppet servers (--also records it)" in unread.notes
    assert theatre.again(nodes, wrapped, ("--listen", where, "--also", also), status=0).verdicts == COMPLETE


def test_the_commands_of_puppet(theatre: Theatre) -> None:
    """From the first to the last: a node enrols, asks for this and that, and forgets its identity."""

    def backs_up(node: Node) -> list[str]:
        (node.base / "kept.txt").write_text("kept\n")
        return ["puppet", "filebucket", "backup", str(node.base / "kept.txt")]

    nodes = theatre.pair("auto-commands")
    # A master of 7 cannot read what this command of its own sends instead of facts.
    refused, how = (1, "failed") if installed() < (8,) else (0, "complete")
    for status, tool, outcome, words in (
        (0, "puppet ssl bootstrap", "complete", ["puppet", "ssl", "bootstrap", "--waitforcert", "0"]),
        (0, "puppet plugin download", "complete", ["puppet", "plugin", "download"]),
        (0, "puppet facts upload", "complete", ["puppet", "facts", "upload"]),
        (refused, "puppet catalog download", how, ["puppet", "catalog", "download"]),
        (0, "puppet filebucket", "complete", backs_up),
    ):
        found = theatre.again(nodes, words, status=status)
        assert [(run["tool"], run["outcome"]) for run in found.runs] == [(tool, outcome)]
        (nodes[1].base / "capture.sqlite").unlink()  # one after the other they might be taken for one run
    assert nodes[1].ca.exists()
    found = theatre.again(nodes, ["puppet", "ssl", "clean", "--localca"], status=0)
    assert "this command asks no server" in found.notes
    assert not any(path.exists() for path in (nodes[1].ca, nodes[1].crl, nodes[1].key, nodes[1].certificate))


def test_agents_of_other_releases(theatre: Theatre, trixie: System, sid: System, subtests: pytest.Subtests) -> None:
    """Agent 8.10 and OpenVox 9."""
    for system in (trixie, sid):
        name = system.root.name[:3]
        (programs := theatre.base / name).mkdir()
        words = [str(system.program("puppet", programs)), *AGENT[1:]]
        revoked = theatre.pair(f"{name}-revoked", lambda node: node.enrol(signed=True))
        theatre.master.revoke(",".join(node.certname for node in revoked))
        with subtests.test(f"{name} revoked"):
            assert theatre.again(revoked, words, status=1).verdicts == [("refused", "T05")]
        for scene in ("fresh", "wrong ca", "closed port"):
            with subtests.test(f"{name} {scene}"):
                prepare, _, status, expected, _ = SCENES[scene]
                nodes = theatre.pair(f"auto-{name}-{scene.replace(' ', '-')}", prepare)
                found = theatre.again(nodes, words, status=status)
                assert found.verdicts == expected, found.notes
                if scene == "fresh":  # and enrolled
                    found = theatre.again(nodes, words, status=0)
                    assert found.verdicts == [*COMPLETE, *COMPLETE], found.notes


# -- attacks ----------------------------------------------------------------------------------------------------------

CONNECTED = """
import contextlib, http.client, socket, ssl, sys
option = lambda name: sys.argv[sys.argv.index(name) + 1]
connect = lambda: socket.create_connection((option("--http_proxy_host"), int(option("--http_proxy_port"))), 20)
request = lambda server: f"CONNECT {server} HTTP/1.1\\r\\n\\r\\n".encode()
"""
STRANGER = f"""{CONNECTED}
def received(sent):
    with contextlib.suppress(ConnectionError), connect() as connection:
        connection.sendall(sent)
        return connection.recv(1000)
    return b""
master, own = sys.argv[1:3]
print([received(request(master)), received(request(own)), received(b"GET / HTTP/1.1\\r\\n\\r\\n")])
for _ in range(300):  # the kernel does not know any more whose a connection was that is closed
    connection = connect()
    with contextlib.suppress(ConnectionError):
        connection.sendall(request(own) + b"from nobody")
    connection.close()
"""
IMPERSONATOR = f"""{CONNECTED}
master, *cards = sys.argv[1:sys.argv.index("--confdir")]
for card in cards:
    with connect() as connection:
        connection.sendall(request(master))
        assert b" 200 " in connection.recv(1000)
        context = ssl._create_unverified_context()
        context.load_cert_chain(card + ".crt", card + ".key")
        client = http.client.HTTPConnection("unused")
        client.sock = context.wrap_socket(connection, server_hostname=master.split(":")[0])
        client.request("GET", open(card + ".path").read(), headers={{"Host": master, "Accept": "application/json"}})
        print(client.getresponse().status)
"""


def test_another_user_of_the_machine_gets_nothing(theatre: Theatre) -> None:
    arrived: list[socket.socket] = []
    node, master = theatre.node("stranger"), theatre.master
    node.enrol()
    nobody = ("setpriv", "--reuid=nobody", "--regid=nogroup", "--clear-groups", "/usr/bin/python3", "-c", STRANGER)
    with serving("127.0.0.1", arrived.append) as port:
        found = inspected(node, (*nobody, f"{master.name}:{master.port}", f"127.0.0.1:{port}"))
        time.sleep(1)
    assert (found.ended.out, found.ended.status) == ("[b'', b'', b'']\n", 0), found
    assert arrived == []
    assert found.runs == []


def test_another_nodes_certificate_is_nobodys(theatre: Theatre) -> None:
    """Nor is one with this node's name and another key; what the master's CA has signed counts for the master only."""
    master, node = theatre.master, theatre.node("auto-own")
    other, twin = theatre.node("auto-other"), theatre.node("auto-own-twin")
    for each in (node, other):
        each.enrol()
    authority, key = pki.read_authority(master.cadir), pki.new_key(2048)
    twin.certificate.parent.mkdir(exist_ok=True)
    twin.key.parent.mkdir(exist_ok=True)
    twin.certificate.write_bytes(pki.pem(pki.sign(authority, key.public_key(), node.certname)))
    twin.key.write_bytes(pki.key_pem(key))
    cards = []
    for whose, name in ((node, node.certname), (other, other.certname), (twin, node.certname)):
        card = theatre.base / whose.certname / "card"
        shutil.copyfile(whose.certificate, f"{card}.crt")
        shutil.copyfile(whose.key, f"{card}.key")
        card.with_suffix(".path").write_text(f"/puppet/v3/node/{name}?environment=production")
        cards.append(str(card))
    found = inspected(node, (sys.executable, "-c", IMPERSONATOR, f"{master.name}:{master.port}", *cards))
    assert found.ended.out.split() == ["200", "403", "403"], found
    asked = [record for record in records(node.base / "capture.sqlite") if isinstance(record, Exchange)]
    assert [bool(record.master and record.master.own_chain) for record in asked] == [True, False, False]


PROCESSES = {"agent": "--http_proxy_host", "proxy": "inspector.proxy.launched", "run": "inspector.cli.main"}
"""By what their commands can be told."""


KILLS = {
    ("agent",): ({128 + signal.SIGKILL}, ""),
    ("proxy",): ({1, 128 + signal.SIGTERM}, "the proxy exited before the agent"),
    ("run",): ({-signal.SIGKILL}, ""),
    ("run", "proxy", "agent"): ({-signal.SIGKILL}, ""),
}
"""What is killed, how `run` may end then, and what it says."""


def killed(node: Node, victims: tuple[str, ...]) -> tuple[int, str]:
    """Kill processes of a run in the middle of a bootstrap, when the node has the CA bundle; return how `run` ends, and
    what is printed on standard error."""
    running = node.popen(run_command(node, AGENT, ("--fault", "delay=3s")))
    deadline = time.monotonic() + 120
    while not node.ca.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    processes = node.processes()
    for victim in victims:
        os.kill(next(pid for pid, command in processes.items() if PROCESSES[victim] in command), signal.SIGKILL)
    _, err = running.communicate(timeout=120)
    assert node.is_quiet(processes), node.processes()
    return running.returncode, err


def test_what_is_killed_leaves_nothing_behind(theatre: Theatre, subtests: pytest.Subtests) -> None:
    def play(victims: tuple[str, ...]) -> tuple[int, str, bool, int]:
        node = theatre.node(f"auto-killed-{'-'.join(victims)}")
        status, err = killed(node, victims)
        return status, err, node.trusts_a_run(), directly(node, AGENT).status

    with ThreadPoolExecutor(2) as pool:
        for (victims, (statuses, said)), played in zip(KILLS.items(), pool.map(play, KILLS), strict=True):
            with subtests.test(" ".join(victims)):
                status, err, trusts, afterwards = played
                assert status in statuses, err
                assert said in err
                assert (trusts, afterwards) == (False, 0)

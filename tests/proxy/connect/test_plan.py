"""A run of this host's agent: whose connections are served, and what the node keeps of it."""

from __future__ import annotations

import asyncio
import os
import socket
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import pytest

from inspector.lab.ca import LabCA
from inspector.lab.master import LabMaster
from inspector.model import Leg
from inspector.proxy.connect import files
from inspector.proxy.connect import plan as module
from inspector.proxy.connect.dialing import SiteProxy
from inspector.proxy.connect.interception import Way
from inspector.proxy.connect.plan import UNREAD, Plan, RunInterception
from inspector.proxy.connect.trust import NodeTrust
from tests.support.users import NOBODY

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inspector.host.pki import SslDirPaths

NAME = "localhost"
PEER, OWN = ("127.0.0.1", 50000), ("127.0.0.1", 1023)
AGENT = 4711
"""The number of the agent's user."""


class Node:
    """A node whose agent runs once."""

    def __init__(self, folder: Path, place: SslDirPaths, *servers: tuple[str, int], user: int = AGENT) -> None:
        self.place, self.lines = place, list[str]()
        directory = folder / "run"
        directory.mkdir()
        self.plan = Plan(
            certname=place.certname, ssldir=str(place.path), ca=str(place.ca), crl=str(place.crl),
            directory=str(directory), servers=servers or (("puppet.example", 8140),), user=user,
        )  # fmt: skip
        self.run = RunInterception(self.plan, NodeTrust(place.ca, place.crl, "chain"), self.lines.append)


@pytest.fixture
def node(tmp_path: Path, place: SslDirPaths) -> Node:
    return Node(tmp_path, place)


@pytest.fixture
def stranger(tmp_path: Path) -> Iterator[tuple[str, int]]:
    """The address of a master of another CA."""
    other = LabCA("stranger.example")
    with LabMaster(other, other.enrol(tmp_path / "stranger", "s.example", [NAME])) as running:
        yield NAME, running.address[1]


# -- whose connections ------------------------------------------------------------------------------------


@pytest.mark.parametrize("user", [AGENT, 0])
def test_the_agents_connections_are_served_and_roots(user: int, node: Node, monkeypatch: pytest.MonkeyPatch) -> None:
    """`run` need not be root to start an agent with sudo."""
    monkeypatch.setattr(module, "socket_owner", lambda peer, own: user if (peer, own) == (PEER, OWN) else None)
    assert node.run.admits(PEER, OWN)
    assert node.lines == []


@pytest.mark.parametrize(("user", "named"), [(NOBODY, str(NOBODY)), (None, "?")])
def test_another_users_are_refused_and_reported_once(
    user: int | None, named: str, node: Node, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "socket_owner", lambda *_: user)
    assert [node.run.admits(PEER, OWN) for _ in range(2)] == [False, False]
    assert node.lines == [f"-- refused a connection of user {named}: it is not the agent's"]


_CONNECTS = """
import os, socket, sys
os.setgroups([]); os.setgid(int(sys.argv[2])); os.setuid(int(sys.argv[2]))
with socket.socket() as connection:
    connection.connect(("127.0.0.1", int(sys.argv[1])))
    print(connection.getsockname()[1], flush=True)
    sys.stdin.read()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="only root becomes another user")
@pytest.mark.parametrize(("user", "served"), [(AGENT, True), (0, True), (NOBODY, False)])
def test_the_kernel_knows_whose_a_connection_is(user: int, served: bool, node: Node) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        own = server.getsockname()
        server.settimeout(60)
        with subprocess.Popen(
            [sys.executable, "-S", "-c", _CONNECTS, str(own[1]), str(user)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, cwd="/",
        ) as process:  # fmt: skip
            connection, peer = server.accept()
            with connection:
                assert node.run.admits(peer, own) is served
                assert process.stdin
                process.stdin.close()
                process.wait()


# -- the node's files -------------------------------------------------------------------------------------


def test_the_agents_files_are_there_before_it_starts(node: Node, ca: LabCA) -> None:
    plan = node.plan
    assert plan.own_ca.read_bytes() == plan.added_ca.read_bytes() + ca.ca_bundle
    assert plan.own_crl.read_bytes().endswith(ca.crl_bundle)
    assert len(plan.own_crl.read_bytes()) > len(ca.crl_bundle)
    assert (node.place.ca.read_bytes(), node.place.crl.read_bytes()) == (ca.ca_bundle, ca.crl_bundle)


def test_what_the_agent_learns_reaches_the_node_without_ours(node: Node, ca: LabCA) -> None:
    added = node.plan.own_crl.read_bytes().removesuffix(ca.crl_bundle)
    ca.revoke("web1.example")
    node.plan.own_crl.write_bytes(ca.crl_bundle + added)
    node.run.sync(ended=True)
    assert node.place.crl.read_bytes() == ca.crl_bundle
    assert node.lines == []


def test_a_file_that_somebody_else_changed_is_reported_once(node: Node, ca: LabCA) -> None:
    node.place.ca.write_bytes(b"of somebody else")
    for _ in range(2):
        node.plan.own_ca.write_bytes(ca.ca_bundle + ca.ca_bundle)
        node.run.sync(ended=True)
    assert node.place.ca.read_bytes() == b"of somebody else"
    (line,) = node.lines
    assert line.startswith(f"-- what the agent wrote to {node.place.ca} stays there as it was: ")


def test_a_file_that_is_gone_stops_no_agent(node: Node) -> None:
    node.place.crl.unlink()
    os.utime(node.plan.own_crl)
    node.run.sync(ended=True)
    assert len(node.lines) == 1


def test_a_bundle_that_was_just_downloaded_verifies_the_next_server(
    tmp_path: Path, place: SslDirPaths, ca: LabCA, stranger: tuple[str, int]
) -> None:
    """A fresh agent asks for the CRL at once, and only a server that its new bundle verifies."""
    place.ca.unlink()
    place.crl.unlink()
    node = Node(tmp_path, place, stranger)
    assert asyncio.run(node.run.decide(stranger)).way is Way.INTERCEPTED
    node.plan.own_ca.write_bytes(ca.ca_bundle + node.plan.added_ca.read_bytes())
    assert asyncio.run(node.run.decide(stranger)).way is Way.TUNNELLED
    assert place.ca.read_bytes() == ca.ca_bundle


@pytest.mark.slow
def test_half_a_bundle_is_not_waited_for_for_ever(
    tmp_path: Path, place: SslDirPaths, ca: LabCA, stranger: tuple[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    place.ca.unlink()
    node = Node(tmp_path, place, stranger)
    monkeypatch.setattr(files, "WRITTEN", 3600.0)
    node.plan.own_ca.write_bytes(ca.ca_bundle[:100])
    assert asyncio.run(node.run.decide(stranger)).way is Way.INTERCEPTED
    assert not place.ca.exists()


# -- the rest ---------------------------------------------------------------------------------------------


def test_what_is_none_of_the_nodes_servers_is_passed_on_and_said_once(node: Node) -> None:
    for server in (("forge.example", 443), ("forge.example", 443), ("2001:db8::1", 443)):
        decision = asyncio.run(node.run.decide(server))
        assert (decision.way, decision.examination) == (Way.TUNNELLED, None)
    assert node.lines == [
        f"{UNREAD}{server}, none of the node's Puppet servers (--also records it)"
        for server in ("forge.example:443", "[2001:db8::1]:443")
    ]


def test_a_connection_is_the_nodes_own(node: Node) -> None:
    assert node.run.leg(Leg("a", "agent")).node == "web1.example"


def test_a_plan_reaches_another_process(node: Node) -> None:
    plan = msgspec.structs.replace(node.plan, site=SiteProxy("p", 3128, "u:x", (".a",)), descriptors=(5,))
    there = msgspec.convert(msgspec.json.decode(msgspec.json.encode(msgspec.to_builtins(plan))), Plan)
    assert there.own_ca == plan.own_ca
    assert list(map(tuple, there.servers)) == list(plan.servers)
    assert there.site is not None
    assert (there.site.host, list(there.site.bypassed), list(there.descriptors)) == ("p", [".a"], [5])


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_a_connection_of_this_host_has_an_owner(host: str) -> None:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        server = socket.create_server((host, 0), family=family)
    except OSError:
        pytest.skip(f"{host} is no address of this host")
    with server, socket.create_connection(server.getsockname()[:2]) as near:
        far, _ = server.accept()
        with far:
            peer, own = near.getsockname()[:2], far.getsockname()[:2]
            assert module.socket_owner(peer, own) == os.geteuid()
            assert module.socket_owner((host, peer[1] ^ 1), own) is None
            assert module.socket_owner(peer, (host, own[1] ^ 1)) is None


def test_it_is_the_users_of_the_other_end_not_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A table has both ends of a connection of this host."""
    table = tmp_path / "tcp"
    table.write_text(
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
        "   0: 0100007F:1FCC 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 1 1\n"
        "   1: 0100007F:C350 0100007F:1FCC 01 00000000:00000000 00:00000000 00000000  1000        0 2 1\n"
    )
    monkeypatch.setitem(module.SOCKETS, 4, table)
    assert module.socket_owner(("127.0.0.1", 50000), ("127.0.0.1", 8140)) == 1000
    assert module.socket_owner(("127.0.0.1", 8140), ("127.0.0.1", 50000)) == 0
    assert module.socket_owner(("127.0.0.2", 50000), ("127.0.0.1", 8140)) is None


def test_nobody_is_known_without_the_kernels_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(module.SOCKETS, 4, Path("/nonexistent/tcp"))
    assert module.socket_owner(("127.0.0.1", 1), ("127.0.0.1", 2)) is None


def test_who_has_closed_a_connection_is_nobody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel prints root for a socket without an owner: anybody could pass for it so."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        near = socket.create_connection(server.getsockname())
        far, _ = server.accept()
        with far:
            peer, own = near.getsockname(), far.getsockname()
            near.close()
            assert module.socket_owner(peer, own) is None
    table = tmp_path / "tcp"
    table.write_text(
        "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n"
        "   1: 0100007F:C350 0100007F:1FCC 05 00000000:00000000 00:00000000 00000000     0        0 0 1\n"
    )
    monkeypatch.setitem(module.SOCKETS, 4, table)
    assert module.socket_owner(("127.0.0.1", 50000), ("127.0.0.1", 8140)) is None

"""`puppet-inspector proxy`, and what the proxy can be told: the real process between the lab's two ends."""

from __future__ import annotations

import json
import os
import signal
import socket
import struct
import threading
import time
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from inspector.capture.store import Capture
from inspector.cli import demo
from inspector.lab.master import LabMaster
from inspector.model import Exchange, Handshake, Response
from inspector.proxy.engine.proxy_protocol import SIGNATURE
from inspector.proxy.launcher import Proxy
from tests.e2e.wire import Peer, read
from tests.support import proxies
from tests.support.proxies import APART, analyzed, exchanges, records
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inspector.lab import Lab
    from inspector.model import Request
    from tests.support.proxies import Proxied


NAME = "web1.lab.example"
NODE = f"/puppet/v3/node/{NAME}?environment=production"


@contextmanager
def own(lab: Lab, capture: Path, *arguments: str, **options: str | Path) -> Iterator[Proxy]:
    """`puppet-inspector proxy` for a lab."""
    with Proxy({**proxies.options(lab, capture), **options}, arguments=arguments, own=True) as proxy:
        lab.proxy_address = proxy.address
        yield proxy


def replace_one(proxy: Proxy) -> None:
    """Kill one of two workers, and wait until another one has taken its place."""

    def servers() -> set[int]:
        task = Path(f"/proc/{proxy.process.pid}/task")
        children, found = [], set()
        for thread in task.iterdir():
            with suppress(FileNotFoundError):  # it has just ended
                children += [int(part) for part in (thread / "children").read_text().split()]
        for child in children:
            with suppress(FileNotFoundError):  # it has just ended
                if "inspector.proxy.engine.server" in Path(f"/proc/{child}/cmdline").read_text():
                    found.add(child)
        return found

    before = servers()
    assert len(before) == 2
    os.kill(min(before), signal.SIGKILL)
    assert eventually(lambda: len(servers() - {min(before)}) == 2)
    assert len(servers() - before) == 1


def test_a_bootstrap_and_a_run_go_through(lab: Lab, capture: Path) -> None:
    with own(lab, capture) as proxy:
        assert lab.agent("agent.lab.example").run().status == 2
    assert proxy.status == 0
    (run,) = analyzed(capture).runs
    assert (run.certname, run.outcome) == ("agent.lab.example", "complete")
    assert any(line.startswith("== run 1 of agent.lab.example") for line in proxy.lines)
    assert proxy.lines[-1] == f"The capture is {capture}"
    assert {
        exchange.identity.certname for exchange in exchanges(capture) if exchange.identity and exchange.agent.peer_chain
    } == {"agent.lab.example"}


def test_no_identity_is_used_for_an_unverified_agent(lab: Lab, capture: Path) -> None:
    lab.agent("agent.lab.example", enrolled=True)
    with own(lab, capture) as proxy:
        answer = Peer(proxy.address, lab.proxy_name).ask("GET", "/puppet/v3/node/agent.lab.example?environment=x")
    assert answer.status == 403
    (exchange,) = exchanges(capture)
    assert exchange.master
    assert exchange.master.own_chain == ()


def test_it_says_what_is_wrong_in_one_sentence(lab: Lab, capture: Path, tmp_path: Path) -> None:
    with pytest.raises(Exception, match="did not start") as raised, own(lab, capture, puppet_ssldir=tmp_path / "none"):
        pass
    assert "Traceback" not in str(raised.value)
    assert "puppet-inspector: " in str(raised.value)


def test_workers_record_into_one_capture_that_reads_as_one(lab: Lab, capture: Path) -> None:
    names = [f"agent{number}.lab.example" for number in range(6)]
    for name in names:
        lab.agent(name, enrolled=True)
    with own(lab, capture, "--workers", "2") as proxy:
        agents = [lab.agent(name, source=f"127.0.0.{number}") for number, name in enumerate(names, 2)]
        threads = [threading.Thread(target=agent.run) for agent in agents]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert proxy.status == 0
    runs = [run for run in analyzed(capture).runs if run.certname]
    assert sorted((run.certname, run.outcome) for run in runs) == [(name, "complete") for name in names]
    seqs = [record.seq for record in records(capture)]
    assert seqs == list(range(1, len(seqs) + 1))
    assert sum(line.startswith("== run ") for line in proxy.lines) == 6


def test_what_an_agent_does_is_in_order_whatever_connections_it_uses(lab: Lab, capture: Path) -> None:
    """Old agents open one for each request."""
    places = [lab.agent(f"agent{number}.lab.example", enrolled=True).place for number in range(2)]
    with own(lab, capture, "--workers", "2") as proxy:
        peers = [Peer.of(proxy.address, lab.proxy_name, place) for place in places]
        for number in range(40):
            peers[number % 2].ask("GET", f"/puppet/v3/file_content/modules/app/{number}?environment=production")
    assert [int(exchange.request.path.rpartition("/")[2]) for exchange in exchanges(capture)] == list(range(40))


def test_a_worker_that_dies_is_replaced(lab: Lab, capture: Path) -> None:
    with own(lab, capture, "--workers", "2") as proxy:
        replace_one(proxy)
        for source in APART:
            assert lab.agent("agent.lab.example", source=source).run().status in (0, 2)
    assert proxy.status == 0


def test_a_worker_that_takes_ones_place_goes_on_in_the_capture_of_the_others(lab: Lab, tmp_path: Path) -> None:
    folder = tmp_path / "captures"
    folder.mkdir()

    def play() -> None:
        for number, source in enumerate(APART):
            assert lab.agent(f"agent{number}.lab.example", source=source).run().status in (0, 2)

    with own(lab, folder, "--workers", "2", puppet_rotate_age="1s", puppet_keep="1") as proxy:
        (first,) = folder.glob("*.sqlite")
        until = time.monotonic() + 300
        while first.exists() and time.monotonic() < until:
            play()
            time.sleep(1)
        assert not first.exists()
        replace_one(proxy)
        before = len(proxy.lines)
        play()
        time.sleep(1)
        play()
    assert not first.exists()
    summaries = [line for line in proxy.lines[before:] if line.startswith("== run ")]
    assert len(summaries) == 4


def test_only_the_agents_that_were_asked_for_are_recorded(lab: Lab, capture: Path, proxied: Proxied) -> None:
    with proxied(lab, puppet_only="web*,db1.lab.example"):
        assert lab.agent("web1.lab.example").run().status == 2
        assert lab.agent("app1.lab.example").run().status == 2
    assert {run.certname for run in analyzed(capture).runs} == {"web1.lab.example"}
    # Its bootstrap too, whose first requests do not say whose they are.
    assert "/puppet-ca/v1/certificate/ca" in {exchange.request.path for exchange in exchanges(capture)}
    with Capture.open(capture) as opened:
        used = {exchange.agent.id for exchange in exchanges(capture)} | {
            exchange.master.id for exchange in exchanges(capture) if exchange.master
        }
        assert {connection.leg.id for connection in opened.connections()} == used


def test_what_they_asked_without_a_name_is_recorded_by_workers_too(lab: Lab, capture: Path) -> None:
    names = [f"web{number}.lab.example" for number in range(4)]
    with own(lab, capture, "--workers", "2", puppet_only="web*"):
        for name in names:
            assert lab.agent(name).run().status == 2
    asked = [exchange.request.path for exchange in exchanges(capture)]
    assert asked.count("/puppet-ca/v1/certificate/ca") == len(names)
    assert {run.certname for run in analyzed(capture).runs} == set(names)


@pytest.mark.parametrize("workers", ["1", "2"])
def test_another_capture_begins_and_the_old_ones_go(lab: Lab, tmp_path: Path, workers: str) -> None:
    folder = tmp_path / "captures"
    folder.mkdir()
    with own(lab, folder, "--workers", workers, puppet_rotate_age="1s", puppet_keep="2") as proxy:
        for number in range(4):
            agent = lab.agent("agent.lab.example", source=APART[number % 2])
            assert agent.run().status in (0, 2)
            time.sleep(2.3)  # the proxy's clock: a run is never cut before twice the limit
    left = sorted(folder.glob("*.sqlite"))
    assert 2 <= len(left) <= 3  # one may have begun as the proxy ended
    assert proxy.lines[-1] == f"The capture is {left[-1]}"
    begun = [line for line in proxy.lines if line.startswith("-- recording continues in ")]
    assert len(begun) == len(set(begun)) >= 2
    assert sum(line.startswith("-- deleted the old capture ") for line in proxy.lines) >= 1
    for one, two in pairwise(left):
        with Capture.open(one) as first, Capture.open(two) as second:
            assert first.continued_in == two
            assert second.first == first.last + 1 or second.last == 0
    # What is told goes on over all of them.
    assert sum(line.startswith("== run ") for line in proxy.lines) == 4


def test_secrets_are_taken_out_before_they_are_recorded(lab: Lab, capture: Path, proxied: Proxied) -> None:
    """What Puppet marks as sensitive, under names that mark nothing, and a header: both ends get them."""
    place, path = lab.agent(NAME, enrolled=True).place, f"/puppet/v3/catalog/{NAME}"
    parameters = {"note": {"__ptype": "Sensitive", "__pvalue": "first-Zq7"}, "comment": "second-Zq7", "home": "/srv"}
    resource = {"type": "User", "title": "app", "parameters": parameters, "sensitive_parameters": ["comment"]}
    body = json.dumps({"name": NAME, "environment": "production", "resources": [resource]}).encode()
    lab.master.instead["POST", path] = Response((("Content-Type", "application/json"),), body, status=200)
    with proxied(lab, puppet_redact="write") as proxy:
        answer = Peer.of(proxy.address, lab.proxy_name, place).ask(
            "POST", path, b"environment=production", headers={"Authorization": "Basic third-Zq7"}
        )
    assert answer.body == body
    assert ("Authorization", "Basic third-Zq7") in lab.master.received[-1].request.headers
    (exchange,) = exchanges(capture)
    assert exchange.response is not None
    assert b"/srv" in exchange.response.body
    retained = repr(exchange).encode() + b"".join(each.read_bytes() for each in capture.parent.iterdir())
    assert b"Authorization" in retained
    assert b"-Zq7" not in retained


def test_what_is_under_way_ends_before_the_proxy_does(lab: Lab, capture: Path) -> None:
    """SIGTERM in the middle of a compile."""
    agent = lab.agent("agent.lab.example", enrolled=True)
    entered = threading.Event()
    answer = lab.master._server._http.answer

    def slow(request: Request, certname: str | None) -> Response:
        entered.set()
        time.sleep(1.5)
        return answer(request, certname)

    lab.master._server._http.answer = slow
    status: list[int] = []
    with own(lab, capture) as proxy:
        thread = threading.Thread(target=lambda: status.append(Peer.of(proxy.address, lab.proxy_name, agent.place).ask(
            "GET", "/puppet-ca/v1/certificate/ca").status))  # fmt: skip
        thread.start()
        assert entered.wait(300)
        proxy.process.terminate()
        thread.join()
    assert status == [200]
    assert len(exchanges(capture)) == 1


def test_of_several_masters_an_agent_meets_the_one_that_it_asks_for(lab: Lab, capture: Path, tmp_path: Path) -> None:
    """`server_list`: each is known to agents by its name."""
    place = lab.agent("agent.lab.example", enrolled=True).place
    second = LabMaster(lab.ca, lab.ca.enrol(tmp_path / "second", "localhost"), demo.recorded())
    with second:
        options = proxies.options(lab, capture)
        del options["puppet_master_name"]
        options["puppet_master"] = f"127.0.0.1:{lab.master_address[1]},localhost:{second.address[1]}"
        with Proxy(options, own=True) as proxy:
            peer = Peer.of(proxy.address, "localhost", place)
            peer.context().check_hostname = False
            assert peer.ask("GET", "/puppet-ca/v1/certificate/ca").status == 200
            assert [received.certname for received in second.received] == ["agent.lab.example"]
            # Whoever asks for neither is led to the first, whose certificate must carry the name of that one.
            peer = Peer.of(proxy.address, "other.example", place)
            peer.context().check_hostname = False
            assert peer.ask("GET", "/puppet-ca/v1/certificate/ca").status == 502
    assert not lab.master.received
    assert len(second.received) == 1
    one, other = (record for record in records(capture) if not isinstance(record, Handshake))
    assert isinstance(one, Exchange)
    assert one.master
    assert (one.master.port, one.master.sni) == (second.address[1], "localhost")
    (refused,) = (record for record in records(capture) if isinstance(record, Handshake))
    assert "did not match" in refused.reason
    assert isinstance(other, Exchange)


@pytest.mark.parametrize("version", [1, 2])
def test_a_balancer_says_where_an_agent_is(version: int, lab: Lab, capture: Path) -> None:
    place = lab.agent(NAME, enrolled=True).place
    header = b"PROXY TCP4 192.0.2.7 192.0.2.1 40001 8140\r\n"
    if version == 2:
        addresses = bytes([192, 0, 2, 7, 192, 0, 2, 1]) + struct.pack("!HH", 40001, 8140)
        header = SIGNATURE + b"\x21\x11\x00\x0c" + addresses
    with own(lab, capture, puppet_proxy_protocol="127.0.0.1, 2001:db8::/64") as proxy:
        peer = Peer.of(proxy.address, lab.proxy_name, place)
        with socket.create_connection(proxy.address) as raw:
            raw.sendall(header)
            with peer.context().wrap_socket(raw, server_hostname=lab.proxy_name) as connection:
                connection.sendall(f"GET {NODE} HTTP/1.1\r\nHost: n\r\n\r\n".encode())
                assert read(connection).status == 200
        # Without it nobody is served, wherever it may be.
        with pytest.raises((OSError, ValueError)):
            peer.ask("GET", NODE)
    assert any("balancer    127.0.0.1/32, which says where agents are" in line for line in proxy.lines)
    assert any("does not begin with the PROXY protocol" in line for line in proxy.lines)
    (exchange,) = exchanges(capture)
    assert (exchange.agent.address, exchange.agent.port) == ("192.0.2.7", 40001)
    assert exchange.identity
    assert exchange.identity.certname == NAME


def test_nobody_else_says_where_he_is(lab: Lab, capture: Path) -> None:
    place = lab.agent(NAME, enrolled=True).place
    with own(lab, capture, puppet_proxy_protocol="192.0.2.0/24") as proxy:
        with socket.create_connection(proxy.address, timeout=20) as raw:
            raw.sendall(b"PROXY TCP4 192.0.2.7 192.0.2.1 40001 8140\r\n")
            assert raw.recv(100) == b""
        assert Peer.of(proxy.address, lab.proxy_name, place).ask("GET", NODE).status == 200


@pytest.mark.parametrize("word", ["192.0.2.7/24", "balancer.example", "1.2.3"])
def test_a_balancer_is_an_address_or_a_network(word: str, lab: Lab, capture: Path) -> None:
    with pytest.raises(Exception, match="did not start") as raised, own(lab, capture, puppet_proxy_protocol=word):
        pass
    assert "Give addresses or networks" in str(raised.value)


def test_behind_a_balancer_too_an_address_has_one_worker(lab: Lab, capture: Path) -> None:
    """A worker that a connection meets by chance passes it on; so one order holds for what an agent does."""
    place = lab.agent(NAME, enrolled=True).place
    addresses = [f"192.0.2.{number}" for number in range(8)]
    with own(lab, capture, "--workers", "2", puppet_proxy_protocol="127.0.0.1") as proxy:
        peer = Peer.of(proxy.address, lab.proxy_name, place)

        def ask(address: str, what: str, source: str = "127.0.0.1") -> int:
            with socket.create_connection(proxy.address, source_address=(source, 0)) as raw:
                if source == "127.0.0.1":
                    raw.sendall(f"PROXY TCP4 {address} 192.0.2.99 40001 8140\r\n".encode())
                with peer.context().wrap_socket(raw, server_hostname=lab.proxy_name) as connection:
                    target = f"/puppet/v3/file_content/modules/app/{what}?environment=production"
                    connection.sendall(f"GET {target} HTTP/1.1\r\nHost: n\r\nConnection: close\r\n\r\n".encode())
                    return read(connection).status

        assert {ask(address, f"{turn}") for address in addresses for turn in range(10)} == {404}
        assert {ask("", f"{turn}", source="127.0.0.5") for turn in range(10)} == {404}, "without a balancer, too"
    found = exchanges(capture)
    for address in [*addresses, "127.0.0.5"]:
        turns = [exchange.request.path.rpartition("/")[2] for exchange in found if exchange.agent.address == address]
        assert turns == [str(turn) for turn in range(10)], address
    assert len(found) == len(records(capture)) == 90
    with Capture.open(capture) as opened:
        assert len([each for each in opened.connections() if each.leg.side == "agent"]) == 90, "each is recorded once"

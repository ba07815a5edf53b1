"""The traps of mitmproxy that are known to break real runs (each was measured once), and failing open."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import ssl
import warnings
from typing import TYPE_CHECKING

import pytest

from inspector.capture.store import Capture
from inspector.host import pki
from inspector.model import Exchange, Gap
from tests.e2e.wire import VERSIONS, Peer, alert_of, read
from tests.support.proxies import analyzed, records
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.lab import Lab
    from tests.support.proxies import Proxied


NAME = "web1.lab.example"
NODE = f"/puppet/v3/node/{NAME}?environment=production"


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_client_that_resumes_its_session_gets_a_full_handshake(
    version: ssl.TLSVersion, lab: Lab, proxied: Proxied, capture: Path
) -> None:
    """Ruby resumes after some seconds of silence; a POST that fails then is not repeated: the run fails."""
    place = lab.agent(NAME, enrolled=True).place
    post = f"PUT /puppet/v3/report/{NAME} HTTP/1.1\r\nHost: n\r\nContent-Length: 2\r\n\r\n{{}}".encode()
    with proxied(lab) as proxy:
        peer = Peer.of(proxy.address, lab.proxy_name, place)
        peer.context().maximum_version = version
        with peer.connect() as first:
            first.sendall(post)
            assert read(first).status == 200
            session = first.session
        with peer.connect(session) as second:
            second.sendall(post)
            assert read(second).status == 200
            assert second.session_reused is False
    assert [received.certname for received in lab.master.received] == [NAME, NAME]
    assert all(record.agent.peer_chain for record in records(capture) if isinstance(record, Exchange))


@pytest.mark.parametrize("own", [False], ids=["mitmdump"])
def test_an_eager_connection_strategy_is_overruled(lab: Lab, proxied: Proxied) -> None:
    """With mitmproxy's default the master's leg is open before the agent's certificate is known."""
    place = lab.agent(NAME, enrolled=True).place
    with proxied(lab, connection_strategy="eager", request_client_cert="false", keep_host_header="false") as proxy:
        assert Peer.of(proxy.address, lab.proxy_name, place).ask("GET", NODE).status == 200
    assert lab.master.received[0].certname == NAME
    assert ("Host", f"{lab.proxy_name}:8140") in lab.master.received[0].request.headers


def test_a_renewed_certificate_is_shown_to_the_next_agent(lab: Lab, proxied: Proxied) -> None:
    shown = pki.SslDirPaths(lab.proxy_ssldir, lab.proxy_name)
    with proxied(lab) as proxy:
        peer = Peer(proxy.address, lab.proxy_name, shown.ca)
        with peer.connect() as connection:
            before = connection.getpeercert(True)
        renewed = pki.sign(lab.ca.authority, pki.read_key(shown.key).public_key(), lab.proxy_name)
        shown.certificate.write_bytes(pki.pem(renewed))
        with peer.connect() as connection:
            after = connection.getpeercert(True)
    assert before != after


def test_a_file_in_mid_renewal_keeps_the_last_good_one(lab: Lab, proxied: Proxied, capture: Path) -> None:
    shown = pki.SslDirPaths(lab.proxy_ssldir, lab.proxy_name)
    place = lab.agent(NAME, enrolled=True).place
    with proxied(lab) as proxy:
        shown.certificate.write_bytes(b"")
        shown.ca.write_bytes(b"")
        assert Peer.of(proxy.address, lab.proxy_name, place).ask("GET", NODE).status == 200
    assert [type(record) for record in records(capture)].count(Gap) == 2


def test_a_new_crl_counts_at_once(lab: Lab, proxied: Proxied) -> None:
    place = lab.agent(NAME, enrolled=True).place
    with proxied(lab) as proxy:
        peer = Peer.of(proxy.address, lab.proxy_name, place)
        assert peer.ask("GET", NODE).status == 200
        lab.revoke(NAME)
        assert [alert_of(peer, version) for version in VERSIONS] == ["certificate_revoked"] * 2
    assert [received.certname for received in lab.master.received] == [NAME]


def test_a_crl_that_is_lost_while_running_is_used_further(lab: Lab, proxied: Proxied, capture: Path) -> None:
    crl = pki.SslDirPaths(lab.proxy_ssldir, lab.proxy_name).crl
    revoked, place = lab.agent("web2.lab.example", enrolled=True).place, lab.agent(NAME, enrolled=True).place
    lab.revoke("web2.lab.example")
    data = crl.read_bytes()
    with proxied(lab) as proxy:
        for lost in (data[: data.index(b"-----BEGIN", 10)], data[:100], b"", None):
            if lost is None:
                crl.unlink()
            else:
                crl.write_bytes(lost)
            assert Peer.of(proxy.address, lab.proxy_name, place).ask("GET", NODE).status == 200
            peer = Peer.of(proxy.address, lab.proxy_name, revoked)
            assert alert_of(peer, ssl.TLSVersion.TLSv1_3) == "certificate_revoked"
    assert [received.certname for received in lab.master.received] == [NAME] * 4
    gaps = [record.reason for record in records(capture) if isinstance(record, Gap)]
    assert len(gaps) == 3, "emptied and cut at its beginning are the same"
    assert all("The last good one is used until" in reason for reason in gaps)


def test_old_protocol_versions_are_the_other_ends_choice(lab: Lab, proxied: Proxied, capture: Path) -> None:
    """Agents of 2.7 and 3.x have no TLS 1.2; mitmproxy's own option for that crashes."""
    with proxied(lab) as proxy:
        peer = Peer(proxy.address, lab.proxy_name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            peer.context().minimum_version = ssl.TLSVersion.TLSv1
            peer.context().maximum_version = ssl.TLSVersion.TLSv1
        peer.context().set_ciphers("ALL:@SECLEVEL=0")
        assert peer.ask("GET", "/puppet-ca/v1/certificate/ca").status == 200
    (record,) = records(capture)
    assert isinstance(record, Exchange)
    assert record.agent.tls_version == "TLSv1"


@pytest.mark.both_roads
def test_a_connection_without_a_request_is_no_failure(lab: Lab, proxied: Proxied, capture: Path) -> None:
    with (
        proxied(lab) as proxy,
        Peer(proxy.address, lab.proxy_name).connect() as connection,
        contextlib.suppress(ssl.SSLError),  # the proxy just closes: nobody waits for a farewell
    ):
        connection.unwrap()
    assert records(capture) == []
    with Capture.open(capture) as opened:
        (connection_,) = opened.connections()
    assert connection_.leg.secured is not None
    assert connection_.closed is not None
    assert connection_.closed.by == "peer"


def test_two_agents_on_one_address_keep_their_own_identity(lab: Lab, proxied: Proxied) -> None:
    places = [lab.agent(name, enrolled=True).place for name in (NAME, "web2.lab.example")]
    with proxied(lab) as proxy:
        peers = [Peer.of(proxy.address, lab.proxy_name, place) for place in places]
        with peers[0].connect() as first, peers[1].connect() as second:
            for connection in (first, second, first, second):
                connection.sendall(b"GET /puppet/v3/environments HTTP/1.1\r\nHost: n\r\n\r\n")
                read(connection)
    assert [received.certname for received in lab.master.received] == [NAME, "web2.lab.example"] * 2


@pytest.mark.both_roads
def test_a_master_that_is_down_is_reported(lab: Lab, proxied: Proxied, capture: Path) -> None:
    place = lab.agent(NAME, enrolled=True).place
    with proxied(lab) as proxy:
        lab.master.__exit__()
        assert Peer.of(proxy.address, lab.proxy_name, place).ask("GET", NODE).status == 502
    (record,) = records(capture)
    assert isinstance(record, Exchange)
    assert record.response is None
    assert record.error
    assert record.master is None or record.master.secured is None


# -- failing open -------------------------------------------------------------------------------------


def test_a_killed_proxy_leaves_everything_older_than_a_second(lab: Lab, proxied: Proxied, capture: Path) -> None:
    place = lab.agent(NAME, enrolled=True).place
    with proxied(lab) as proxy:
        peer = Peer.of(proxy.address, lab.proxy_name, place)
        for _ in range(5):
            peer.ask("GET", NODE)
        assert eventually(lambda: capture.exists() and len(records(capture)) == 5)
        os.kill(proxy.process.pid, signal.SIGKILL)
        proxy.process.wait()
        assert len(records(capture)) == 5


def test_a_deleted_capture_begins_anew(lab: Lab, proxied: Proxied, capture: Path) -> None:
    place = lab.agent(NAME, enrolled=True).place
    with proxied(lab) as proxy:
        peer = Peer.of(proxy.address, lab.proxy_name, place)
        assert peer.ask("GET", NODE).status == 200
        assert eventually(lambda: capture.exists() and len(records(capture)) == 1)
        for file in capture.parent.iterdir():
            file.unlink()
        assert peer.ask("GET", NODE).status == 200
    assert [type(record) for record in records(capture)] in ([Exchange, Gap], [Gap, Exchange])


def test_a_locked_capture_loses_nothing(lab: Lab, proxied: Proxied, capture: Path) -> None:
    place = lab.agent(NAME, enrolled=True).place
    with proxied(lab) as proxy:
        peer = Peer.of(proxy.address, lab.proxy_name, place)
        blocker = sqlite3.connect(capture, isolation_level=None)
        blocker.execute("BEGIN EXCLUSIVE")
        assert peer.ask("GET", NODE).status == 200
        assert eventually(lambda: any("cannot write the capture" in line for line in proxy.lines))
        blocker.execute("ROLLBACK")
        blocker.close()
        assert eventually(lambda: any("is being written again" in line for line in proxy.lines))
        assert peer.ask("GET", NODE).status == 200
    kinds = [type(record) for record in records(capture)]
    assert kinds.count(Exchange) == 2
    gap = next(record for record in records(capture) if isinstance(record, Gap))
    assert gap.lost == 0
    assert "locked" in gap.reason


def test_a_full_disk_does_not_stop_a_run(lab: Lab, proxied: Proxied, capture: Path) -> None:
    """A limit on the file size stands for the full disk: SQLite says "disk I/O error" or "full"."""
    import resource

    with proxied(lab) as proxy:
        _, hard = resource.prlimit(proxy.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(proxy.process.pid, resource.RLIMIT_FSIZE, (4096, hard))
        agent = lab.agent(NAME)
        assert agent.run().status in (0, 2)
        assert eventually(lambda: any("cannot write the capture" in line for line in proxy.lines))
        resource.prlimit(proxy.process.pid, resource.RLIMIT_FSIZE, (hard, hard))
        assert eventually(lambda: any("is being written again" in line for line in proxy.lines))
    assert any(isinstance(record, Gap) for record in records(capture))
    assert [run.outcome for run in analyzed(capture).runs] == ["complete"]

"""No identity is ever lent to someone unverified, and nobody but the master gets to see one."""

from __future__ import annotations

import html
import shutil
import ssl
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest

from inspector.host import pki
from inspector.lab import Lab
from inspector.lab.ca import LabCA
from inspector.lab.master import LabMaster
from inspector.model import Exchange, Handshake, Response
from inspector.proxy.faults.injection import WITHHELD
from tests.e2e.wire import VERSIONS, Peer, Service, alert_of, read
from tests.support.proxies import analyzed, exchanges, records

if TYPE_CHECKING:
    import socket
    from pathlib import Path

    from inspector.host.pki import SslDirPaths
    from tests.support.proxies import Proxied

NAME = "web1.lab.example"
NODE = f"/puppet/v3/node/{NAME}?environment=production"


def place_with(tmp_path: Path, certificate: bytes, key: pki.PrivateKey, ca: bytes) -> SslDirPaths:
    """An ssldir with a certificate made for the occasion."""
    place = pki.SslDirPaths(tmp_path / "odd", NAME)
    place.create()
    place.ca.write_bytes(ca)
    place.certificate.write_bytes(certificate)
    pki.write_private(place.key, pki.key_pem(key))
    return place


def ask(lab: Lab, address: tuple[str, int], place: SslDirPaths | None, target: str = NODE) -> int:
    return Peer.of(address, lab.proxy_name, place).ask("GET", target).status


def authenticated(lab: Lab) -> list[str | None]:
    return [received.certname for received in lab.master.received]


@pytest.mark.both_roads
def test_a_verified_agent_is_itself(lab: Lab, proxied: Proxied, capture: Path) -> None:
    place = lab.agent(NAME, enrolled=True).place
    with proxied(lab) as proxy:
        assert ask(lab, proxy.address, place) == 200
    assert authenticated(lab) == [NAME]
    (record,) = records(capture)
    assert isinstance(record, Exchange)
    assert record.identity is not None
    assert (record.identity.mode, record.identity.certname, record.identity.reason) == ("keys", NAME, None)
    assert record.agent.peer_chain
    assert record.master
    assert record.master.own_chain == record.agent.peer_chain[:1]
    assert b"PRIVATE KEY" not in capture.read_bytes()


@pytest.mark.parametrize("identity", ["keys", "mint", "headers", "none"])
def test_without_a_certificate_there_is_no_identity(identity: str, answers: list[Exchange], proxied: Proxied) -> None:
    with Lab(answers=answers, trust_headers=identity == "headers") as lab:
        lab.agent(NAME, enrolled=True)
        where = {"keys": f"keys:{lab.identities}", "mint": f"mint:{lab.cadir}"}.get(identity, identity)
        with proxied(lab, puppet_identity=where) as proxy:
            claims = {"X-Client-Verify": "SUCCESS", "X-Client-DN": f"CN={NAME}"}
            nobody = Peer(proxy.address, lab.proxy_name)
            assert nobody.ask("GET", NODE).status == 403
            assert nobody.ask("GET", NODE, headers=claims).status == 403
        assert authenticated(lab) == [None, None]


@pytest.mark.both_roads
@pytest.mark.parametrize("identity", ["mint", "headers"])
def test_other_ways_to_be_the_agent(identity: str, answers: list[Exchange], proxied: Proxied, capture: Path) -> None:
    with Lab(answers=answers, trust_headers=identity == "headers") as lab:
        place = lab.agent(NAME, enrolled=True).place
        shutil.rmtree(lab.identities)
        where = f"mint:{lab.cadir}" if identity == "mint" else identity
        with proxied(lab, puppet_identity=where) as proxy:
            assert ask(lab, proxy.address, place) == 200
        assert authenticated(lab) == [NAME]
        (record,) = records(capture)
        assert isinstance(record, Exchange)
        assert record.identity
        assert record.identity.certname == NAME
        # The capture holds what the agent said, not what we added to it.
        assert all(not name.lower().startswith("x-client") for name, _ in record.request.headers)


RENEWAL = "/puppet-ca/v1/certificate_renewal"


def _renew(lab: Lab, address: tuple[str, int], place: SslDirPaths) -> list[int]:
    """Ask for something, for a renewal and for something again, over one connection."""
    lab.master.instead["POST", RENEWAL] = Response(status=200, headers=(("Content-Type", "text/plain"),), body=b"new")
    statuses = []
    with Peer.of(address, lab.proxy_name, place).connect() as connection:
        for line, more in ((f"GET {NODE}", ""), (f"POST {RENEWAL}", "Content-Length: 2\r\n"), (f"GET {NODE}", "")):
            body = "{}" if more else ""
            connection.sendall(f"{line} HTTP/1.1\r\nHost: n\r\nUser-Agent: Puppet/8.10.0\r\n{more}\r\n{body}".encode())
            statuses.append(read(connection).status)
    return statuses


@pytest.mark.both_roads
@pytest.mark.parametrize("identity", ["mint", "keys of another key"])
def test_a_renewal_for_another_key_than_the_agents_does_not_reach_the_ca(
    identity: str, lab: Lab, proxied: Proxied, capture: Path
) -> None:
    agent = lab.agent(NAME, enrolled=True)
    if identity == "mint":
        where = f"mint:{lab.cadir}"
    else:
        (certificate, key), where = _signed(lab.ca.authority), f"keys:{lab.identities}"
        (lab.identities / f"{NAME}.pem").unlink(missing_ok=True)
        pki.write_private(lab.identities / f"{NAME}.pem", pki.key_pem(key) + certificate)
    with proxied(lab, puppet_identity=where) as proxy:
        assert _renew(lab, proxy.address, agent.place) == [200, 404, 200]
    assert [received.request.target for received in lab.master.received] == [NODE, NODE]
    before, renewal, after = records(capture)
    assert isinstance(renewal, Exchange)
    assert renewal.response
    assert renewal.request.body == b"{}"
    assert "puppet-inspector" in renewal.response.body.decode()
    assert (renewal.withheld, renewal.injected) == (WITHHELD, "")
    for other in (before, after):
        assert isinstance(other, Exchange)
        assert other.identity
        assert (other.withheld, other.identity.certname) == ("", NAME)
    rules = [finding.rule for run in analyzed(capture).runs for finding in run.findings]
    assert [rule for rule in rules if rule.startswith("B")] == ["B49"]


@pytest.mark.parametrize("identity", ["keys", "headers"])
def test_a_renewal_for_the_agents_own_key_is_passed_on(
    identity: str, answers: list[Exchange], proxied: Proxied, capture: Path
) -> None:
    with Lab(answers=answers, autosign=True, trust_headers=identity == "headers") as lab:
        agent = lab.agent(NAME, enrolled=True)
        where = f"keys:{lab.identities}" if identity == "keys" else identity
        with proxied(lab, puppet_identity=where) as proxy:
            assert _renew(lab, proxy.address, agent.place) == [200, 200, 200]
        assert [received.request.target for received in lab.master.received] == [NODE, RENEWAL, NODE]
        assert all(isinstance(record, Exchange) and record.withheld == "" for record in records(capture))


@pytest.mark.both_roads
def test_claims_are_withheld_whatever_their_spelling(answers: list[Exchange], proxied: Proxied, capture: Path) -> None:
    with Lab(answers=answers, trust_headers=True) as lab:
        lines = ["x-client-verify: SUCCESS", f"X_CLIENT_DN: CN={NAME}", "X-Client-Cert: x", f"X-SSL-Subject: CN={NAME}"]
        request = "\r\n".join([f"GET {NODE} HTTP/1.1", "Host: n", *lines, "", ""]).encode()
        with proxied(lab, puppet_identity="headers") as proxy:
            assert Peer.of(proxy.address, lab.proxy_name, None).send(request).status == 403
        (received,) = lab.master.received
        assert [name for name, _ in received.request.headers] == ["Host"]
        (record,) = records(capture)
        assert isinstance(record, Exchange)
        assert record.stripped == ("x-client-verify", "X_CLIENT_DN", "X-Client-Cert", "X-SSL-Subject")


def _signed(ca: pki.Authority, **options: object) -> tuple[bytes, pki.PrivateKey]:
    key = pki.new_key()
    certificate = pki.sign(ca, key.public_key(), NAME, **options)  # type: ignore[arg-type]
    return pki.pem(certificate), key


@pytest.mark.both_roads
def test_a_bad_certificate_is_refused_in_the_handshake(
    lab: Lab, proxied: Proxied, capture: Path, tmp_path: Path
) -> None:
    lab.agent(NAME, enrolled=True)  # so that an identity could be lent
    now, ca, foreign, own = datetime.now(UTC), lab.ca.authority, LabCA("elsewhere.example").authority, pki.make_ca(NAME)
    crl = pki.make_crl(ca, [4711], number=9)
    (lab.proxy_ssldir / "crl.pem").write_bytes(
        pki.pem(crl) + lab.ca.crl_bundle.partition(b"-----END X509 CRL-----\n")[2]
    )
    kinds = {
        "foreign": (_signed(foreign), "unknown_ca", "unable to get local issuer certificate"),
        "self-signed": ((pki.pem(own.certificate), own.key), "unknown_ca", f"self signed certificate for CN={NAME}"),
        "expired": (
            _signed(ca, not_before=now - timedelta(9), lifetime=timedelta(1)), "certificate_expired",
            f"The certificate 'CN={NAME}' has expired, verify time is synchronized",
        ),
        "not yet valid": (
            _signed(ca, not_before=now + timedelta(9)), "bad_certificate",
            f"The certificate 'CN={NAME}' is not yet valid",
        ),
        "revoked": (_signed(ca, serial=4711), "certificate_revoked", f"Certificate 'CN={NAME}' is revoked"),
    }  # fmt: skip
    with proxied(lab) as proxy:
        for kind, ((certificate, key), alert, _) in kinds.items():
            place = place_with(tmp_path / kind, certificate, key, lab.ca.ca_bundle)
            heard = [alert_of(Peer.of(proxy.address, lab.proxy_name, place), version) for version in VERSIONS]
            assert heard == [alert, alert], kind  # the same as is recorded: the agent prints it
    assert lab.master.received == []
    expected = [(kind, alert, reason) for kind, (_, alert, reason) in kinds.items() for _ in VERSIONS]
    for record, (kind, alert, reason) in zip(records(capture), expected, strict=True):
        assert isinstance(record, Handshake)
        assert (record.leg.side, record.alert, record.alert_by) == ("agent", alert, "proxy"), kind
        assert reason in record.reason
        assert record.leg.peer_chain
    assert analyzed(capture).runs[0].outcome == "refused"


@pytest.mark.parametrize("trouble", ["missing", "expired", "incomplete", "garbage"])
def test_without_a_sound_crl_the_bootstrap_passes_and_no_identity_is_used(
    trouble: str, lab: Lab, proxied: Proxied, capture: Path
) -> None:
    crl = lab.proxy_ssldir / "crl.pem"
    match trouble:
        case "missing":
            crl.unlink()
        case "expired":
            past = datetime.now(UTC) - timedelta(days=9)
            old = pki.make_crl(lab.ca.authority, last_update=past, next_update=past + timedelta(days=1))
            crl.write_bytes(pki.pem(old) + crl.read_bytes().partition(b"-----END X509 CRL-----\n")[2])
        case "incomplete":
            crl.write_bytes(lab.ca.signing_crl)
        case _:
            crl.write_bytes(b"garbage")
    with proxied(lab) as proxy:
        agent = lab.agent(NAME)
        agent.run()
    assert any(line.startswith("-- ") for line in proxy.lines)
    asked = exchanges(capture)
    bootstrap = [exchange for exchange in asked if not exchange.agent.peer_chain]
    rest = [exchange for exchange in asked if exchange.agent.peer_chain]
    assert [exchange.response.status for exchange in bootstrap if exchange.response] == [200, 200, 200, 200]
    assert rest
    assert all(
        exchange.identity and exchange.identity.certname is None and exchange.identity.reason for exchange in rest
    )
    assert set(authenticated(lab)) == {None}


def test_a_missing_key_is_reported_and_the_request_goes_on(lab: Lab, proxied: Proxied, capture: Path) -> None:
    place = lab.agent(NAME, enrolled=True).place
    (lab.identities / f"{NAME}.pem").unlink()
    with proxied(lab) as proxy:
        assert ask(lab, proxy.address, place) == 403
    (record,) = records(capture)
    assert isinstance(record, Exchange)
    assert record.identity
    assert record.identity.certname is None
    assert "no key for web1.lab.example" in (record.identity.reason or "")
    assert any("sent without the agent's identity: no key for" in line for line in proxy.lines)


def test_new_and_renewed_keys_are_picked_up_while_running(lab: Lab, proxied: Proxied) -> None:
    place = lab.agent(NAME, enrolled=True).place
    file = lab.identities / f"{NAME}.pem"
    pem = file.read_bytes()
    file.unlink()
    with proxied(lab) as proxy:
        assert ask(lab, proxy.address, place) == 403
        pki.write_private(file, pem)
        assert ask(lab, proxy.address, place) == 200
        renewed, key = _signed(lab.ca.authority)
        pki.write_private(file, pki.key_pem(key) + renewed)
        assert ask(lab, proxy.address, place) == 200
    assert authenticated(lab) == [None, NAME, NAME]


def test_another_agents_certificate_cannot_pose_as_the_master(
    lab: Lab, proxied: Proxied, capture: Path, tmp_path: Path
) -> None:
    place = lab.agent(NAME, enrolled=True).place
    rogue_place = lab.ca.enrol(tmp_path / "rogue", "web2.lab.example")
    with LabMaster(lab.ca, rogue_place) as rogue:
        host, port = rogue.address
        with proxied(lab, puppet_master=f"{host}:{port}") as proxy:
            # The agent itself asks for the rogue's name, as its SNI: it is the configured one that counts.
            peer = Peer((proxy.address), "web2.lab.example", None, (place.certificate, place.key))
            answer = peer.ask("GET", NODE)
    assert answer.status == 502
    # The agent prints it: else only the proxy would know what is wrong.
    assert "'puppet.lab.example' did not match server certificate; expected one of" in html.unescape(
        answer.body.decode()
    )
    assert rogue.received == []
    handshake, exchange = records(capture)
    assert isinstance(handshake, Handshake)
    assert handshake.leg.side == "master"
    assert "Server hostname 'puppet.lab.example' did not match" in handshake.reason
    assert isinstance(exchange, Exchange)
    assert exchange.response is None


def test_a_master_of_another_ca_gets_nothing(lab: Lab, proxied: Proxied, capture: Path, tmp_path: Path) -> None:
    place = lab.agent(NAME, enrolled=True).place
    foreign = LabCA(lab.master_name)
    with LabMaster(foreign, foreign.enrol(tmp_path / "foreign", lab.master_name)) as rogue:
        host, port = rogue.address
        with proxied(lab, puppet_master=f"{host}:{port}") as proxy:
            answer = Peer.of(proxy.address, lab.proxy_name, place).ask("GET", NODE)
            assert answer.status == 502
            assert b"self signed certificate in certificate chain" in answer.body
            assert ask(lab, proxy.address, None, "/puppet-ca/v1/certificate/ca") == 502
    assert rogue.received == []
    refused = [record for record in records(capture) if isinstance(record, Handshake)]
    assert len(refused) == 2
    assert all("self signed certificate in certificate chain" in record.reason for record in refused)
    assert {(record.alert, record.alert_by) for record in refused} == {("unknown_ca", "proxy")}


@pytest.mark.both_roads
@pytest.mark.parametrize("version", VERSIONS)
def test_a_refused_master_gets_the_alert(
    version: ssl.TLSVersion, lab: Lab, proxied: Proxied, capture: Path, tmp_path: Path
) -> None:
    foreign = LabCA(lab.master_name)
    place = foreign.enrol(tmp_path / "foreign", lab.master_name)
    heard = []

    def refused(raw: socket.socket) -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = context.maximum_version = version
        context.load_cert_chain(place.certificate, place.key)
        with pytest.raises(ssl.SSLError) as caught, context.wrap_socket(raw, server_side=True) as secure:
            secure.recv(1)
        heard.append(caught.value.reason)

    with Service(refused) as rogue, proxied(lab, puppet_master=rogue.target) as proxy:
        assert ask(lab, proxy.address, None, "/puppet-ca/v1/certificate/ca") == 502
    assert heard == ["TLSV1_ALERT_UNKNOWN_CA"]


@pytest.mark.both_roads
def test_the_master_refuses_late_and_it_is_reported(lab: Lab, proxied: Proxied, capture: Path) -> None:
    with proxied(lab):
        agent = lab.agent(NAME, enrolled=True)
        lab.ca.revoke(NAME)  # the proxy's own CRL does not know yet
        assert agent.run().status == 1
    handshake = next(record for record in records(capture) if isinstance(record, Handshake))
    assert (handshake.leg.side, handshake.alert, handshake.alert_by) == ("master", "certificate_revoked", "master")
    assert handshake.leg.secured is not None  # TLS 1.3: the handshake was over when the refusal came
    run = analyzed(capture).runs[0]
    assert (run.certname, run.outcome) == (NAME, "refused")

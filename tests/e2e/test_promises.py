"""The promises of docs/security.md that no other test proves: whose certificate makes whom of an agent, who it
stays, and what the proxy leaves behind.
"""

from __future__ import annotations

import contextlib
import datetime
import ipaddress
import resource
import shutil
import socket
import ssl
import tempfile
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from OpenSSL import SSL

from inspector.capture.store import Capture
from inspector.errors import InspectorError
from inspector.host import pki
from inspector.lab import Lab
from inspector.model import Exchange, Handshake
from tests.e2e.wire import VERSIONS, Listener, Peer, alert_of, read
from tests.support.proxies import exchanges, records

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.support.proxies import Proxied


NAME, OTHER = "web1.lab.example", "web2.lab.example"
NODE = f"/puppet/v3/node/{NAME}?environment=production"
CLIENT = ExtendedKeyUsageOID.CLIENT_AUTH
SERVER = ExtendedKeyUsageOID.SERVER_AUTH


def signed(
    ca: pki.Authority,
    key: pki.PrivateKey,
    *common_names: str,
    names: Iterable[x509.GeneralName] = (),
    usage: x509.ObjectIdentifier = CLIENT,
) -> x509.Certificate:
    """A certificate as no Puppet CA would make it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # names that are too long are what is asked for
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name, _validate=False) for name in common_names])
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(ca.certificate.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(1))
        .not_valid_after(now + datetime.timedelta(9))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([usage]), critical=True)
    )
    if names:
        builder = builder.add_extension(x509.SubjectAlternativeName(list(names)), critical=False)
    return builder.sign(ca.key, hashes.SHA256())


def peer_with(lab: Lab, address: tuple[str, int], where: Path, key: pki.PrivateKey, *chain: x509.Certificate) -> Peer:
    """Somebody who shows this chain."""
    where.mkdir(exist_ok=True)
    certificate, private = where / "cert.pem", where / "key.pem"
    certificate.write_bytes(pki.pem(*chain))
    pki.write_private(private, pki.key_pem(key))
    return Peer(address, lab.proxy_name, None, (certificate, private))


# -- whose certificate ----------------------------------------------------------------------------------


def test_a_chain_that_is_not_sound_is_refused_in_the_handshake(
    lab: Lab, proxied: Proxied, capture: Path, tmp_path: Path
) -> None:
    lab.agent(NAME, enrolled=True)  # so that an identity could be lent
    ca, key = lab.ca.authority, pki.new_key()
    root = pki.make_ca(pki.certname_of(lab.ca.root.certificate))
    same_name = pki.make_ca(pki.certname_of(ca.certificate), root)
    place = lab.agent(OTHER, enrolled=True).place
    agent = pki.Authority(x509.load_pem_x509_certificate(place.certificate.read_bytes()), pki.read_key(place.key))
    chains = {
        "not for clients": ([signed(ca, key, NAME, usage=SERVER)], "unsupported_certificate", "X509_V_ERR 26"),
        "a CA of the same name": (
            [signed(same_name, key, NAME), same_name.certificate, root.certificate],
            "decrypt_error",
            f"Invalid signature for certificate 'CN={NAME}'",
        ),
        "signed by another agent": ([signed(agent, key, NAME), agent.certificate], "unknown_ca", "X509_V_ERR"),
        "intermediate revoked": (
            [signed(ca, key, NAME)],
            "certificate_revoked",
            "Certificate 'CN=Puppet CA: puppet.lab.example' is revoked",
        ),
    }
    with proxied(lab) as proxy:
        for kind, (chain, alert, _) in chains.items():
            if kind == "intermediate revoked":
                crls = pki.make_crl(lab.ca.root, [ca.certificate.serial_number], 1)
                (lab.proxy_ssldir / "crl.pem").write_bytes(lab.ca.signing_crl + pki.pem(crls))
            peer = peer_with(lab, proxy.address, tmp_path / kind, key, *chain)
            assert [alert_of(peer, version) for version in VERSIONS] == [alert, alert], kind
    assert lab.master.received == []
    expected = [(kind, alert, reason) for kind, (_, alert, reason) in chains.items() for _ in VERSIONS]
    for record, (kind, alert, reason) in zip(records(capture), expected, strict=True):
        assert isinstance(record, Handshake)
        assert (record.alert, record.alert_by) == (alert, "proxy"), kind
        assert reason in record.reason, kind


def test_only_the_common_name_says_who_it_is(lab: Lab, proxied: Proxied, tmp_path: Path) -> None:
    for name in (NAME, OTHER):
        lab.agent(name, enrolled=True)
    tricks = [
        x509.DNSName(OTHER),
        x509.DNSName("*.lab.example"),
        x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
        x509.UniformResourceIdentifier(f"puppet://{OTHER}/"),
        x509.RFC822Name(f"root@{OTHER}"),
        x509.DirectoryName(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, OTHER)])),
    ]
    with proxied(lab) as proxy:
        for number, trick in enumerate(tricks):
            key = pki.new_key()
            leaf = signed(lab.ca.authority, key, NAME, names=[trick])
            peer = peer_with(lab, proxy.address, tmp_path / str(number), key, leaf)
            assert peer.ask("GET", NODE).status == 200
            assert peer.ask("GET", NODE.replace(NAME, OTHER)).status == 403
    assert {received.certname for received in lab.master.received} == {NAME}


NO_NAMES = [
    (),
    ("",),
    (NAME, OTHER),
    (OTHER, NAME),
    (f"{NAME}\0.evil.example",),
    (f"\0{NAME}",),
    (f"{NAME}\n",),
    (f"{NAME}\r\nX-Client-DN: CN={OTHER}",),
    (f"evil/CN={NAME}",),
    (f"evil,CN={NAME}",),
    (f"{NAME}.",),
    (f" {NAME}",),
    (NAME.upper(),),
    ("*.lab.example",),
    ("wéb1.lab.example",),
    ("\x1b[2J" + NAME,),
    ("..",),
    (f"../identities/{NAME}",),
    ("../outside",),
    ("/etc/passwd",),
    ("ca",),
    ("Puppet CA: puppet.lab.example",),
    ("w" * 300,),
    ("w" * 252,),
    ("w" * 70_000,),
]


@pytest.mark.parametrize("identity", ["keys", "mint", "headers"])
def test_a_name_that_is_not_quite_anothers_gives_no_identity(
    identity: str, answers: list[Exchange], proxied: Proxied, capture: Path, tmp_path: Path
) -> None:
    """Signed by the CA, every one of them: only what the names are keeps them apart."""
    with Lab(answers=answers, trust_headers=identity == "headers") as lab:
        for name in (NAME, OTHER):
            lab.agent(name, enrolled=True)
        shutil.copy(lab.identities / f"{NAME}.pem", lab.directory / "outside.pem")
        where = {"keys": f"keys:{lab.identities}", "mint": f"mint:{lab.cadir}"}.get(identity, identity)
        with proxied(lab, puppet_identity=where) as proxy:
            for number, names in enumerate(NO_NAMES):
                key = pki.new_key()
                leaf = signed(lab.ca.authority, key, *names)
                peer = peer_with(lab, proxy.address, tmp_path / str(number), key, leaf)
                with contextlib.suppress(ConnectionError, ssl.SSLError):  # a certificate too large for a handshake
                    assert peer.ask("GET", NODE).status == 403, names
                    assert peer.ask("GET", NODE.replace(NAME, OTHER)).status == 403, names
        assert not {NAME, OTHER} & {received.certname for received in lab.master.received}
        assert all("\n" not in value for received in lab.master.received for _, value in received.request.headers)
    assert len(exchanges(capture)) >= 2 * (len(NO_NAMES) - 1)
    assert all(line.isprintable() for line in proxy.lines)
    assert not any("-- internal error" in line for line in proxy.lines)
    if identity == "keys":
        assert all(exchange.identity and exchange.identity.reason for exchange in exchanges(capture))


def test_a_link_to_anothers_key_gives_no_identity(lab: Lab, proxied: Proxied, capture: Path) -> None:
    places = {name: lab.agent(name, enrolled=True).place for name in (NAME, OTHER)}
    file = lab.identities / f"{OTHER}.pem"
    moved = file.rename(lab.directory / "elsewhere.pem")
    with proxied(lab) as proxy:
        peer = Peer.of(proxy.address, lab.proxy_name, places[OTHER])
        for target in (lab.identities / f"{NAME}.pem", lab.directory / "nowhere.pem", file, lab.identities):
            file.symlink_to(target)
            assert peer.ask("GET", NODE).status == 403
            file.unlink()
        file.symlink_to(moved)
        assert peer.ask("GET", NODE.replace(NAME, OTHER)).status == 200
    assert [received.certname for received in lab.master.received] == [None] * 4 + [OTHER]
    reasons = [exchange.identity.reason for exchange in exchanges(capture) if exchange.identity]
    assert reasons[0]
    assert f"is not a certificate for {OTHER}" in reasons[0]


# -- who it stays ---------------------------------------------------------------------------------------


@pytest.mark.both_roads
@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_anothers_session_gives_no_identity(version: ssl.TLSVersion, lab: Lab, proxied: Proxied) -> None:
    places = {name: lab.agent(name, enrolled=True).place for name in (NAME, OTHER)}
    ask = f"GET {NODE} HTTP/1.1\r\nHost: n\r\n\r\n".encode()
    with Listener(lab.master.context) as master, proxied(lab, puppet_master="{}:{}".format(*master.address)) as proxy:
        peers = [Peer.of(proxy.address, lab.proxy_name, place) for place in places.values()]
        context = peers[0].context()
        context.maximum_version = version
        with peers[0].connect() as first:
            first.sendall(ask)
            read(first)
            session = first.session
        # The same context, so that Python lets the session be used: first as the other agent, then as nobody.
        context.load_cert_chain(places[OTHER].certificate, places[OTHER].key)
        with peers[0].connect(session) as second:
            second.sendall(ask)
            read(second)
            assert not second.session_reused
    assert [heard.certname for heard in master.heard] == [NAME, OTHER]
    assert not any(heard.resumed for heard in master.heard)


@pytest.mark.both_roads
def test_renegotiating_changes_no_identity(lab: Lab, proxied: Proxied, capture: Path) -> None:
    places = {name: lab.agent(name, enrolled=True).place for name in (NAME, OTHER)}
    with proxied(lab) as proxy:
        for first in (None, NAME):
            with socket.create_connection(proxy.address) as raw:
                context = SSL.Context(SSL.TLS_CLIENT_METHOD)
                context.set_max_proto_version(SSL.TLS1_2_VERSION)
                connection = SSL.Connection(context, raw)
                if first:
                    _show(connection, places[first])
                connection.set_connect_state()
                connection.do_handshake()
                _show(connection, places[OTHER])
                connection.renegotiate()
                with pytest.raises(SSL.Error) as refused:
                    connection.do_handshake()
                assert "no renegotiation" in str(refused.value)
                with contextlib.suppress(SSL.Error):
                    connection.sendall(f"GET {NODE.replace(NAME, OTHER)} HTTP/1.1\r\nHost: n\r\n\r\n".encode())
                    connection.recv(1000)
    assert OTHER not in {received.certname for received in lab.master.received}
    assert not any(exchange.identity and exchange.identity.certname == OTHER for exchange in exchanges(capture))


def _show(connection: SSL.Connection, place: pki.SslDirPaths) -> None:
    connection.use_certificate(x509.load_pem_x509_certificate(place.certificate.read_bytes()))
    connection.use_privatekey(pki.read_key(place.key))


@pytest.mark.both_roads
def test_no_path_makes_an_agent_another(lab: Lab, proxied: Proxied, capture: Path) -> None:
    """The path plays no part in who it is; and the master decides over the very bytes that the agent sent."""
    places = {name: lab.agent(name, enrolled=True).place for name in (NAME, OTHER)}
    targets = [
        f"/puppet/v3/catalog/{NAME}/../{OTHER}",
        f"/puppet/v3/catalog/../catalog/{OTHER}",
        f"/puppet/v3/catalog/{NAME}%2f..%2f{OTHER}",
        f"/puppet/v3/catalog/{NAME}/%2e%2e/{OTHER}",
        f"/puppet/v3/catalog/{NAME}%252f..%252f{OTHER}",
        f"/puppet/v3/node/{OTHER}",
        f"//puppet/v3/node/{OTHER}",
        f"/puppet/v3//node/{OTHER}",
        f"/puppet/v3/node/{OTHER.replace('2', '%32')}",
        f"/puppet/v3/node/{OTHER}%00{NAME}",
        f"/puppet/v3/node/{OTHER};{NAME}",
        f"/puppet/v3/node/{OTHER}?certname={NAME}",
        f"/puppet/v3/node/{OTHER}#{NAME}",
        f"/puppet/v3/node/{OTHER.upper()}",
        f"/puppet/v3/node/{OTHER}.",
        "/puppet/v3/node/*.lab.example",
        f"/puppet/v3/../../puppet-ca/v1/certificate_status/{OTHER}",
        f"/puppet/v3/node/{NAME}\\..\\{OTHER}",
    ]
    with proxied(lab) as proxy:
        peer = Peer.of(proxy.address, lab.proxy_name, places[NAME])
        assert [peer.ask("GET", target).status in (403, 404) for target in targets] == [True] * len(targets)
    assert [received.request.target for received in lab.master.received] == targets
    assert [received.certname for received in lab.master.received] == [NAME] * len(targets)
    assert [exchange.request.target for exchange in exchanges(capture)] == targets


# -- keys -----------------------------------------------------------------------------------------------


@pytest.mark.both_roads
@pytest.mark.parametrize("identity", ["keys", "mint"])
def test_no_private_key_is_ever_written(
    identity: str, own: bool, lab: Lab, proxied: Proxied, capture: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = lab.agent(NAME, enrolled=True).place
    room = tmp_path / "room"
    room.mkdir()
    for variable in ("TMPDIR", "HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(variable, str(room))
    monkeypatch.setattr(tempfile, "tempdir", None)
    where = f"keys:{lab.identities}" if identity == "keys" else f"mint:{lab.cadir}"
    with proxied(lab, puppet_identity=where) as proxy:
        assert Peer.of(proxy.address, lab.proxy_name, place).ask("GET", NODE).status == 200
        agent = lab.agent(OTHER)
        agent.run()
        assert resource.prlimit(proxy.process.pid, resource.RLIMIT_CORE) == (0, 0)
        # mitmdump makes a CA of its own, which nobody trusts, in a directory that only we can enter.
        found = {file.name for file in _files(room) if b"PRIVATE KEY" in file.read_bytes()}
        assert found == (set() if own else {"mitmproxy-ca.pem"})
        assert all(path.stat().st_mode & 0o77 == 0 for path in room.iterdir())
        ours = [
            place.key,
            agent.place.key,
            lab.cadir / "ca_key.pem",
            pki.SslDirPaths(lab.proxy_ssldir, lab.proxy_name).key,
        ]
        secrets = [_secret(pki.read_key(key)) for key in ours]
        written = b"".join(file.read_bytes() for file in [*_files(room), *_files(capture.parent)])
        assert not any(secret in written for secret in secrets)
        assert b"TRAFFIC_SECRET" not in written, "nor what decrypts a session"
    assert _files(room) == []
    with Capture.open(capture) as opened:
        bodies = [
            message.body
            for record in opened.records()
            if isinstance(record, Exchange)
            for message in (record.request, record.response)
            if message
        ]
    assert len(bodies) > 20
    assert not any(b"PRIVATE KEY" in body or secret in body for body in bodies for secret in secrets)


def _files(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file()]


def _secret(key: pki.PrivateKey) -> bytes:
    numbers = key.private_numbers()
    assert hasattr(numbers, "private_value")
    return int(numbers.private_value).to_bytes(32)


def test_a_key_that_others_can_read_is_never_used(lab: Lab, proxied: Proxied, capture: Path) -> None:
    place = lab.agent(NAME, enrolled=True).place
    file = lab.identities / f"{NAME}.pem"
    statuses = []
    with proxied(lab) as proxy:
        peer = Peer.of(proxy.address, lab.proxy_name, place)
        for mode in (0o600, 0o640, 0o644, 0o660, 0o602, 0o400):
            file.chmod(mode)
            statuses.append(peer.ask("GET", NODE).status)
    assert statuses == [200, 200, 403, 403, 403, 200]
    reasons = [exchange.identity.reason or "" for exchange in exchanges(capture) if exchange.identity]
    assert f"chmod g-w,o= {file}" in reasons[2]
    assert any("sent without the agent's identity" in line and "mode 0644" in line for line in proxy.lines)


@pytest.mark.both_roads
def test_a_key_that_others_can_read_stops_the_start(lab: Lab, proxied: Proxied, capture: Path) -> None:
    pki.SslDirPaths(lab.proxy_ssldir, lab.proxy_name).key.chmod(0o644)
    with pytest.raises(InspectorError, match="Other users can read or change the private key"), proxied(lab):
        pass
    assert not capture.exists()


# -- what is exposed ------------------------------------------------------------------------------------


@pytest.mark.both_roads
def test_it_listens_on_loopback_by_default(lab: Lab, proxied: Proxied) -> None:
    with proxied(lab, puppet_listen="") as proxy:
        assert proxy.address[0] == "127.0.0.1"
        assert _listening(proxy.process.pid) == {("127.0.0.1", proxy.address[1])}


def _listening(pid: int) -> set[tuple[str, int]]:
    """The IPv4 and IPv6 addresses on which a process takes TCP connections or UDP datagrams."""
    inodes = set()
    for descriptor in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            inodes.add(str(descriptor.readlink()).removeprefix("socket:[").removesuffix("]"))
    found = set()
    for table, state in (("tcp", "0A"), ("tcp6", "0A"), ("udp", "07"), ("udp6", "07")):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == state and fields[9] in inodes:
                address, port = fields[1].split(":")
                raw = b"".join(bytes.fromhex(address[at : at + 8])[::-1] for at in range(0, len(address), 8))
                family = socket.AF_INET if len(raw) == 4 else socket.AF_INET6
                found.add((socket.inet_ntop(family, raw), int(port, 16)))
    return found


@pytest.mark.both_roads
def test_whoever_is_not_the_master_sees_nothing_of_a_site(lab: Lab, proxied: Proxied, tmp_path: Path) -> None:
    """What mitmproxy shows browsers is not shown, and its own CA signs nothing."""
    with proxied(lab) as proxy:
        peer = Peer(proxy.address, "mitm.it")
        answer = peer.send(b"GET / HTTP/1.1\r\nHost: mitm.it\r\n\r\n")
        assert b"mitmproxy" not in answer.body
        for name in ("mitm.it", "elsewhere.example", lab.proxy_name):
            with Peer(proxy.address, name).connect() as connection:
                shown = x509.load_der_x509_certificate(connection.getpeercert(True) or b"")
                assert shown.issuer == lab.ca.authority.certificate.subject
    assert [received.request.header("Host") for received in lab.master.received] == ["mitm.it"]

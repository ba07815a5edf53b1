"""What a proxy does with the connections that agents ask it for."""

from __future__ import annotations

import asyncio
import hashlib
import socket
import ssl
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest
from cryptography import x509

from inspector.host import pki
from inspector.model import RUN_CA, Leg
from inspector.proxy.connect import acceptance
from inspector.proxy.connect import interception as module
from inspector.proxy.connect.interception import ANY, Addition, Decision, Interception, RunAuthority, Way
from tests.support.rows import each_row

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.lab.ca import LabCA
    from inspector.lab.master import LabMaster
    from inspector.proxy.connect.acceptance import Examination
    from inspector.proxy.connect.trust import NodeTrust

NAME = "localhost"
SERVER = ("puppet.example", 8140)
ELSEWHERE = Decision(Way.REFUSED)


class Made(Interception):
    """One of a test: what is not intercepted is noted."""

    def __init__(self, trust: NodeTrust, *servers: tuple[str, int], ca_digest: str = "") -> None:
        self.lines: list[str] = []
        self.others: list[tuple[str, int]] = []
        super().__init__(
            servers, trust, self.lines.append, lifetime=timedelta(days=1), timeout=60.0, ca_digest=ca_digest
        )

    def other(self, server: tuple[str, int]) -> Decision:
        self.others.append(server)
        return ELSEWHERE

    def way(self, server: tuple[str, int]) -> Way:
        return asyncio.run(self.decide(server)).way


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """The servers that were looked at."""
    found: list[tuple[str, int]] = []
    look = acceptance.examine

    def counted(server: tuple[str, int], *arguments: object) -> Examination:
        found.append(server)
        return look(server, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(acceptance, "examine", counted)
    return found


# -- which way --------------------------------------------------------------------------------------------


def test_a_master_that_the_agent_would_accept_is_intercepted(master: LabMaster, trust: NodeTrust) -> None:
    server = (NAME, master.address[1])
    decision = asyncio.run(Made(trust, (NAME.upper(), server[1])).decide(server))
    assert decision.way is Way.INTERCEPTED
    assert decision.examination
    assert decision.examination.chain


def test_a_master_that_it_would_refuse_is_passed_on_unread(master: LabMaster, trust: NodeTrust) -> None:
    server = ("127.0.0.1", master.address[1])
    decision = asyncio.run(Made(trust, server).decide(server))
    assert decision.way is Way.TUNNELLED
    assert decision.examination
    assert "did not match" in decision.examination.refusal


def test_who_is_silent_is_passed_on_unread(trust: NodeTrust, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acceptance, "SILENCE", 0.2)
    with socket.create_server((NAME, 0)) as silent:
        server = (NAME, silent.getsockname()[1])
        decision = asyncio.run(Made(trust, server).decide(server))
    assert (decision.way, decision.examination and decision.examination.silent) == (Way.TUNNELLED, 0.2)


def test_there_is_no_way_to_a_closed_port(trust: NodeTrust) -> None:
    with socket.create_server((NAME, 0)) as closed:
        server = (NAME, closed.getsockname()[1])
    decision = asyncio.run(Made(trust, server).decide(server))
    assert decision.way is Way.NONE
    assert decision.examination
    assert isinstance(decision.examination.unreachable, ConnectionRefusedError)


def test_many_agents_that_ask_at_once_cost_one_look(
    master: LabMaster, trust: NodeTrust, looks: list[tuple[str, int]]
) -> None:
    server = (NAME, master.address[1])
    made = Made(trust, server)

    async def ask() -> list[Decision]:
        return await asyncio.gather(*(made.decide(server) for _ in range(50)))

    assert {decision.way for decision in asyncio.run(ask())} == {Way.INTERCEPTED}
    assert looks == [server]


def test_a_look_that_fails_is_made_again(trust: NodeTrust, monkeypatch: pytest.MonkeyPatch) -> None:
    made = Made(trust, SERVER)
    for mistake in ("first", "second"):
        monkeypatch.setattr(acceptance, "examine", Mock(side_effect=RuntimeError(mistake)))
        with pytest.raises(RuntimeError, match=mistake):
            asyncio.run(made.decide(SERVER))


def test_nobody_looks_at_another_server(trust: NodeTrust, looks: list[tuple[str, int]]) -> None:
    made = Made(trust, ("puppet.example", 8140))
    others = [("puppet.example", 8141), ("forge.example", 8140), ("puppet.example.evil", 8140), (ANY, 8140)]
    assert [made.way(server) for server in others] == [Way.REFUSED] * 4
    assert (made.others, looks) == (others, [])


def test_every_server_of_a_port_may_be_meant(master: LabMaster, trust: NodeTrust) -> None:
    port = master.address[1]
    made = Made(trust, (ANY, port))
    assert (made.way((NAME, port)), made.way((NAME, port ^ 1))) == (Way.INTERCEPTED, Way.REFUSED)


def test_a_server_is_looked_at_once_in_a_while(
    master: LabMaster, trust: NodeTrust, looks: list[tuple[str, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    server = (NAME, master.address[1])
    made = Made(trust, server)
    assert [made.way(server) for _ in range(3)] == [Way.INTERCEPTED] * 3
    assert looks == [server]
    monkeypatch.setattr(module, "VALID", -1.0)
    assert made.way(server) is Way.INTERCEPTED
    assert looks == [server] * 2


def test_it_is_looked_at_again_with_other_files(
    master: LabMaster, trust: NodeTrust, place: pki.SslDirPaths, ca: LabCA
) -> None:
    """A revocation that the agent has just learned of counts at once."""
    server = (NAME, master.address[1])
    made = Made(trust, server)
    assert made.way(server) is Way.INTERCEPTED
    ca.revoke("puppet.example")
    place.crl.write_bytes(ca.crl_bundle)
    assert made.way(server) is Way.TUNNELLED
    place.ca.write_text("garbage")
    assert made.way(server) is Way.TUNNELLED


def test_a_refused_server_is_looked_at_each_time(
    master: LabMaster, trust: NodeTrust, looks: list[tuple[str, int]]
) -> None:
    server = ("127.0.0.1", master.address[1])
    made = Made(trust, server)
    assert [made.way(server) for _ in range(2)] == [Way.TUNNELLED] * 2
    assert looks == [server] * 2


def test_a_line_is_printed_once(trust: NodeTrust) -> None:
    made = Made(trust)
    for line in ("a", "b", "a"):
        made.report_once(line)
    assert made.lines == ["a", "b"]


def test_it_presents_the_server_that_was_asked_for(trust: NodeTrust) -> None:
    made = Made(trust)
    presented = made.credentials_for(("puppet.example", 8140))
    assert pki.certname_of(presented.chain[0]) == "puppet.example"
    assert pki.alt_names(presented.chain[0]) == ["puppet.example"]


# -- what is added ----------------------------------------------------------------------------------------


@each_row(
    ("method", "target", "kind"),
    [
        ("GET", "/puppet-ca/v1/certificate/ca", "ca"),
        ("GET", "/puppet-ca/v1/certificate/ca?environment=x", "ca"),
        ("GET", "/production/certificate/ca?", "ca"),
        ("GET", "/puppet-ca/v1/certificate_revocation_list/ca", "crl"),
        ("GET", "/production/certificate_revocation_list/ca", "crl"),
        ("GET", "/puppet-ca/v1/certificate/web1.example", None),
        ("PUT", "/puppet-ca/v1/certificate_request/ca", None),
        ("GET", "/puppet/v3/catalog/ca", None),
        ("GET", "/puppet/v3/file_content/modules/certificate/ca", None),
        ("POST", "/puppet-ca/v1/certificate/ca", None),
        ("GET", "/", None),
        ("GET", "\xff\xfe", None),
    ],
)
def test_a_bundle_and_crls_get_our_own(method: str, target: str, kind: str | None, trust: NodeTrust) -> None:
    made = Made(trust, ca_digest="ab")
    found = made.addition(method.encode("latin-1"), target.encode("latin-1"))
    expected = {"ca": Addition(made._authority.certificate, "ab"), "crl": Addition(made._authority.crl), None: None}
    assert found == expected[kind]


def test_an_addition_stands_on_lines_of_its_own() -> None:
    assert Addition(b"ours\n").added_to(b"theirs\n") == b"theirs\nours\n"
    assert Addition(b"ours\n").added_to(b"theirs") == b"theirs\nours\n"


def test_a_bundle_of_another_digest_stays_as_it_is() -> None:
    """The agent must refuse it, as in a direct run."""
    digest = hashlib.sha256(b"theirs\n").hexdigest()
    assert Addition(b"ours\n", digest).added_to(b"theirs\n") == b"theirs\nours\n"
    assert Addition(b"ours\n", digest).added_to(b"forged\n") == b"forged\n"


LIFETIME = timedelta(days=2)


@pytest.fixture(scope="module")
def authority() -> RunAuthority:
    return RunAuthority(LIFETIME)


@pytest.fixture(scope="module")
def others() -> bytes:
    """A site's bundle, as Puppet writes it."""
    return b"".join(pki.pem(pki.make_ca(f"Puppet CA: {name}").certificate) for name in "ab")


def accepted(authority: RunAuthority, asked: str, presented: str, folder: Path) -> bool:
    """Whether an agent that trusts the CA and its CRL accepts what is presented to it."""
    (folder / "ca.pem").write_bytes(authority.certificate)
    (folder / "crl.pem").write_bytes(authority.crl)
    used = authority.credentials_for(presented)
    pki.write_private(folder / "own.pem", pki.pem(*used.chain) + pki.key_pem(used.key))
    client, server = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    client.load_verify_locations(folder / "ca.pem")
    client.load_verify_locations(folder / "crl.pem")
    client.verify_flags |= ssl.VERIFY_CRL_CHECK_CHAIN
    server.load_cert_chain(folder / "own.pem")
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    near = client.wrap_bio(to_client, to_server, server_hostname=asked)
    far = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(3):
        for end in (near, far):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLCertVerificationError:
                return False
    return near.version() is not None


@pytest.mark.parametrize("name", ["puppet.example", "127.0.0.1", "::1"])
def test_an_agent_that_trusts_it_accepts_its_servers(name: str, authority: RunAuthority, tmp_path: Path) -> None:
    assert accepted(authority, name, name, tmp_path)
    assert not accepted(authority, name, "another.example", tmp_path)


def test_it_is_known_and_ends_soon(authority: RunAuthority) -> None:
    used = authority.credentials_for("puppet.example")
    assert Leg("a", "agent", own_chain=used.ders).for_one_run
    assert not Leg("a", "master", own_chain=used.ders).for_one_run
    (ca,) = x509.load_pem_x509_certificates(authority.certificate)
    end = datetime.now(UTC) + LIFETIME + timedelta(hours=1)
    assert max(each.not_valid_after_utc for each in (ca, *used.chain)) < end
    next_crl = x509.load_pem_x509_crl(authority.crl).next_update_utc
    assert next_crl
    assert next_crl < end


def test_no_two_have_the_same_name(authority: RunAuthority) -> None:
    names = [x509.load_pem_x509_certificate(each.certificate).subject.rfc4514_string()
             for each in (authority, RunAuthority(LIFETIME))]  # fmt: skip
    assert names[0] != names[1]
    assert all(RUN_CA.replace(",", r"\,") in name for name in names)


def test_a_server_has_one_certificate(authority: RunAuthority, monkeypatch: pytest.MonkeyPatch) -> None:
    assert authority.credentials_for("a") is authority.credentials_for("a")
    monkeypatch.setattr(module, "CERTIFICATES", 3)
    for number in range(10):
        assert pki.certname_of(authority.credentials_for(f"n{number}").chain[0]) == f"n{number}"
    assert len(authority._signed) <= 3


# -- how it leaves a file again ---------------------------------------------------------------------------


@pytest.mark.parametrize("before", [b"", b"# a comment - with dashes -- \n"])
def test_nothing_else_leaves_a_file(before: bytes, authority: RunAuthority, others: bytes) -> None:
    own = before + others
    assert authority.removed(own + authority.certificate) == own
    assert authority.removed(authority.certificate + own) == own
    assert authority.removed(own + authority.crl + authority.certificate + others) == own + others
    assert authority.removed(own) == own


def test_it_leaves_also_without_a_final_newline(authority: RunAuthority, others: bytes) -> None:
    assert authority.removed(others + authority.certificate.rstrip()) == others
    assert authority.removed(authority.crl.rstrip()) == b""
    cut = others.rstrip()
    assert authority.removed(cut + b"\n" + authority.certificate) == cut + b"\n"
    assert authority.removed(cut) == cut


def test_it_leaves_with_other_line_breaks(authority: RunAuthority, others: bytes) -> None:
    windows = (others + authority.certificate + others).replace(b"\n", b"\r\n")
    assert authority.removed(windows) == (others + others).replace(b"\n", b"\r\n")
    first, *lines, last = authority.certificate.splitlines()
    long = b"\n".join((first, b"".join(lines), last, b""))
    assert authority.removed(others + long) == others


def test_what_another_run_added_stays(authority: RunAuthority, others: bytes) -> None:
    another = RunAuthority(LIFETIME)
    assert authority.removed(others + another.certificate) == others + another.certificate


@pytest.mark.parametrize("content", [b"", b"\0" * 100, b"-----BEGIN CERTIFICATE-----\n", b"-----BEGIN X" * 1000])
def test_what_is_no_pem_stays(content: bytes, authority: RunAuthority) -> None:
    assert authority.removed(content) == content

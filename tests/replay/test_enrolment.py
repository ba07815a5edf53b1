"""The CA of a replay: which one key it signs, and in what order it answers."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from inspector.host import pki
from inspector.model import Request, Response
from inspector.protocol.kinds import Kind
from inspector.replay.enrolment import ATTRIBUTES, Enrolment, Peer, Prepared, Refused
from inspector.replay.recording import Signing

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

NAME = "a.example"
OLD, NEW = pki.new_key(), pki.new_key()
PENDING = f"{NAME} already has a requested certificate; ignoring certificate request".encode()


PASSWORD = "a password"
CHALLENGE = "1.2.840.113549.1.9.7"


def made(signings: Sequence[Signing] = (), *, revoked: bool = False) -> Enrolment:
    return Enrolment(Prepared(NAME, OLD.public_key(), PASSWORD), signings, revoked=revoked)


@functools.cache
def agents(_: Enrolment) -> Peer:
    """The agent's connection."""
    return Peer()


def answered(
    enrolment: Enrolment, kind: Kind, body: bytes = b"", name: str = NAME, peer: Peer | None = None
) -> Response:
    request = Request(body=body, target=f"/puppet-ca/v1/{'certificate_request' if body else 'certificate'}/{name}")
    answer = enrolment.answer(kind, request, name, peer or agents(enrolment))
    assert answer is not None
    return answer


def submit(
    enrolment: Enrolment, key: pki.PrivateKey = OLD, name: str = NAME, password: str = "", alt_names: Sequence[str] = ()
) -> tuple[int, bytes]:
    csr = pki.make_csr(name, key, alt_names, {CHALLENGE: password} if password else None)
    answer = answered(enrolment, Kind.CSR, pki.pem(csr), name)
    return answer.status, answer.body


def fetch(enrolment: Enrolment) -> tuple[int, bytes]:
    answer = answered(enrolment, Kind.CERTIFICATE)
    return answer.status, answer.body


def is_for(body: bytes, key: pki.PrivateKey) -> bool:
    return x509.load_pem_x509_certificate(body).public_key() == key.public_key()


def test_without_a_recorded_bootstrap_a_request_is_signed_at_once() -> None:
    enrolment = made()
    assert fetch(enrolment) == (404, b"Could not find certificate a.example")
    assert submit(enrolment) == (200, b"")
    for _ in range(2):
        status, body = fetch(enrolment)
        assert (status, is_for(body, OLD)) == (200, True)
    assert submit(enrolment)[0] == 400


def test_recorded_states_come_in_their_order() -> None:
    recorded = [
        Signing(Kind.CSR, 200, b""), Signing(Kind.CERTIFICATE, 404, b"not yet"),
        Signing(Kind.CSR, 400, PENDING), Signing(Kind.CERTIFICATE, 200, b""),
    ]  # fmt: skip
    enrolment = made(recorded)
    assert submit(enrolment) == (200, b"")
    assert fetch(enrolment) == (404, b"not yet")
    assert submit(enrolment) == (400, PENDING)
    status, body = fetch(enrolment)
    assert (status, is_for(body, OLD)) == (200, True)
    assert fetch(enrolment)[0] == 200


def test_a_new_key_begins_anew() -> None:
    enrolment = made([Signing(Kind.CERTIFICATE, 404, b"not yet"), Signing(Kind.CERTIFICATE, 200, b"")])
    for key in (OLD, NEW):
        submit(enrolment, key, password=PASSWORD)
        assert fetch(enrolment) == (404, b"not yet")
        assert is_for(fetch(enrolment)[1], key)
    serials = {entry.serial_number for entry in x509.load_pem_x509_crl(enrolment.ca.signing_crl)}
    assert len(serials) == 1  # of the first key: nobody else can use its certificate


def test_a_request_that_was_never_signed_is_not_signed() -> None:
    enrolment = made([Signing(Kind.CSR, 200, b""), Signing(Kind.CERTIFICATE, 404, b"no")])
    submit(enrolment)
    assert [fetch(enrolment) for _ in range(3)] == [(404, b"no")] * 3


def test_the_certificate_of_another_key_stays_one() -> None:
    enrolment = made([Signing(Kind.CSR, 400, PENDING), Signing(Kind.CERTIFICATE, 200, b"", foreign=True)])
    assert submit(enrolment) == (400, PENDING)
    status, body = fetch(enrolment)
    assert (status, is_for(body, OLD)) == (200, False)


def test_a_revoked_certificate_is_revoked_as_soon_as_it_is_issued() -> None:
    enrolment = made(revoked=True)
    submit(enrolment)
    certificate = x509.load_pem_x509_certificate(fetch(enrolment)[1])
    crl = x509.load_pem_x509_crl(enrolment.ca.signing_crl)
    assert crl.get_revoked_certificate_by_serial_number(certificate.serial_number) is not None


def test_only_the_prepared_key_or_one_with_the_password_is_signed() -> None:
    enrolment = made()
    for password in ("", "b password", PASSWORD[:-1]):
        with pytest.raises(Refused, match="another key than the prepared one, without the challenge password"):
            submit(enrolment, NEW, password=password)
    assert fetch(enrolment)[0] == 404
    assert submit(enrolment, NEW, password=PASSWORD) == (200, b"")
    assert is_for(fetch(enrolment)[1], NEW)
    assert submit(enrolment) == (200, b"")
    assert is_for(fetch(enrolment)[1], OLD)
    assert enrolment.ca.state(NAME) == "signed"


def test_another_name_is_not_signed_though_the_key_is_right() -> None:
    with pytest.raises(Refused, match="another certname"):
        submit(made(), name="b.example", password=PASSWORD)
    csr = pki.pem(pki.make_csr("b.example", OLD))
    assert answered(made(), Kind.CSR, csr).status == 400  # of another name than its path


def test_a_request_that_its_key_has_not_signed_is_refused() -> None:
    csr = pki.make_csr(NAME, OLD).public_bytes(Encoding.DER)
    forged = x509.load_der_x509_csr(csr[:-1] + bytes([csr[-1] ^ 1]))
    with pytest.raises(Refused, match="its key has not signed"):
        answered(made(), Kind.CSR, pki.pem(forged))


@pytest.mark.parametrize("body", [b"garbage", b"-----BEGIN CERTIFICATE REQUEST-----\nMAA=\n"])
def test_a_request_that_cannot_be_read_is_refused(body: bytes) -> None:
    with pytest.raises(Refused, match="cannot be read"):
        answered(made(), Kind.CSR, body)


def test_nobody_takes_the_agents_turn_before_it_has_asked() -> None:
    enrolment = made([Signing(Kind.CSR, 400, PENDING), Signing(Kind.CERTIFICATE, 404, b"not yet"),
                      Signing(Kind.CERTIFICATE, 200, b"")])  # fmt: skip
    with pytest.raises(Refused):
        submit(enrolment, NEW)
    assert fetch(enrolment) == (404, b"Could not find certificate a.example")
    assert submit(enrolment) == (400, PENDING)
    assert fetch(enrolment) == (404, b"not yet")


def test_a_request_with_the_password_is_not_shown() -> None:
    enrolment = made()
    submit(enrolment, NEW, password=PASSWORD)
    assert answered(enrolment, Kind.CSR_LOOKUP).status == 404


def test_a_request_for_more_than_a_ca_grants_stays_one() -> None:
    enrolment = made()
    assert submit(enrolment, alt_names=["localhost"]) == (200, b"")
    assert fetch(enrolment)[0] == 404


def test_what_is_prepared_is_in_the_agents_directory(tmp_path: Path) -> None:
    prepared = Prepared.create(tmp_path, NAME)
    key = pki.read_key(tmp_path / "agent" / "ssl" / "private_keys" / f"{NAME}.pem")
    assert key.public_key() == prepared.key
    written = (tmp_path / ATTRIBUTES).read_text()
    assert written == f"custom_attributes:\n  {CHALLENGE}: {prepared.password}\n"
    assert Prepared.create(tmp_path / "b", NAME).password != prepared.password


@pytest.mark.parametrize(
    ("kind", "start"), [(Kind.CA_BUNDLE, b"-----BEGIN CERTIFICATE"), (Kind.CRL, b"-----BEGIN X509 CRL")]
)
def test_public_documents(kind: Kind, start: bytes) -> None:
    assert answered(made(), kind).body.startswith(start)


def test_old_agents_look_for_their_request() -> None:
    enrolment = made()
    assert answered(enrolment, Kind.CSR_LOOKUP).status == 404
    submit(enrolment)
    assert answered(enrolment, Kind.CSR_LOOKUP).status == 200


def test_renewal_is_not_offered() -> None:
    assert made().answer(Kind.RENEWAL, Request(), "", Peer()) is None


# -- whoever else asks -----------------------------------------------------------------------------------------

WAITING = [
    Signing(Kind.CSR, 200, b""), Signing(Kind.CERTIFICATE, 404, b"not yet"),
    Signing(Kind.CSR, 400, PENDING), Signing(Kind.CERTIFICATE, 404, b"still not"),
    Signing(Kind.CSR, 400, PENDING), Signing(Kind.CERTIFICATE, 200, b""),
]  # fmt: skip
LATER = [Signing(Kind.CERTIFICATE, 200, b"", foreign=True)]
NEVER = [Signing(Kind.CERTIFICATE, 404, b"no")]


def attack(enrolment: Enrolment) -> None:
    """Ask for all that needs no certificate, twice, and send again what is shown."""
    for kind in 2 * [Kind.CA_BUNDLE, Kind.CRL, Kind.CERTIFICATE, Kind.CSR_LOOKUP]:
        shown = answered(enrolment, kind, peer=Peer())
        for body in (shown.body, pki.pem(pki.make_csr(NAME, NEW))):
            with pytest.raises(Refused):
                answered(enrolment, Kind.CSR, body, peer=Peer())


def played(recorded: Sequence[Signing], *, revoked: bool, attacked: bool) -> list[tuple[Kind, int, object]]:
    """What two agents are answered, one with another key after the other."""
    enrolment, answers = made(recorded, revoked=revoked), []
    for key, password in ((OLD, ""), (NEW, PASSWORD)):
        for peer in (Peer(), Peer(), Peer()):
            csr = pki.pem(pki.make_csr(NAME, key, attributes={CHALLENGE: password} if password else None))
            for kind, body in ((Kind.CRL, b""), (Kind.CSR, csr), (Kind.CERTIFICATE, b""), (Kind.CSR_LOOKUP, b"")):
                if attacked:
                    attack(enrolment)
                answer = answered(enrolment, kind, body, peer=peer)
                answers.append((kind, answer.status, shape(answer.body, key)))
    return answers


@pytest.mark.parametrize("recorded", [[], WAITING, LATER, NEVER], ids=["none", "waiting", "foreign", "never"])
@pytest.mark.parametrize("revoked", [True, False])
def test_whatever_others_ask_the_agent_is_answered_the_same(recorded: Sequence[Signing], revoked: bool) -> None:
    undisturbed = played(recorded, revoked=revoked, attacked=False)
    assert played(recorded, revoked=revoked, attacked=True) == undisturbed


def shape(body: bytes, key: pki.PrivateKey) -> object:
    """What is the same in two replays."""
    if body.startswith(b"-----BEGIN CERTIFICATE-"):
        return is_for(body, key)
    if body.startswith(b"-----BEGIN X509"):
        return len(x509.load_pem_x509_crl(body))
    return "its request" if b"REQUEST" in body else body


def test_an_agent_that_asks_over_other_connections_has_its_certificate_at_once() -> None:
    """Agents up to 5. They cannot be told from others, so there is nothing for which they would have to wait."""
    enrolment = made(WAITING)
    assert answered(enrolment, Kind.CERTIFICATE, peer=Peer()).status == 404
    submit(enrolment)
    certificate = answered(enrolment, Kind.CERTIFICATE, peer=Peer())
    assert (certificate.status, is_for(certificate.body, OLD)) == (200, True)
    assert fetch(enrolment) == (404, b"not yet")

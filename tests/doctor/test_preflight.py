"""The preflight: how agents would judge a certificate, in the agents' words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from inspector.cli.main import main
from inspector.doctor.preflight import checks
from inspector.host import pki
from inspector.lab.ca import LabCA

if TYPE_CHECKING:
    from pathlib import Path

NAME = "proxy.example"


class Preflight:
    """A certificate in a file, and the agents' CA bundle and CRL; a test breaks one thing."""

    def __init__(self, ca: LabCA, directory: Path) -> None:
        self.ca, self.key = ca, pki.new_key()
        self.pem, self.bundle, self.crl = (directory / name for name in ("cert.pem", "bundle.pem", "crl.pem"))
        self.bundle.write_bytes(ca.ca_bundle)
        self.crl.write_bytes(ca.crl_bundle)
        self.present(pki.sign(ca.authority, self.key.public_key(), NAME, serial=77))

    def present(self, leaf: x509.Certificate) -> None:
        pki.write_private(self.pem, pki.key_pem(self.key) + pki.pem(leaf))

    def failed(self, name: str = NAME) -> dict[str, str]:
        found = checks(name, self.pem, self.pem, self.bundle, self.crl)
        assert [check.name for check in found] == ["chain", "validity", "name", "usage", "revocation", "CRL"]
        return {check.name: check.message for check in found if not check.ok}


@pytest.fixture
def flight(tmp_path: Path) -> Preflight:
    return Preflight(LabCA("ca.example"), tmp_path)


def test_a_good_certificate(flight: Preflight) -> None:
    assert flight.failed() == {}


def test_a_certificate_of_another_ca(flight: Preflight) -> None:
    flight.bundle.write_bytes(LabCA("other.example").ca_bundle)
    failed = flight.failed()
    assert list(failed) == ["chain", "revocation", "CRL"]
    assert NAME in failed["chain"]
    assert "not known" in failed["CRL"]


def test_an_expired_certificate(flight: Preflight) -> None:
    past = datetime.now(UTC) - timedelta(days=9)
    flight.present(pki.sign(flight.ca.authority, flight.key.public_key(), NAME, not_before=past, lifetime=timedelta(1)))
    assert flight.failed() == {"validity": f"The certificate 'CN={NAME}' has expired, verify time is synchronized"}


def test_a_certificate_that_is_not_valid_yet(flight: Preflight) -> None:
    soon = datetime.now(UTC) + timedelta(days=1)
    flight.present(pki.sign(flight.ca.authority, flight.key.public_key(), NAME, not_before=soon))
    assert list(flight.failed()) == ["validity"]


def test_another_name(flight: Preflight) -> None:
    assert flight.failed("other.example")["name"].startswith("Server hostname 'other.example' did not match")


def test_a_certificate_for_clients_only(flight: Preflight) -> None:
    usage = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])
    authority, now = flight.ca.authority, datetime.now(UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, NAME)]))
        .issuer_name(authority.certificate.subject)
        .public_key(flight.key.public_key())
        .serial_number(78)
        .not_valid_before(now - timedelta(1))
        .not_valid_after(now + timedelta(1))
        .add_extension(usage, critical=True)
    )
    flight.present(builder.sign(authority.key, hashes.SHA256()))
    assert list(flight.failed()) == ["usage"]


def test_a_revoked_certificate(flight: Preflight) -> None:
    root_crl = flight.ca.crl_bundle.removeprefix(flight.ca.signing_crl)
    flight.crl.write_bytes(pki.pem(pki.make_crl(flight.ca.authority, [77])) + root_crl)
    assert flight.failed() == {"revocation": f"Certificate 'CN={NAME}' is revoked"}
    # Also with an expired CRL, which OpenSSL does not read.
    past = datetime.now(UTC) - timedelta(days=9)
    old = pki.make_crl(flight.ca.authority, [77], last_update=past, next_update=past + timedelta(1))
    flight.crl.write_bytes(pki.pem(old) + root_crl)
    assert list(flight.failed()) == ["revocation", "CRL"]


def test_a_crl_that_does_not_cover_the_chain(flight: Preflight) -> None:
    flight.crl.write_bytes(flight.ca.signing_crl)
    failed = flight.failed()
    assert list(failed) == ["CRL"]
    assert failed["CRL"].startswith("The CRL issued by 'CN=Puppet Root CA")
    assert failed["CRL"].endswith("is missing")


def test_an_expired_crl(flight: Preflight) -> None:
    now = datetime.now(UTC)
    flight.ca.publish_crl(now - timedelta(9), now - timedelta(1))
    flight.crl.write_bytes(flight.ca.crl_bundle)
    assert flight.failed() == {
        "CRL": "The CRL issued by 'CN=Puppet CA: ca.example' has expired, verify time is synchronized"
    }


def test_no_crl(flight: Preflight) -> None:
    flight.crl.unlink()
    failed = flight.failed()
    assert list(failed) == ["revocation", "CRL"]
    assert "There is no CRL" in failed["CRL"]


# -- the command --------------------------------------------------------------------------------------


def test_preflight_only(flight: Preflight, capsys: pytest.CaptureFixture[str]) -> None:
    files = ["--cert", str(flight.pem), "--ca", str(flight.bundle), "--crl", str(flight.crl)]
    assert main(["provision", *files]) == 0
    assert "  OK    chain" in capsys.readouterr().out
    assert main(["provision", "other.example", *files]) == 1
    assert "  FAIL  name" in capsys.readouterr().out


def test_mistakes_with_a_certificate(flight: Preflight, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = tmp_path / "other.pem"
    other.write_bytes(
        pki.key_pem(pki.new_key()) + flight.pem.read_bytes().partition(b"-----END EC PRIVATE KEY-----\n")[2]
    )
    for arguments, text in (
        (["--cert", str(tmp_path / "absent")], "absent: No such file"),
        (["--cert", str(other)], "is not the key of the certificate"),
        (["--cert", str(flight.pem), "--ca", str(tmp_path / "absent")], "the CA bundle"),
    ):
        assert main(["provision", *arguments]) == 2
        error = capsys.readouterr().err
        assert text in error
        assert "Traceback" not in error

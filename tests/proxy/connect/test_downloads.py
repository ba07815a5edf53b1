"""What a CA gives to anybody, and what it shows of a certificate that its master refuses."""

from __future__ import annotations

import socket
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from inspector.host import pki
from inspector.lab.ca import LabCA
from inspector.model import Response
from inspector.proxy.connect import downloads
from inspector.proxy.connect.downloads import BUNDLE, CRLS

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.lab.master import LabMaster

NAME = "localhost"


def chain_of(place: pki.SslDirPaths) -> tuple[bytes, ...]:
    found = x509.load_pem_x509_certificates(place.certificate.read_bytes())
    return tuple(each.public_bytes(Encoding.DER) for each in found)


def test_anybody_gets_the_bundle_and_the_crls(master: LabMaster, ca: LabCA) -> None:
    """From a server that is not verified: its name is another one."""
    server = (NAME, master.address[1])
    assert downloads.download(server, None, BUNDLE) == ca.ca_bundle
    assert downloads.download(server, None, CRLS) == ca.crl_bundle
    assert [received.certname for received in master.received] == [None, None]


def test_what_there_is_not_is_empty(master: LabMaster) -> None:
    assert downloads.download((NAME, master.address[1]), None, "/puppet-ca/v1/certificate/nobody") == b""
    with socket.create_server((NAME, 0)) as closed:
        address = closed.getsockname()
    assert downloads.download(address, None, BUNDLE) == b""


def test_a_good_certificate_shows_nothing(master: LabMaster, place: pki.SslDirPaths) -> None:
    assert downloads.refusals((NAME, master.address[1]), None, chain_of(place)) == ()


def test_a_revoked_one_shows_why_it_is_refused(master: LabMaster, ca: LabCA, place: pki.SslDirPaths) -> None:
    ca.revoke("web1.example")
    (reason,) = downloads.refusals((NAME, master.address[1]), None, chain_of(place))
    assert "revoked" in reason
    assert "CN=web1.example" in reason


def test_so_does_an_expired_one(master: LabMaster, ca: LabCA) -> None:
    key = pki.new_key()
    old = pki.sign(
        ca.authority, key.public_key(), "web1.example", not_before=datetime(2020, 1, 1, tzinfo=UTC),
        lifetime=timedelta(1),
    )  # fmt: skip
    reasons = downloads.refusals((NAME, master.address[1]), None, (old.public_bytes(Encoding.DER),))
    assert any("expired" in reason for reason in reasons)


def test_one_of_another_ca_is_unknown(master: LabMaster, tmp_path: Path) -> None:
    stranger = LabCA("other.example").enrol(tmp_path / "other", "web1.example")
    assert downloads.refusals((NAME, master.address[1]), None, chain_of(stranger))


@pytest.mark.parametrize("body", [b"", b"garbage", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
def test_a_bundle_that_is_none_shows_nothing(body: bytes, master: LabMaster, place: pki.SslDirPaths) -> None:
    master.instead["GET", BUNDLE] = Response(status=200, body=body)
    assert downloads.refusals((NAME, master.address[1]), None, chain_of(place)) == ()


def test_a_chain_that_is_none_shows_nothing(master: LabMaster) -> None:
    assert downloads.refusals((NAME, master.address[1]), None, (b"garbage",)) == ()

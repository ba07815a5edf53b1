"""What faults do, and what they are made of."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest
from cryptography import x509

from inspector.errors import InspectorError
from inspector.host import pki
from inspector.lab.ca import LabCA
from inspector.model import Response
from inspector.protocol import documents as d
from inspector.protocol import endpoints
from inspector.protocol.kinds import Kind
from inspector.proxy.faults import actions
from tests.support.rows import each_row

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def ca(tmp_path: Path) -> LabCA:
    authority = LabCA("puppet.lab.example")
    authority.write_cadir(tmp_path)
    return authority


def _lists(action: actions.Action) -> list[x509.CertificateRevocationList]:
    assert action.answer
    answer = action.answer(None)
    assert (answer.status, answer.content_type) == (200, "text/plain")
    end = b"-----END X509 CRL-----"
    return [x509.load_pem_x509_crl(block + end) for block in answer.body.split(end)[:-1]]


def test_an_expired_crl_is_made(ca: LabCA, tmp_path: Path) -> None:
    action = actions.make("crl", f"mint:{tmp_path}")
    assert (action.note, action.kind) == ("answered with an expired CRL", Kind.CRL)
    expired, root = _lists(action)
    now = datetime.now(UTC)
    assert expired.issuer == ca.authority.certificate.subject
    assert expired.next_update_utc is not None
    assert expired.next_update_utc < now
    assert root.next_update_utc is not None
    assert root.next_update_utc > now
    public = ca.authority.certificate.public_key()
    assert expired.is_signature_valid(public)  # type: ignore[arg-type]


def test_a_crl_from_a_file(ca: LabCA, tmp_path: Path) -> None:
    file = tmp_path / "given.pem"
    file.write_bytes(ca.signing_crl)
    action = actions.make("crl", str(file))
    assert action.note == "answered with another CRL"
    assert action.answer
    assert action.answer(None).body == ca.signing_crl


@pytest.mark.parametrize("content", [b"", b"nothing", b"-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n"])
def test_a_file_without_a_crl(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "given.pem"
    file.write_bytes(content)
    with pytest.raises(InspectorError, match="it contains no CRL in PEM format"):
        actions.make("crl", str(file))


def test_another_certificate_is_made(ca: LabCA, tmp_path: Path) -> None:
    action = actions.make("certificate", f"mint:{tmp_path}")
    assert action.credentials
    assert action.in_handshake
    leaf = action.credentials.chain[0]
    assert pki.certname_of(leaf) == actions.OTHER_NAME
    leaf.verify_directly_issued_by(ca.authority.certificate)
    assert action.note == f"presented another certificate ({actions.OTHER_NAME})"


def test_a_certificate_from_a_file(ca: LabCA, tmp_path: Path) -> None:
    place = ca.enrol(tmp_path / "ssl", "other.example")
    file = tmp_path / "given.pem"
    pki.write_private(file, place.key.read_bytes() + place.certificate.read_bytes())
    action = actions.make("certificate", str(file))
    assert action.credentials
    assert action.note == "presented another certificate (other.example)"
    file.chmod(0o644)
    with pytest.raises(InspectorError, match="Other users can read"):
        actions.make("certificate", str(file))


def test_an_empty_catalog_is_for_catalogs() -> None:
    action = actions.make("empty-catalog", None)
    assert action.kind is Kind.CATALOG
    assert action.answer
    match = endpoints.match("POST", "/puppet/v3/catalog/web1.example?environment=test")
    assert b'"environment": "test"' in action.answer(match).body


@each_row(
    ("text", "seconds"), [("5", 5), ("0.5s", 0.5), ("2m", 120), ("1h", 3600), ("", None), ("-1s", None), ("1d", None)]
)
def test_durations(text: str, seconds: float | None) -> None:
    if seconds is None:
        with pytest.raises(ValueError, match=f"^{text}$"):
            actions.duration(text)
    else:
        assert actions.duration(text) == seconds


def test_an_error_is_one_for_an_agent() -> None:
    answer = actions.failure(503, ("Retry-After", "7"))
    assert answer.assembled("GET").startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
    assert b"\r\nRetry-After: 7\r\n" in answer.assembled("GET")
    assert json.loads(answer.body)["issue_kind"] == "RUNTIME_ERROR"
    assert answer.assembled("HEAD").endswith(b"\r\n\r\n")


@pytest.mark.parametrize(
    ("method", "target"),
    [("POST", "/puppet/v3/catalog/web1.example?environment=test"), ("POST", "/test/catalog/web1.example")],
)
def test_an_empty_catalog_is_read_as_one(method: str, target: str) -> None:
    found = endpoints.match(method, target)
    assert found
    answer = actions.empty_catalog(found)
    headers = (("Content-Type", answer.content_type),)
    document = found.endpoint.response(Response(headers=headers, body=answer.body, status=200))
    assert isinstance(document, d.Catalog)
    assert (document.name, document.environment, document.resources) == ("web1.example", "test", [])

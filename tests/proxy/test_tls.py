"""What is learnt of a connection from OpenSSL's own words."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from OpenSSL import SSL

from inspector.errors import IdentityError
from inspector.host import pki
from inspector.proxy import tls

if TYPE_CHECKING:
    from pathlib import Path

WARNING, FATAL = 1 << 8, 2 << 8
UNRECOGNIZED_NAME, CERTIFICATE_REVOKED, NO_RENEGOTIATION, CLOSE_NOTIFY = 112, 44, 100, 0


def state_after(where: int, code: int) -> tls.TlsState:
    watch = tls.TlsState()
    tls._listener(watch)(SSL.Connection(SSL.Context(SSL.TLS_METHOD)), where, code)
    return watch


def test_a_fatal_alert_is_the_end_and_has_a_name() -> None:
    watch = state_after(SSL.SSL_CB_READ_ALERT, FATAL | CERTIFICATE_REVOKED)
    assert (watch.alert, watch.alert_by) == ("certificate_revoked", "peer")
    assert state_after(SSL.SSL_CB_WRITE_ALERT, FATAL | CERTIFICATE_REVOKED).alert_by == "proxy"


def test_a_warning_ends_nothing() -> None:
    """Apache's before old masters warns of a name that it does not know, and goes on."""
    for where in (SSL.SSL_CB_READ_ALERT, SSL.SSL_CB_WRITE_ALERT):
        for code in (UNRECOGNIZED_NAME, NO_RENEGOTIATION):
            watch = state_after(where, WARNING | code)
            assert (watch.alert, watch.alert_by, watch.closed_by_peer) == (None, None, False)


def test_a_farewell_is_the_peers_or_ours() -> None:
    assert state_after(SSL.SSL_CB_READ_ALERT, WARNING | CLOSE_NOTIFY).closed_by_peer
    assert not state_after(SSL.SSL_CB_WRITE_ALERT, WARNING | CLOSE_NOTIFY).closed_by_peer


@pytest.mark.parametrize("name", ["ca.pem", "crl.pem"])
def test_a_file_whose_fields_are_damaged_is_refused_before_they_are_used(name: str, tmp_path: Path) -> None:
    ca = pki.make_ca("CA")
    for file, thing in (("ca.pem", ca.certificate), ("crl.pem", pki.make_crl(ca))):
        der = thing.public_bytes(Encoding.DER)
        if file == name:
            der = der.replace(b"\x17\x0d", b"\x17\x0c", 1).replace(b"\x0c\x02CA", b"\x0c\x02\xff\xff")
        label = "CERTIFICATE" if file == "ca.pem" else "X509 CRL"
        body = base64.encodebytes(der).decode()
        (tmp_path / file).write_text(f"-----BEGIN {label}-----\n{body}-----END {label}-----\n")
    if name == "ca.pem":
        with pytest.raises(IdentityError, match="Cannot read the CA bundle"):
            tls.SiteTrust(tmp_path / "ca.pem", tmp_path / "crl.pem")
    else:
        (problem,) = tls.SiteTrust(tmp_path / "ca.pem", tmp_path / "crl.pem").problems(0.0)
        assert "Cannot read the CRL" in problem

"""What is learnt of a connection from OpenSSL's own words."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from OpenSSL import SSL

from inspector.errors import IdentityError, InspectorError
from inspector.host import pki
from inspector.proxy import tls

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


VERSION, NAME = b"\x02\x01\x01", b"\x0c\x02CA"


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("ca.pem", NAME, b"\x0c\x02\xff\xff"),
        ("ca.pem", NAME, b"\x06\x02CA"),
        ("ca.pem", NAME + b"0\x1e", b"\x80\x02CA0\x1e"),  # only OpenSSL does not read it
        ("ca.pem", b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x30"),
        ("crl.pem", NAME, b"\x0c\x02\xff\xff"),
        ("crl.pem", NAME, b"\x06\x02CA"),
        ("crl.pem", NAME, b"\x03\x02CA"),
        ("crl.pem", VERSION, b"\x02\x01\x30"),
        ("crl.pem", b"\x17\x0d", b"\x17\x0c"),
        pytest.param(
            "crl.pem",
            b"U\x1d\x14\x04\x03\x02",
            b"U\x1d\x14\x04\x03\x1c",
            marks=pytest.mark.skipif(SSL.OPENSSL_VERSION_NUMBER < 0x40000000, reason="OpenSSL 3 reads it"),
        ),  # only OpenSSL does not read it
    ],
)
def test_a_file_whose_fields_are_damaged_is_refused_before_they_are_used(
    name: str, old: bytes, new: bytes, tmp_path: Path
) -> None:
    ca = pki.make_ca("CA")
    for file, thing in (("ca.pem", ca.certificate), ("crl.pem", pki.make_crl(ca))):
        der = thing.public_bytes(Encoding.DER)
        if file == name:
            assert old in der
            der = der.replace(old, new)
        label = "CERTIFICATE" if file == "ca.pem" else "X509 CRL"
        body = base64.encodebytes(der).decode()
        (tmp_path / file).write_text(f"-----BEGIN {label}-----\n{body}-----END {label}-----\n")
    if name == "ca.pem":
        with pytest.raises(IdentityError, match="Cannot read the CA bundle"):
            tls.SiteTrust(tmp_path / "ca.pem", tmp_path / "crl.pem")
    else:
        (problem,) = tls.SiteTrust(tmp_path / "ca.pem", tmp_path / "crl.pem").problems(0.0)
        assert "Cannot read the CRL" in problem


# -- CRLs that are lost -----------------------------------------------------------------------------------


@pytest.fixture
def trust(tmp_path: Path) -> tls.SiteTrust:
    """Two CAs with their CRLs, as Puppet's root and intermediate."""
    authorities = [pki.make_ca("Root"), pki.make_ca("Intermediate")]
    (tmp_path / "ca.pem").write_bytes(pki.pem(*(ca.certificate for ca in authorities)))
    (tmp_path / "crl.pem").write_bytes(pki.pem(*map(pki.make_crl, authorities)))
    return tls.SiteTrust(tmp_path / "ca.pem", tmp_path / "crl.pem")


def lose(path: Path, how: str) -> None:
    data = path.read_bytes()
    match how:
        case "deleted":
            path.unlink()
        case "emptied":
            path.write_bytes(b"")
        case "cut within a CRL":
            path.write_bytes(data[: len(data) // 4])
        case "cut within the last CRL":
            path.write_bytes(data[: len(data) * 3 // 4])
        case "cut between CRLs":
            path.write_bytes(data[: data.index(b"-----BEGIN", 10)])


LOST = ["deleted", "emptied", "cut within a CRL", "cut within the last CRL", "cut between CRLs"]


@pytest.mark.parametrize("how", LOST)
def test_crls_that_are_lost_are_used_for_a_day(how: str, trust: tls.SiteTrust, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_800_000_000.0
    monkeypatch.setattr("inspector.proxy.tls.time.time", lambda: now)
    before, crls, data = trust.digest, trust.crls, trust.crl.read_bytes()
    lose(trust.crl, how)
    for _ in range(2):
        trust.refresh()
        assert (trust.digest, trust.crls) == (before, crls)
        assert "The last good one is used until 2027-01-16 08:00 UTC." in (trust.error or "")
    now += tls.LAST_GOOD + 1
    trust.refresh()
    assert (trust.digest == before, trust.crls) == (False, ())
    assert "no identity is used" in (trust.error or "")
    trust.refresh()
    assert "no identity is used" in (trust.error or "")
    trust.crl.write_bytes(data)
    trust.refresh()
    assert (trust.digest, trust.crls, trust.error) == (before, crls, None)


def test_the_day_begins_when_the_first_of_them_is_lost(trust: tls.SiteTrust, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_800_000_000.0
    monkeypatch.setattr("inspector.proxy.tls.time.time", lambda: now)
    lose(trust.crl, "emptied")
    trust.refresh()
    now += tls.LAST_GOOD - 10
    lose(trust.crl, "deleted")
    trust.refresh()
    assert trust.crls
    now += 20
    trust.refresh()
    assert not trust.crls


def test_a_clock_that_is_set_back_does_not_make_the_day_longer(
    trust: tls.SiteTrust, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, running = 1_800_000_000.0, 1000.0
    monkeypatch.setattr("inspector.proxy.tls.time.time", lambda: now)
    monkeypatch.setattr("inspector.proxy.tls.time.monotonic", lambda: running)
    lose(trust.crl, "emptied")
    trust.refresh()
    now, running = now - 365 * 86_400, running + tls.LAST_GOOD - 10
    trust.refresh()
    assert trust.crls
    running += 20
    trust.refresh()
    assert not trust.crls


def test_a_crl_of_a_ca_that_is_gone_is_not_missed(trust: tls.SiteTrust) -> None:
    first = trust.ca.read_bytes().partition(b"-----END CERTIFICATE-----\n")
    trust.ca.write_bytes(first[0] + first[1])
    lose(trust.crl, "cut between CRLs")
    trust.refresh()
    assert (len(trust.authorities), len(trust.crls), trust.error) == (1, 1, None)


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in tls.KEY_LOG_VARIABLES:
        monkeypatch.delenv(name, raising=False)


def test_nothing_is_written_unless_asked() -> None:
    assert tls.key_log_path() is None
    assert tls.key_log_writer() is None


def test_lines_are_appended_to_a_private_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "keys"))
    for line in (b"CLIENT_RANDOM 1 2", b"CLIENT_RANDOM 3 4"):
        write = tls.key_log_writer()
        assert write
        write(line)
    assert (tmp_path / "keys").read_bytes() == b"CLIENT_RANDOM 1 2\nCLIENT_RANDOM 3 4\n"
    assert (tmp_path / "keys").stat().st_mode & 0o777 == 0o600


def test_mitmproxys_own_variable_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSLKEYLOGFILE", "/b")
    assert tls.key_log_path() == Path("/b")
    monkeypatch.setenv("MITMPROXY_SSLKEYLOGFILE", "/a")
    assert tls.key_log_path() == Path("/a")


def test_a_file_that_cannot_be_written_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path))
    with pytest.raises(InspectorError, match="which SSLKEYLOGFILE names: Is a directory"):
        tls.key_log_writer()

"""Which certificates and CRLs end, who uses a revoked one, whose keys are shared, who verifies nobody."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.made_tables import (
    DAY,
    ago,
    answer,
    certificate,
    connection,
    crl,
    exchange,
    finding,
    handshake,
    micros,
    tables,
)

if TYPE_CHECKING:
    from pathlib import Path


def test_expiring(tmp_path: Path) -> None:
    root = tables(
        tmp_path,
        certificate("never.example", 10),
        certificate("tried.example", 20),
        certificate("renewed.example", 5, not_before=micros(90 * DAY)),
        certificate("renewed.example", 1800, role="issued", not_before=micros(2)),
        certificate("later.example", 31),
        certificate("two-cas.example", 25, 1, issuer="CN=One"),
        certificate("two-cas.example", 900, 1, issuer="CN=Other", not_before=micros(2)),
        certificate("moved.example", 25, 9, issuer="CN=One"),
        certificate("moved.example", 900, 2, issuer="CN=Other", not_before=micros(2)),
        certificate("CA", -1, role="ca"),
        exchange("tried.example", 3, endpoint="renewal", status=404),
        exchange("tried.example", 2, endpoint="renewal", status=None),
    )
    columns = "role name days_left renewal renewal_status"
    assert answer(root, "expiring", columns) == [
        ("ca", "CA", -1, None, None),
        ("agent", "never.example", 10, None, None),
        ("agent", "tried.example", 20, ago(2), None),
        ("agent", "two-cas.example", 25, None, None),
    ]
    assert answer(root, "expiring", "name days_left", "days=32")[-1] == ("later.example", 31)
    assert answer(root, "expiring", "name", "at=2026-10-01", "days=1") == []


def test_crls(tmp_path: Path) -> None:
    root = tables(
        tmp_path,
        crl("CN=Ends", 3, number="7", revoked=2),
        crl("CN=Ends", 2, made_hours=72, number="6"),
        crl("CN=Renewed", 3, made_hours=72),
        crl("CN=Renewed", 300),
        crl("CN=Same second", 8, number="9"),
        crl("CN=Same second", 8, number="10", revoked=1),
    )
    assert answer(root, "crls", "issuer number days_left revoked") == [
        ("CN=Ends", "7", 3, 2), ("CN=Same second", "10", 8, 1),
    ]  # fmt: skip


def test_revoked(tmp_path: Path) -> None:
    root = tables(
        tmp_path,
        crl("CN=CA", 30, serials=["0x0001", "0x0002", "0x0003"]),
        certificate("revoked.example", 300, serial="0x0001"),
        certificate("before.example", 300, 72, serial="0x0002"),
        certificate("valid.example", 300, serial="0x0004"),
        certificate("other.example", 300, serial="0x0003", issuer="CN=Other"),
        # A new CA with the name of the old one.
        crl("CN=Two", 30, serials=["0x0005"], issuer_key="old"),
        certificate("healthy.example", 300, serial="0x0005", issuer="CN=Two", issuer_key="new"),
        certificate(None, 300, serial="0x0002"),  # without a name, as a made-up one may be
        # What the master's CRL revokes may be in none that an agent asked for.
        finding("refused.example", "T05", 5),
        finding("refused.example", "T05", 2),
        finding("revoked.example", "T05", 1),
        finding("valid.example", "T10", 1),
    )
    assert answer(root, "revoked", "certname serial first last") == [
        ("revoked.example", "0x0001", ago(1), ago(1)),
        (None, "0x0002", ago(1), ago(1)),
        ("refused.example", None, ago(5), ago(2)),
    ]


def test_keys(tmp_path: Path) -> None:
    root = tables(
        tmp_path,
        certificate("two.example", 300, key="k1"),
        certificate("two.example", 300, key="k2"),
        certificate("clone1.example", 300, key="k3"),
        certificate("clone2.example", 300, key="k3", role="issued"),
        certificate("one.example", 300, key="k4"),
        certificate("one.example", 600, key="k4"),
        certificate("ca", 300, key="k4", role="ca"),
    )
    assert answer(root, "keys", "what name number others") == [
        ("several certnames", "k3", 2, ["clone1.example", "clone2.example"]),
        ("several keys", "two.example", 2, ["k1", "k2"]),
    ]


def test_unverified(tmp_path: Path) -> None:
    root = tables(
        tmp_path,
        finding("blind.example", "B03", 3, message="older"),
        finding("blind.example", "B03", 2, message="newer"),
        finding("other.example", "B04"),
        finding("long-ago.example", "B03", 30.2 * DAY),
    )
    assert answer(root, "unverified", "certname rule findings message") == [("blind.example", "B03", 2, "newer")]


def test_anonymous(tmp_path: Path) -> None:
    root = tables(
        tmp_path,
        exchange("open.example", authenticated=False, status=403),
        exchange("new.example", authenticated=False, phase="certificates", endpoint="ca"),
        exchange("good.example"),
    )
    assert answer(root, "anonymous", "certname endpoint status requests") == [("open.example", "catalog", 403, 1)]


def test_refused(tmp_path: Path) -> None:
    root = tables(
        tmp_path,
        handshake("a.example", "revoked", address="192.0.2.1", alert="certificate_revoked"),
        handshake("b.example", "revoked", address="192.0.2.1", alert="certificate_revoked"),
        handshake(None, "closed", 2),
        handshake("c.example", "long ago", 31 * DAY),
    )
    assert answer(root, "refused", "reason alert handshakes nodes addresses example") == [
        ("revoked", "certificate_revoked", 2, 2, 1, "a.example"),
        ("closed", None, 1, 0, 0, None),
    ]


def test_tls(tmp_path: Path) -> None:
    root = tables(
        tmp_path,
        connection("old.example", tls="TLSv1.2"),
        connection("old.example", tls="TLSv1.2"),
        connection(None, address="192.0.2.7"),
        connection("failed.example", tls=None),
    )
    assert answer(root, "tls", "side tls connections peers example") == [
        ("agent", "TLSv1.2", 2, 1, "old.example"),
        ("agent", "TLSv1.3", 1, 1, "192.0.2.7"),
    ]

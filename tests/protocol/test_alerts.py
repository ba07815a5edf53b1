"""TLS alerts have the names of RFC 8446."""

from __future__ import annotations

import pytest

from inspector.protocol.alerts import ALERTS, refusal


def test_each_has_a_name_of_its_own() -> None:
    assert (ALERTS[0], ALERTS[44], ALERTS[48], ALERTS[116]) == (
        "close_notify", "certificate_revoked", "unknown_ca", "certificate_required",
    )  # fmt: skip
    assert len(set(ALERTS.values())) == len(ALERTS)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("sslv3 alert bad certificate", "bad_certificate"),  # OpenSSL 1.1 and 3.0
        ("ssl/tls alert certificate expired", "certificate_expired"),  # from 3.2 on
        ("[('SSL routines', '', 'tls alert certificate revoked')]", "certificate_revoked"),  # from 4.0 on
        ("tlsv1 alert unknown ca (SSL alert number 48)", "unknown_ca"),
        ("tlsv13 alert certificate required", "certificate_required"),
        ("tlsv1 unrecognized name", "unrecognized_name"),
        ("Client TLS handshake failed: tls alert handshake failure", "handshake_failure"),
        ("tlsv1 alert user cancelled", None),
        ("tls alert bad certificates", None),
        ("server closed connection", None),
    ],
)
def test_openssls_words_for_a_refusal(text: str, name: str | None) -> None:
    assert refusal(text) == name

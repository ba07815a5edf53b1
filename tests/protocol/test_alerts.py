"""TLS alerts have the names of RFC 8446."""

from __future__ import annotations

from inspector.protocol.alerts import ALERTS


def test_each_has_a_name_of_its_own() -> None:
    assert (ALERTS[0], ALERTS[44], ALERTS[48], ALERTS[116]) == (
        "close_notify", "certificate_revoked", "unknown_ca", "certificate_required",
    )  # fmt: skip
    assert len(set(ALERTS.values())) == len(ALERTS)

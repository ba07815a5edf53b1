"""What is learnt of a connection from OpenSSL's own words."""

from __future__ import annotations

from OpenSSL import SSL

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

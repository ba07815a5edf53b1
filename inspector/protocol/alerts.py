"""TLS alerts: by their number, and in error texts."""

from __future__ import annotations

from inspector import regex

ALERTS = {
    0: "close_notify", 10: "unexpected_message", 20: "bad_record_mac", 40: "handshake_failure",
    42: "bad_certificate", 43: "unsupported_certificate", 44: "certificate_revoked",
    45: "certificate_expired", 46: "certificate_unknown", 47: "illegal_parameter", 48: "unknown_ca",
    49: "access_denied", 50: "decode_error", 51: "decrypt_error", 70: "protocol_version",
    71: "insufficient_security", 80: "internal_error", 86: "inappropriate_fallback", 90: "user_canceled",
    109: "missing_extension", 112: "unrecognized_name", 116: "certificate_required",
    120: "no_application_protocol",
}  # fmt: skip
"""RFC 8446, 6.2."""
_REFUSALS = (
    "handshake_failure", "bad_certificate", "unsupported_certificate", "certificate_revoked", "certificate_expired",
    "certificate_unknown", "unknown_ca", "access_denied", "decrypt_error", "protocol_version", "insufficient_security",
    "certificate_required", "unrecognized_name",
)  # fmt: skip
"""Those with which a master refuses a client (RFC 8446, 6.2)."""
# OpenSSL's reasons for a received alert: "sslv3 alert bad certificate", from 3.2 on "ssl/tls alert bad certificate",
# from 4.0 on "tls alert bad certificate"; in all of them "tlsv1 alert unknown ca" and "tlsv1 unrecognized name".
_RECEIVED = regex.compile(
    rf"(?:sslv3|tlsv13?|(?:ssl/)?tls) (?:alert )?({'|'.join(_REFUSALS).replace('_', ' ')})\b", regex.IGNORECASE
)


def refusal(text: str) -> str | None:
    """Return the name of the alert by which a peer refused, in an error text of OpenSSL; None if there is none."""
    found = _RECEIVED.search(text)
    return found[1].lower().replace(" ", "_") if found else None

"""The verification probe: on one connection, one agent is presented with a certificate that it must not trust.

The traffic does not show whether an agent verifies its master. In TLS the certificate comes before the agent's name, so
the agent is recognized by its address: the next connection from there is probed. ``connection_state`` ensures that no
identity is used on it; rules report its requests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cryptography import x509

from inspector.host import pki
from inspector.model import PROBE
from inspector.protocol import endpoints
from inspector.protocol.kinds import Kind
from inspector.proxy.identity import Credentials
from inspector.text import clean

if TYPE_CHECKING:
    from collections.abc import Callable

    from inspector.model import Handshake

REFUSALS = frozenset({
    "bad_certificate", "unsupported_certificate", "certificate_revoked", "certificate_expired",
    "certificate_unknown", "unknown_ca",
})  # fmt: skip
"""Alerts about the certificate; others (no common version, no common cipher) are sent before it is examined."""

_BOOTSTRAP = (Kind.CSR, Kind.CERTIFICATE)
"""Kinds of requests that an agent without a certificate sends under its own name."""


class Probe:
    """The state of the probe: which agent, its address, the probed connection."""

    def __init__(self, certname: str, write_line: Callable[[str], None]) -> None:
        """Probe the agent ``certname``; none if empty. ``write_line`` gets the result, at most one line."""
        self._certname = certname
        self._write_line = write_line
        self._address: str | None = None
        self._leg: str | None = None
        self._reported = False

    def certificate_for(self, leg: str, address: str, presented: Credentials) -> Credentials | None:
        """Return the certificate to present instead of ``presented``, if this connection is to be probed."""
        if self._leg is not None or self._address != address:
            return None
        self._leg = leg  # before anything can fail: never a second one
        return untrusted(presented)

    def on_request(self, leg: str, address: str, certname: str, method: str, target: str) -> None:
        """Note a request; ``certname`` is the verified name of the agent, empty without a certificate."""
        if not self._certname or self._reported:
            return
        match = endpoints.match(method, target)
        kind = match.endpoint.kind if match else None
        url_name = match.certname if match else None
        if leg != self._leg:
            if (certname or (url_name if kind in _BOOTSTRAP else None)) == self._certname:
                self._address = address
        elif kind is not Kind.CA_BUNDLE:  # which every agent downloads unverified
            name = certname or url_name or self._certname
            agent = "it" if name == self._certname else f"it (not {self._certname}, which has the same address)"
            request = clean(f"{method} {target.partition('?')[0]}")[:200]
            self._report(
                name,
                f"WENT ON with {request} although it must not trust the presented certificate: "
                f"{agent} does not verify its master",
            )

    def on_handshake_failure(self, handshake: Handshake) -> None:
        """Note a failed handshake."""
        if handshake.leg.id != self._leg:
            return
        if refuses(handshake.alert, handshake.alert_by):
            self._report(
                self._certname,
                f"refused the certificate it must not trust (alert {handshake.alert}): it verifies its master",
            )
        else:
            self._report(
                self._certname, f"no result: the handshake failed for another reason: {clean(handshake.reason)}"
            )

    def on_close(self, leg: str | None = None) -> None:
        """Note the end of a connection, or of the proxy (None)."""
        if not self._certname or (leg is not None and leg != self._leg):
            return
        if self._leg is None:
            self._report(self._certname, "was not probed: it opened no connection after its address was known")
        else:
            self._report(
                self._certname, "no result: it accepted the certificate, but requested nothing that needs trust"
            )

    def _report(self, name: str, result: str) -> None:
        if not self._reported:
            self._reported = True
            address = f" ({self._address})" if self._address else ""
            self._write_line(f"-- probe: {clean(name)}{address} {result}")


def refuses(alert: str | None, by: str | None) -> bool:
    """Whether an alert means that an agent refused the presented certificate."""
    return by == "agent" and alert in REFUSALS


def untrusted(presented: Credentials) -> Credentials:
    """Return a certificate for the same names and the same key, signed by a CA made for this purpose only."""
    leaf = presented.chain[0]
    try:
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        alt_names = names.get_values_for_type(x509.DNSName)
    except x509.ExtensionNotFound:
        alt_names = []
    authority = pki.make_ca(PROBE)
    return Credentials((pki.sign(authority, leaf.public_key(), pki.certname_of(leaf), alt_names),), presented.key)

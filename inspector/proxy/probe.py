"""The active check of who verifies: one connection of one agent is shown a certificate that it must not trust.

Traffic alone can't tell an agent that verified from one that did not look. In TLS the certificate comes
before the agent's name, so the agent is known by its address: the next connection from there is the probed
one. What it is lent (nothing) is decided in ``ends``; what is said of its requests, in the rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from cryptography import x509

from inspector.host import pki
from inspector.model import PROBE
from inspector.protocol import endpoints
from inspector.protocol.kinds import Kind
from inspector.proxy.identity import Credentials
from inspector.summaries.wording import clean

if TYPE_CHECKING:
    from collections.abc import Callable

    from inspector.model import Handshake

REFUSALS = frozenset({
    "bad_certificate", "unsupported_certificate", "certificate_revoked", "certificate_expired",
    "certificate_unknown", "unknown_ca",
})  # fmt: skip
"""Alerts that are about the certificate; others (no common version, no common cipher) come before it is looked at."""

_BOOTSTRAP = (Kind.CSR, Kind.CERTIFICATE)
"""What an agent without a certificate asks for under its own name."""


class Probe:
    """The state of the check: whom it is for, where that agent was seen, which connection was probed."""

    def __init__(self, certname: str, say: Callable[[str], None]) -> None:
        """``certname`` empty: nobody is probed. ``say`` gets the result, at most one line."""
        self._certname = certname
        self._say = say
        self._address: str | None = None
        self._leg: str | None = None
        self._told = False

    def meet(self, leg: str, address: str, shown: Credentials) -> Credentials | None:
        """What to show on a new connection in place of ``shown``, if that is the one to be probed."""
        if self._leg is not None or self._address != address:
            return None
        self._leg = leg  # before anything can fail: never a second one
        return untrusted(shown)

    def asked(self, leg: str, address: str, certname: str, method: str, target: str) -> None:
        """Take in a request; ``certname`` is the caller's as verified, empty if it showed no certificate."""
        if not self._certname or self._told:
            return
        match = endpoints.match(method, target)
        kind = match.endpoint.kind if match else None
        named = match.certname if match else None
        if leg != self._leg:
            if (certname or (named if kind in _BOOTSTRAP else None)) == self._certname:
                self._address = address
        elif kind is not Kind.CA_BUNDLE:  # which every agent downloads unverified
            who = certname or named or self._certname
            it = "it" if who == self._certname else f"it, not {self._certname} at the same address,"
            what = clean(f"{method} {target.partition('?')[0]}")[:200]
            self._tell(
                who, f"WENT ON with {what} over a certificate it must not trust: {it} does not verify its master"
            )

    def failed(self, handshake: Handshake) -> None:
        """Take in a failed handshake."""
        if handshake.leg.id != self._leg:
            return
        if refuses(handshake.alert, handshake.alert_by):
            self._tell(
                self._certname, f"refused the certificate it must not trust (alert {handshake.alert}): it verifies"
            )
        else:
            self._tell(self._certname, f"proved nothing, the handshake failed otherwise: {clean(handshake.reason)}")

    def ended(self, leg: str | None = None) -> None:
        """Take in the end of a connection; None: of the proxy."""
        if not self._certname or (leg is not None and leg != self._leg):
            return
        if self._leg is None:
            self._tell(self._certname, "was not probed: no connection came from it after it was known by its address")
        else:
            self._tell(
                self._certname, "proved nothing: it took the certificate, and asked for nothing that needs trust"
            )

    def _tell(self, who: str, what: str) -> None:
        if not self._told:
            self._told = True
            at = f" ({self._address})" if self._address else ""
            self._say(f"-- probe: {clean(who)}{at} {what}")


def refuses(alert: str | None, by: str | None) -> bool:
    """Whether an alert is an agent's refusal of the certificate that it was shown."""
    return by == "agent" and alert in REFUSALS


def untrusted(shown: Credentials) -> Credentials:
    """A certificate for the same names and the same key, of a CA that exists for this one signature."""
    leaf = shown.chain[0]
    try:
        names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        alt_names = names.get_values_for_type(x509.DNSName)
    except x509.ExtensionNotFound:
        alt_names = []
    authority = pki.make_ca(PROBE)
    return Credentials((pki.sign(authority, leaf.public_key(), pki.certname_of(leaf), alt_names),), shown.key)

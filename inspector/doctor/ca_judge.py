"""Decide whether servers that have a CA's bundle and CRLs accept a node's certificate, and why not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.clocks import DAY
from inspector.protocol import x509

if TYPE_CHECKING:
    from inspector.doctor.ca_view import CaView
    from inspector.protocol.certificates import Certificate

UNTRUSTED = "no CA of its bundle issued their certificates"
REVOKED = "it has revoked their certificates"
EXPIRED, EARLY = "their certificates have expired", "their certificates are not valid yet"


class Judge:
    """Whether servers that have a CA's bundle and CRLs accept certificates. OpenSSL decides, once for those that the
    same CA issued."""

    def __init__(self, view: CaView, now: float, *, each: bool) -> None:
        """``each``: every certificate is verified, as one key has several CA certificates."""
        self.now, self._each = now, each
        self._verifier = x509.Verifier([authority.der for authority in view.authorities], ())
        self._decided: dict[tuple[str, ...], str] = {}
        self._lists = [(crl.issuer, crl.authority_key_identifier, frozenset(crl.revoked)) for crl in view.crls or ()]

    def revoked(self, issuer: str, key: str | None) -> frozenset[int]:
        """Return the serial numbers that a CA, by its name and key identifier, has revoked."""
        return frozenset[int]().union(
            *(serials for name, of, serials in self._lists if name == issuer and (of is None or key in (None, of)))
        )

    def refusal(self, certificate: Certificate) -> str:
        """Return why a certificate is refused; empty if it is accepted."""
        issuer, key = certificate.issuer, certificate.authority_key_identifier
        for name, of, serials in self._lists:
            if name == issuer and (of is None or key in (None, of)) and certificate.serial in serials:
                return REVOKED
        if certificate.not_after < self.now:
            return EXPIRED
        if certificate.not_before > self.now + DAY:
            return EARLY
        group_of = (issuer, key, "") if key and not self._each else (issuer, key or "", certificate.fingerprint)
        if group_of not in self._decided:
            self._decided[group_of] = self._distrust(certificate)
        return self._decided[group_of]

    def _distrust(self, certificate: Certificate) -> str:
        if not self._verifier.roots:
            return ""  # the bundle is not known
        problems = self._verifier.verify([certificate.der], self.now, "none")
        rest = [problem for problem in problems if problem.depth or problem.code not in (9, 10)]
        if not rest:
            return ""
        return UNTRUSTED if all(problem.code in (2, 7, 18, 19, 20, 21) for problem in rest) else str(rest[0])

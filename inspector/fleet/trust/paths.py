"""From a certificate up to the root, by names and key identifiers: tables hold no signatures."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inspector.fleet.trust.inventory import Certificate, Crl, Inventory

DEEPEST = 10
"""CAs above a certificate."""


class Paths:
    """The CAs and the CRLs above certificates."""

    def __init__(self, inventory: Inventory) -> None:
        self._crls: dict[str, list[Crl]] = {}
        for crl in inventory.crls:
            self._crls.setdefault(crl.issuer, []).append(crl)
        self._authorities: dict[str, list[Certificate]] = {}
        for certificate in inventory.certificates.values():
            if "ca" in certificate.roles:
                self._authorities.setdefault(certificate.subject, []).append(certificate)
        self._above: dict[tuple[str, str | None], tuple[Certificate, ...]] = {}

    def above(self, certificate: Certificate) -> tuple[Certificate, ...]:
        """The CAs that a certificate depends on, its issuer first. Shorter than it should be if one is not in the
        tables; empty for a root."""
        if is_root(certificate):
            return ()
        key = certificate.issuer, certificate.issuer_key
        if key not in self._above:
            self._above[key] = self._climb(certificate)
        return self._above[key]

    def complete(self, certificate: Certificate) -> bool:
        """Whether the CAs above it are known up to a root."""
        return is_root((certificate, *self.above(certificate))[-1])

    def crl(self, authority: Certificate) -> Crl | None:
        """The latest CRL of a CA; None if it is not in the tables."""
        return self._latest(authority.subject, authority.key_identifier)

    def crl_about(self, certificate: Certificate) -> Crl | None:
        """The latest CRL of a certificate's issuer, which need not be in the tables itself."""
        above = self.above(certificate)
        if above or is_root(certificate):
            return self.crl(above[0] if above else certificate)
        return self._latest(certificate.issuer, certificate.issuer_key)

    def _latest(self, issuer: str, key: str | None) -> Crl | None:
        crls = (crl for crl in self._crls.get(issuer, ()) if _same(crl.issuer_key, key))
        return max(crls, key=lambda crl: (crl.last_update, int(crl.number or -1)), default=None)

    def _climb(self, certificate: Certificate) -> tuple[Certificate, ...]:
        found: list[Certificate] = []
        below = certificate
        while not is_root(below) and len(found) < DEEPEST:
            named = self._authorities.get(below.issuer, ())
            able = [one for one in named if _same(below.issuer_key, one.key_identifier) and one not in found]
            if not able:
                break
            # A CA that was renewed has two certificates for one key: OpenSSL takes the one that is valid.
            below = max(able, key=lambda one: (one.not_after, one.fingerprint))
            found.append(below)
        return tuple(found)


def is_root(certificate: Certificate) -> bool:
    """Whether a certificate is its own issuer."""
    return certificate.issuer == certificate.subject and _same(certificate.issuer_key, certificate.key_identifier)


def _same(one: str | None, other: str | None) -> bool:
    """Whether two key identifiers may be of one key: old CAs write none."""
    return one is None or other is None or one == other

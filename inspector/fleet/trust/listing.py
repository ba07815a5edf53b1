"""All certificates and CRLs of a fleet, by what ends first."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from inspector.clocks import DAY
from inspector.protocol.certificates import printed_serial

if TYPE_CHECKING:
    from inspector.fleet.trust.inventory import Certificate, Inventory

_ROLES = {"ca": "CA", "master": "master", "agent": "agent", "issued": "issued"}
"""In the order in which they count."""


class Entry(NamedTuple):
    """A certificate or a CRL, as a list shows it."""

    role: str
    """CA, CRL, master, agent, master and agent, or issued: served to an agent, and not presented."""
    name: str
    serial: str
    """As ``puppetserver ca list`` prints it; of a CRL its number, in decimal."""
    issuer: str
    begin: float
    end: float | None
    """In seconds since the epoch; None: it has no end."""
    last: float
    """When it was last observed."""
    replaced: bool = False
    """A newer one of the same name was observed since."""
    fingerprint: str | None = None

    def days(self, now: float) -> int | None:
        """How many days are left; negative: it has ended."""
        return None if self.end is None else int((self.end - now) // DAY)


def entries(inventory: Inventory) -> list[Entry]:
    """Return the certificates and the latest CRL of each CA, what ends first at the beginning."""
    newest: dict[tuple[str, str, str | None], Certificate] = {}
    for certificate in inventory.certificates.values():
        key = certificate.subject, certificate.issuer, certificate.issuer_key
        if key not in newest or _age(newest[key]) < _age(certificate):
            newest[key] = certificate
    in_use = {name for node in inventory.nodes for name in (*node.certificates, *node.masters)}
    found = [
        Entry(
            _role(one), one.certname or one.subject, printed_serial(one.serial), one.issuer, one.not_before,
            one.not_after, one.last, _replaced(one, newest, in_use), one.fingerprint,
        )
        for one in inventory.certificates.values()
    ]  # fmt: skip
    found += [
        Entry("CRL", crl.issuer, crl.number or "", crl.issuer, crl.last_update, crl.next_update, crl.last)
        for crl in inventory.crls
    ]
    return sorted(found, key=lambda one: (one.end is None, one.end or 0.0, one.name, one.serial))


def _replaced(one: Certificate, newest: dict[tuple[str, str, str | None], Certificate], in_use: set[str]) -> bool:
    return one.fingerprint not in in_use and newest[one.subject, one.issuer, one.issuer_key] is not one


def _age(certificate: Certificate) -> tuple[float, float, str]:
    return certificate.not_before, certificate.last, certificate.fingerprint


def _role(certificate: Certificate) -> str:
    if {"master", "agent"} <= {*certificate.roles} and "ca" not in certificate.roles:
        return "master and agent"
    return next(name for role, name in _ROLES.items() if role in certificate.roles)

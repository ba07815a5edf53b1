"""Certificates, CRLs and nodes as ``inspector.fleet.trust`` has them: invented ones, and those of real certificates."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cryptography.hazmat.primitives.serialization import Encoding

from inspector.fleet.trust.inventory import Certificate, Crl, Inventory, Node
from inspector.protocol import x509

if TYPE_CHECKING:
    from collections.abc import Iterable

    from cryptography import x509 as cx509

NOW = 1_800_000_000.0
DAY = 86_400.0


def certificate(
    name: str, issuer: Certificate | None = None, *, serial: int = 1, roles: tuple[str, ...] = ("ca",), **given: Any
) -> Certificate:
    """A certificate that nobody signed, without ``issuer`` a root; valid for 1,000 days more."""
    values: dict[str, Any] = {
        "fingerprint": f"{name}-{serial}-{issuer.fingerprint if issuer else ''}", "roles": roles, "certname": name,
        "subject": f"CN={name}", "names": (f"DNS:{name}",), "serial": serial,
        "issuer": issuer.subject if issuer else f"CN={name}",
        "issuer_key": issuer.key_identifier if issuer else f"id of {name}", "key": f"key of {name}",
        "key_identifier": f"id of {name}", "not_before": NOW - 100 * DAY, "not_after": NOW + 1000 * DAY, "last": NOW,
    }  # fmt: skip
    return Certificate(**values | given)


def crl(authority: Certificate, *serials: int, days: float | None = 1000, made: float = 1) -> Crl:
    """Its latest CRL, made some days ago, which ends in some days."""
    until = None if days is None else NOW + days * DAY
    return Crl(authority.subject, authority.key_identifier, "7", NOW - made * DAY, until, len(serials),
               frozenset(serials), NOW)  # fmt: skip


def node(name: str, own: Certificate, *masters: Certificate, **given: Any) -> Node:
    """A node with an agent that fetches the CRL every day, and the masters that answer it."""
    values: dict[str, Any] = {"server": "puppet", "agent_version": "8.10.0", "master_version": "7.9.5", "last": NOW}
    return Node(name, (own.fingerprint,), masters=tuple(one.fingerprint for one in masters), **values | given)


def inventory(certificates: Iterable[Certificate], nodes: Iterable[Node], *crls: Crl) -> Inventory:
    return Inventory({one.fingerprint: one for one in certificates}, crls, tuple(nodes))


def of_real(real: cx509.Certificate, *roles: str) -> Certificate:
    """What tables have of a real certificate."""
    read = x509.read_der(real.public_bytes(Encoding.DER))
    return Certificate(
        read.fingerprint, roles, read.common_name, read.subject, tuple(read.alt_names), read.serial, read.issuer,
        read.authority_key_identifier, read.key, read.key_identifier, read.not_before, read.not_after, NOW,
    )  # fmt: skip

"""The vocabulary of decisions: who asks, and what the master says to it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING

from inspector.protocol import x509

if TYPE_CHECKING:
    from collections.abc import Mapping

    from inspector.host.auth_conf.rules import Entry, Rule
    from inspector.model import Headers
    from inspector.protocol.certificates import Certificate

_ALT_NAMES = {"DNS": "dns-name", "IP": "ip", "RFC822Name": "rfc822-name", "UniformResourceIdentifier": "uri"}
OIDS = {name: f"{arc}.{last}" for arc, names in x509.PUPPET_OIDS.items() for last, name in enumerate(names) if name} | {
    name: oid for oid, name in x509.AUTHORIZATION_OIDS.items()
}
"""Puppet's object identifiers by their names."""


class Verdict(StrEnum):
    """What becomes of a request."""

    ALLOWED = "allowed"
    DENIED = "denied"
    FAILS = "fails"
    """The master ends with an error while it decides."""
    UNASKED = "not asked"
    """The master answers without looking into auth.conf."""
    UNDECIDED = "not decided"


@dataclass(frozen=True, slots=True)
class Client:
    """Who sends a request."""

    name: str | None = None
    """The certname; None: it is not authenticated."""
    extensions: Mapping[str, str] | None = None
    """The certificate's extensions by object identifier; None: they are not known."""
    alt_names: Mapping[str, tuple[str, ...]] | None = None
    """The certificate's alternative names, by their kind; None: it has none."""

    @property
    def names(self) -> tuple[str, ...]:
        """The names by which puppetserver knows it."""
        return (*(self.alt_names or {}).get("dns-name", ()), self.name) if self.name else ()


ANONYMOUS = Client(extensions={})
"""A client without a certificate."""


@lru_cache(maxsize=1024)
def of_der(der: bytes) -> Client:
    """Return the client that presents a certificate; ``ANONYMOUS`` if it cannot be read."""
    try:
        return of_certificate(x509.read_der(der))
    except x509.Malformed:
        return ANONYMOUS


def of_certificate(certificate: Certificate) -> Client:
    """Return the client that presents a certificate."""
    alt_names: dict[str, tuple[str, ...]] = {}
    for kind, _, name in (name.partition(":") for name in certificate.alt_names):
        kind = _ALT_NAMES.get(kind, kind)
        alt_names[kind] = (*alt_names.get(kind, ()), name)
    extensions = {OIDS.get(name, name): value for name, value in certificate.extensions.items()}
    return Client(certificate.common_name or None, extensions, alt_names or None)


@dataclass(frozen=True, slots=True)
class Question:
    """A request, as far as a master looks at it for its decision."""

    method: str
    target: str
    """As sent (Latin-1)."""
    client: Client
    headers: Headers = ()

    def header(self, name: str) -> str | None:
        """Return the first value of a header, whose name is in lower case."""
        return next((value for key, value in self.headers if key.lower() == name), None)


@dataclass(frozen=True, slots=True)
class Decision:
    """What a master says to a request, and why."""

    verdict: Verdict
    rule: Rule | None
    """The rule that decides; None: none is for this request."""
    why: str
    """In a clause."""
    entry: Entry | None = None
    """The entry of the rule that is for this client; None: none is."""

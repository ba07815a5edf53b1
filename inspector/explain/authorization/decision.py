"""The vocabulary of decisions: who asks, and what the master says to it."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING

from cryptography import x509 as cx509

from inspector.host.auth_conf.rules import Sort
from inspector.protocol import x509
from inspector.protocol.pem import UNREADABLE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from inspector.host.auth_conf.rules import Entry, Rule
    from inspector.model import Headers
    from inspector.protocol.certificates import Certificate

_ALT_NAMES = {"DNS": "dns-name", "IP": "ip", "RFC822Name": "rfc822-name", "UniformResourceIdentifier": "uri"}
_OTHER_TEXTS = (b"\x13", b"\x16")
"""How a PrintableString and an IA5String begin."""
_COMMENT = "2.16.840.1.113730.1.13"
"""Netscape's comment, which is an IA5String."""
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
        alt_names[kind] = (*alt_names.get(kind, ()), _long(name) if kind == "ip" else name)
    extensions = {OIDS.get(name, name): value for name, value in certificate.extensions.items()}
    return Client(certificate.common_name or None, extensions | _other_texts(certificate), alt_names or None)


def _long(address: str) -> str:
    """Return an address as Java writes it: of IPv6 all eight parts."""
    try:
        parsed = ipaddress.IPv6Address(address)
    except ValueError:  # of IPv4, or a network
        return address
    return ":".join(f"{int(part, 16):x}" for part in parsed.exploded.split(":"))


def _other_texts(certificate: Certificate) -> dict[str, str]:
    """Return the extensions whose text is of another type than UTF-8: for puppetserver the type is part of the text."""
    try:
        found = [*cx509.load_der_x509_certificate(certificate.der).extensions] if certificate.der else []
    except UNREADABLE:
        return {}
    values = ((each.oid.dotted_string, each.value) for each in found)
    return {
        oid: value.value.decode("utf-8", "replace")
        for oid, value in values
        if isinstance(value, cx509.UnrecognizedExtension) and value.value[:1] in _OTHER_TEXTS and oid != _COMMENT
    }


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


def name_parts(name: str) -> list[str]:
    """Return the parts of a client's name, from the last to the first, in lower case. Dots at its end do not count."""
    pieces = name.lower().split(".")
    while len(pieces) > 1 and not pieces[-1]:
        pieces.pop()
    return [] if pieces == [""] and name else pieces[::-1]


def is_for(sort: Sort | None, text: str, name: str) -> bool:
    """Return whether an entry with a name or a domain is for a client; names are compared as masters do."""
    match sort:
        case Sort.ANY:
            return True
        case Sort.DOMAIN:
            domain = name_parts(text)[:-1]
            return name_parts(name)[: len(domain)] == domain
        case Sort.WORD:
            return name_parts(name) == [text]
    return name_parts(name) == name_parts(text)

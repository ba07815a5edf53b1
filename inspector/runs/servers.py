"""The servers that answered a run: which one answered what, with which version, code, CRL and certificate."""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from inspector.model import Phase
from inspector.protocol import documents as d
from inspector.protocol.kinds import Kind
from inspector.text import utc_second

if TYPE_CHECKING:
    from inspector.model import Exchange, Leg
    from inspector.protocol.endpoints import Match

MOST = 50
"""Maximum number of servers of one run, and of places of a server."""
WORD = 255
"""Maximum length of what an answer says of its server."""


class Server(msgspec.Struct, gc=False):
    """A server that answered requests of a run, told from others by its certificate and its address."""

    name: str
    """The name in the certificate that it presented; its address if it presented none."""
    address: str
    """Where the proxy connected to: of a balancer, the balancer's."""
    certificate: str | None
    """SHA-256 of its certificate, in hexadecimal digits; null: it presented none."""
    first: int
    """Its first answer: the number of the record."""
    last: int = 0
    """Its latest answer."""
    places: list[str] = []
    """Where its answers were recorded, in a capture that was merged of several places."""
    requests: int = 0
    """How many it answered."""
    phases: list[Phase] = []
    """The phases of the run that it took part in."""
    version: str | None = None
    """The X-Puppet-Version of its latest answer; null: it sent none."""
    environment: str | None = None
    """The environment of its latest catalog, or else that of the latest request to it."""
    catalog: str | None = None
    """The version of its latest catalog; null: it sent none."""
    code_id: str | None = None
    """The code_id of that catalog, where the master deploys versioned code."""
    crl: int | None = None
    """The number of the CRL that it served: of several, the highest."""
    crl_from: float | None = None
    """When that CRL was made."""
    ca: str | None = None
    """SHA-256 of the CA certificates that it served; null: it was not asked."""

    @property
    def words(self) -> str:
        """What is known of it, in a line."""
        parts = [f"{', '.join(self.phases)} ({self.requests})", self.version or "", self.environment or ""]
        for title, value in (("catalog", self.catalog), ("code", self.code_id)):
            parts.append(f"{title} {value}" if value else "")
        if self.crl is not None or self.crl_from is not None:
            parts.append(f"CRL {'' if self.crl is None else f'{self.crl} '}of {utc_second(self.crl_from or 0.0)} UTC")
        parts.append(f"CA {self.ca[:8]}" if self.ca else "")
        parts.append(f"certificate {self.certificate[:8]}" if self.certificate else "")
        parts.append(f"at {' and '.join(self.places)}" if self.places else "")
        return f"{self.name}: {'; '.join(filter(None, parts))}"


type Servers = dict[str, Server]
"""By name and address."""


def note(servers: Servers, exchange: Exchange, match: Match, answered: d.Document | None) -> None:
    """Add an answer to those of its server."""
    leg, response = exchange.master, exchange.response
    if leg is None or response is None:
        return
    key = key_of(leg)
    server = servers.get(key)
    if server is None:
        if len(servers) >= MOST:
            return
        chain = leg.peer_chain
        digest = hashlib.sha256(chain[0]).hexdigest() if chain else None
        server = servers[key] = Server(name_of(leg), _address(leg), digest, exchange.seq)
    server.requests += 1
    server.last = exchange.seq
    phase = match.endpoint.phase
    if phase not in server.phases:
        server.phases.append(phase)
    for place in {exchange.agent.place, leg.place}:
        if place and place not in server.places and len(server.places) < MOST:
            server.places.append(place[:WORD])
    if version := response.header("x-puppet-version"):
        server.version = version[:WORD]
    if match.environment and match.endpoint.area != "ca" and server.catalog is None:
        server.environment = match.environment[:WORD]
    match answered:
        case d.Catalog() if response.status < 300:
            server.environment = (answered.environment or server.environment or "")[:WORD] or None
            server.catalog = None if answered.version is None else str(answered.version)[:WORD]
            server.code_id = answered.code_id[:WORD] if answered.code_id else None
        case d.RevocationLists() if answered.crls:
            newest = max(answered.crls, key=lambda crl: (crl.number or 0, crl.last_update))
            server.crl, server.crl_from = newest.number, newest.last_update
        case d.Certificates() if match.endpoint.kind is Kind.CA_BUNDLE:
            server.ca = hashlib.sha256(b"".join(sorted(each.der for each in answered.certificates))).hexdigest()


def merge(servers: Servers, earlier: Servers) -> Servers:
    """Return the servers of a run whose beginning was taken for another one."""
    both = {key: msgspec.structs.replace(server) for key, server in earlier.items()}
    for key, server in servers.items():
        if before := both.get(key):
            fields = {name: getattr(server, name) or getattr(before, name) for name in Server.__struct_fields__}
            fields["last"] = max(before.last, server.last)
            fields["requests"], fields["first"] = before.requests + server.requests, min(before.first, server.first)
            for name in ("places", "phases"):
                fields[name] = list(dict.fromkeys((*getattr(before, name), *getattr(server, name))))
            both[key] = Server(**fields)
        else:
            both[key] = server
    return both


def copies(servers: Servers) -> tuple[Server, ...]:
    """Return the servers as they are now."""
    return tuple(
        msgspec.structs.replace(server, places=[*server.places], phases=[*server.phases]) for server in servers.values()
    )


def key_of(leg: Leg) -> str:
    """Return by what a server is told from others."""
    return f"{name_of(leg)} {_address(leg)}"


def name_of(leg: Leg) -> str:
    """Return the name of the server at the other end of the master's leg."""
    return (_common_name(leg.peer_chain[0]) if leg.peer_chain else None) or _address(leg)


def _address(leg: Leg) -> str:
    return f"{leg.address or '?'}:{leg.port or '?'}"


@lru_cache(maxsize=256)
def _common_name(certificate: bytes) -> str | None:
    from inspector.protocol import x509  # rules are explained without it

    try:
        name = x509.read_der(certificate).common_name
    except x509.Malformed:
        return None
    return name[:WORD] if name else None

"""The certificates, CRLs and nodes of tables, each once: what a fleet's trust is computed from."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from inspector.fleet.statements import AGENTS, ENDED, LATEST_CRLS, asked_for
from inspector.protocol.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duckdb import DuckDBPyConnection


class Certificate(NamedTuple):
    """A certificate, in all its roles; times in seconds since the epoch, as everywhere here."""

    fingerprint: str
    roles: tuple[str, ...]
    """As in the table: agent, master, issued, ca."""
    certname: str | None
    subject: str
    names: tuple[str, ...]
    serial: int
    issuer: str
    issuer_key: str | None
    key: str
    key_identifier: str | None
    not_before: float
    not_after: float
    last: float
    """When it was last observed."""


class Crl(NamedTuple):
    """The latest CRL of a CA."""

    issuer: str
    issuer_key: str | None
    number: str | None
    last_update: float
    next_update: float | None
    """None: it has no end."""
    revoked: int
    serials: frozenset[int]
    last: float


class Node(NamedTuple):
    """A node that has a certificate."""

    certname: str
    certificates: tuple[str, ...]
    """Fingerprints of those that it uses: more than one if two hosts have its name."""
    replaced: tuple[str, ...] = ()
    """Fingerprints of those that it used before."""
    masters: tuple[str, ...] = ()
    """Fingerprints of the masters that answer to the name that it calls; empty: they were not recorded."""
    server: str | None = None
    """Its name for the master."""
    agent_version: str | None = None
    master_version: str | None = None
    addresses: int = 1
    """How many it used its certificates from."""
    clock: float = 0.0
    """How far its clock is ahead, in seconds."""
    last: float = 0.0
    """When its last run began."""
    worked: float | None = None
    """When its last complete run ended."""
    downloads: int = 0
    """How many of its runs asked for the CRL and got it."""
    refused: float | None = None
    """When it was last refused because its certificate is revoked."""


@dataclass(frozen=True, slots=True)
class Inventory:
    """The certificates, CRLs and nodes of tables."""

    certificates: Mapping[str, Certificate]
    """By fingerprint."""
    crls: tuple[Crl, ...]
    nodes: tuple[Node, ...]
    """By name."""
    failed: tuple[str, ...] = ()
    """The names of nodes of which no run is known with a certificate: their connections all failed."""


_CERTIFICATES = """
SELECT fingerprint, list_sort(list(DISTINCT role)), any_value(certname), any_value(subject), any_value(names),
       any_value(serial), any_value(issuer), any_value(issuer_key), any_value(key), any_value(key_identifier),
       epoch(any_value(not_before)), epoch(any_value(not_after)), epoch(max(last))
FROM certificates GROUP BY fingerprint ORDER BY fingerprint
"""
_CRLS = f"""
SELECT issuer, issuer_key, number, epoch(last_update), epoch(next_update), revoked, serials, epoch(last)
FROM {LATEST_CRLS} ORDER BY issuer, issuer_key
"""
_STEPS = {
    # Each certificate with its CA.
    "issued": """
        SELECT fingerprint, any_value(coalesce(issuer_key, issuer)) AS ca, any_value(subject) AS subject
        FROM certificates GROUP BY fingerprint
    """,
    # The runs of agents with a certificate.
    "enrolled": f"""
        SELECT runs.*, ca FROM runs JOIN issued ON fingerprint = certificate WHERE {AGENTS}
    """,
    # The same name of two CAs is two nodes, unless it has left one for the other at its site: then its old runs are of
    # the CA to which it has moved.
    "spans": """
        SELECT site, certname, ca, min(time) AS first, max(time) AS last FROM enrolled GROUP BY ALL
    """,
    "moved": """
        SELECT old.site, old.certname, old.ca, arg_max(new.ca, (new.last, new.ca)) AS moved_to
        FROM spans old JOIN spans new ON old.site = new.site AND old.certname = new.certname AND new.first > old.last
        GROUP BY ALL
    """,
    "agents": """
        SELECT enrolled.* REPLACE (coalesce(moved_to, enrolled.ca) AS ca)
        FROM enrolled LEFT JOIN moved USING (site, certname, ca)
    """,
    # A certificate is in use if it is the latest, or if it was used after the latest had come: two hosts that take
    # turns. One that was replaced was not.
    "used": """
        SELECT certname, ca, certificate, min(time) AS first, max(time) AS last FROM agents GROUP BY ALL
    """,
    "marked": """
        SELECT *, last >= first_value(first) OVER (PARTITION BY certname, ca ORDER BY last DESC, certificate) AS current
        FROM used
    """,
    "held": """
        SELECT certname, ca, list_sort(list(certificate) FILTER (WHERE current)) AS certificates,
               coalesce(list_sort(list(certificate) FILTER (WHERE NOT current)), []) AS replaced
        FROM marked GROUP BY ALL
    """,
    "addresses": """
        SELECT certname, ca, count(DISTINCT address) AS addresses
        FROM agents JOIN marked USING (certname, ca, certificate) WHERE current GROUP BY ALL
    """,
    # The same of masters: those that share a name take turns, each with its own certificates. The same name at two
    # sites is two masters.
    "shown": """
        SELECT site, server, master_certificate, any_value(subject) AS subject, min(time) AS first, max(time) AS last
        FROM agents LEFT JOIN issued ON issued.fingerprint = master_certificate
        WHERE master_certificate IS NOT NULL GROUP BY site, server, master_certificate
    """,
    "answering": """
        SELECT *, last >= first_value(first) OVER (PARTITION BY site, server, subject
                                                   ORDER BY last DESC, master_certificate) AS current
        FROM shown
    """,
    "masters": """
        SELECT site, server, list_sort(list(master_certificate)) AS masters
        FROM answering WHERE current GROUP BY ALL
    """,
    # What each name has done, whichever CA it is of.
    "downloads": f"""
        SELECT certname, count(DISTINCT (capture, run)) AS downloads FROM exchanges
        WHERE {asked_for(Kind.CRL)} AND status IN (200, 304) AND certname IS NOT NULL GROUP BY certname
    """,
    "refusals": """
        SELECT certname, max(time) AS refused FROM findings WHERE rule = 'T05' GROUP BY certname
    """,
    # A node as its latest runs show it.
    "nodes": f"""
        SELECT certname, ca, arg_max(server, time) AS server, arg_max(site, time) AS site,
               arg_max(agent_version, time) AS agent_version, arg_max(master_version, time) AS master_version,
               arg_max(agent_clock, time) AS clock, max(time) AS last,
               max({ENDED}) FILTER (WHERE outcome = 'complete') AS worked
        FROM agents GROUP BY ALL
    """,
}
"""From runs to nodes: each step is a table that those after it select from."""
_NODES = f"""
WITH {", ".join(f"{name} AS ({step})" for name, step in _STEPS.items())}
SELECT certname, certificates, replaced, coalesce(masters, []), n.server, agent_version, master_version, addresses,
       coalesce(clock, 0), epoch(n.last), epoch(worked), coalesce(downloads, 0), epoch(refused)
FROM nodes n JOIN held USING (certname, ca) JOIN addresses USING (certname, ca) LEFT JOIN downloads USING (certname)
LEFT JOIN refusals USING (certname)
LEFT JOIN masters m ON m.site = n.site AND m.server IS NOT DISTINCT FROM n.server
ORDER BY certname, ca
"""
_NAMED = f"SELECT DISTINCT certname FROM runs WHERE {AGENTS} AND certname IS NOT NULL ORDER BY certname"


def read(connection: DuckDBPyConnection) -> Inventory:
    """Read what the tables that a database shows say of certificates."""
    certificates = {row[0]: _certificate(*row) for row in connection.execute(_CERTIFICATES).fetchall()}
    crls = tuple(_crl(*row) for row in connection.execute(_CRLS).fetchall())
    nodes = tuple(
        Node(row[0], tuple(row[1]), tuple(row[2]), tuple(row[3]), *row[4:])
        for row in connection.execute(_NODES).fetchall()
    )
    known = {node.certname for node in nodes}
    named = (name for (name,) in connection.execute(_NAMED).fetchall())
    return Inventory(certificates, crls, nodes, tuple(name for name in named if name not in known))


def number_of(serial: str) -> int:
    """A serial number of a table as a number."""
    return int(serial, 16)


def _certificate(fingerprint: str, roles: list[str], *fields: Any) -> Certificate:
    certname, subject, names, serial, *rest = fields
    return Certificate(fingerprint, tuple(roles), certname, subject, tuple(names or ()), number_of(serial), *rest)


def _crl(*fields: Any) -> Crl:
    *begin, serials, last = fields
    return Crl._make((*begin, frozenset(map(number_of, serials or ())), last))

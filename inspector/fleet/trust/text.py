"""A blast radius in words and for JSON, with the fixes of the rules as what to do before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

import msgspec

from inspector.columns import Count, Utc
from inspector.fleet.trust.abilities import numbers
from inspector.fleet.trust.effects import Kind, Verdict
from inspector.protocol.certificates import printed_serial
from inspector.rules import fixes
from inspector.rules.puppet_commands import FixContext, fill
from inspector.rules.words import cut
from inspector.summaries import wording
from inspector.text import clean, plural, utc, utc_day

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inspector.fleet.trust.inventory import Inventory, Node
    from inspector.fleet.trust.listing import Entry
    from inspector.fleet.trust.radius import Affected, Group, Radius
    from inspector.rules.fixes import Fix

FIRST = 20
"""Nodes of a group that are named."""
COLUMNS = ("nodes", "verdict", "from", "why")
LISTED = ("role", "name", "serial", "until", "days", "last", "issuer")


def row(entry: Entry, now: float) -> tuple[str, ...]:
    """The cells of a certificate or CRL, for ``LISTED``."""
    days = entry.days(now)
    until = "no end" if entry.end is None else utc_day(entry.end)
    role = f"{entry.role}, replaced" if entry.replaced else entry.role
    left = "-" if days is None else f"{days:,}"
    return (role, clean(cut(entry.name, 100)), clean(entry.serial)[:50], until, left, utc_day(entry.last),
            clean(cut(entry.issuer, 100)))  # fmt: skip


class PlainEntry(msgspec.Struct, rename={"begin": "from"}):
    """A certificate or a CRL."""

    role: str
    """CA, CRL, master, agent, master and agent, or issued: served to an agent, and not presented by one."""
    name: str
    """The common name; of a CRL the subject of its CA."""
    serial: str
    """Hexadecimal, as ``puppetserver ca list`` prints it; of a CRL its number, in decimal."""
    issuer: str
    begin: Utc
    until: Utc | None
    """null: it has no end."""
    days: int | None
    """How many are left; negative: it has ended."""
    last: Utc
    """When it was last observed."""
    replaced: bool
    """A newer one of the same name and CA was observed, and no node uses this one."""
    fingerprint: str | None
    """SHA-256 of its DER; null for a CRL."""


class PlainCertificate(msgspec.Struct):
    """A certificate that is assumed to be revoked."""

    serial: str
    subject: str
    issuer: str
    roles: tuple[str, ...]
    """agent, master, issued, ca."""
    fingerprint: str


class PlainNode(msgspec.Struct, rename={"since": "from"}):
    """A node that a reason is for."""

    certname: str
    since: Utc | None
    """From when on; null: as soon as the new CRL is in place."""
    agent_version: str | None
    last: Utc
    """When its last run began."""


class PlainGroup(msgspec.Struct):
    """A reason, and the nodes that it is for."""

    kind: Kind
    verdict: Verdict
    why: str
    unless: str | None
    """Conditions under which it is otherwise; null: there is none."""
    prints: str | None
    """What an agent of 6.4 or later prints; {name} is its certname."""
    certificate: str | None
    """Fingerprint of the certificate that is refused, if it is the same for all of these nodes."""
    authority: str | None
    """The subject of the CA whose CRL it is."""
    nodes: list[PlainNode]
    """Those that break first at the beginning."""
    steps: list[fixes.PlainStep]
    """What to do before; of ``already``, what to do."""


class PlainScenario(msgspec.Struct):
    """What a case does to the nodes."""

    at: Utc
    """The date that was given, or now."""
    dated: bool
    """Whether a date was given."""
    revoked: list[PlainCertificate]
    crls: Literal["none"] | None
    """none: it is assumed that no CRL is valid."""
    nodes: Count
    """Nodes with a certificate in the tables."""
    breaks: Count
    """How many of them break."""
    may_break: Count
    """How many others may break: it depends on what neither tables nor Puppet's source show."""
    works: Count
    """How many others keep working though it touches them."""
    untouched: Count
    """How many it does not concern."""
    groups: list[PlainGroup]
    """The reasons; a node may be in several."""
    already: list[PlainGroup]
    """Why nodes do not work now, whatever is assumed. They are in no other group."""
    notes: tuple[str, ...]
    """What is not known, and what holds for all."""


class Listed(msgspec.Struct):
    """Without --what-if."""

    now: Utc
    """When it was computed."""
    certificates: list[PlainEntry]
    """Certificates and the latest CRL of each CA, what ends first at the beginning."""


class Supposed(msgspec.Struct):
    """With --what-if."""

    now: Utc
    """When it was computed."""
    scenarios: list[PlainScenario]
    """One, or one for each certificate that a serial number may mean."""


def plain_entry(entry: Entry, now: float) -> PlainEntry:
    """A certificate or CRL for JSON."""
    return PlainEntry(
        role=entry.role,
        name=entry.name,
        serial=entry.serial,
        issuer=entry.issuer,
        begin=utc(entry.begin),
        until=None if entry.end is None else utc(entry.end),
        days=entry.days(now),
        last=utc(entry.last),
        replaced=entry.replaced,
        fingerprint=entry.fingerprint,
    )


def head(found: Radius) -> str:
    """Return the assumption, and how many nodes break, in a sentence."""
    total, breaks, may = len(found.inventory.nodes), found.number(Verdict.BREAKS), found.number(Verdict.MAY_BREAK)
    more = f", {may:,} more may break" if may else ""
    return f"{_supposed(found)}: {breaks:,} of {plural(total, 'node')} break{'s' if breaks == 1 else ''}{more}."


def rows(found: Radius) -> list[tuple[str, ...]]:
    """The cells of each reason, for ``COLUMNS``."""
    groups = [(group, str(group.reason.verdict)) for group in found.groups]
    groups += [(group, "broken already") for group in found.already]
    return [
        (f"{len(group.nodes):,}", verdict, _span(group.nodes), clean(cut(group.reason.text, 400)))
        for group, verdict in groups
    ]


def details(found: Radius, width: int | None) -> Iterator[str]:
    """Yield the nodes of each reason, its conditions, and what to do."""
    room, done = width or wording.PLAIN, set()
    for group in (*found.groups, *found.already):
        reason = group.reason
        yield from wording.wrapped("", clean(cut(reason.text, 400)), room)
        names = [_named(affected, group) for affected in group.nodes[:FIRST]]
        more = f" and {len(group.nodes) - FIRST:,} more" if len(group.nodes) > FIRST else ""
        yield from wording.wrapped("  nodes:  ", f"{', '.join(names)}{more}", room)
        if reason.unless:
            yield from wording.wrapped("  unless: ", clean(reason.unless), room)
        if reason.prints:
            yield from wording.wrapped("  prints: ", clean(cut(_prints(group), 300)), room)
        fix = steps(group, found.inventory)
        if fix and fix not in done:
            done.add(fix)
            label = "  before: " if group in found.groups else "  do:     "
            yield from wording.Labelled(label, fix).lines(room)
        yield ""
    if found.untouched:
        other = "other " if found.groups or found.already else ""
        rest = "nodes" if found.untouched != 1 else "node"
        yield f"{found.untouched:,} {other}{rest}: nothing of this concerns {'them' if rest == 'nodes' else 'it'}."
    for note in found.notes:
        yield from wording.wrapped("note: ", clean(cut(note, 600)), room)


def plain(found: Radius) -> PlainScenario:
    """Return a blast radius for JSON."""
    scenario = found.scenario
    return PlainScenario(
        at=utc(scenario.at),
        dated=scenario.dated,
        revoked=[
            PlainCertificate(printed_serial(one.serial), one.subject, one.issuer, one.roles, one.fingerprint)
            for one in scenario.revoked
        ],
        crls="none" if scenario.without_crls else None,
        nodes=len(found.inventory.nodes),
        breaks=found.number(Verdict.BREAKS),
        may_break=found.number(Verdict.MAY_BREAK),
        works=found.number(Verdict.WORKS),
        untouched=found.untouched,
        groups=[_plain_group(group, found) for group in found.groups],
        already=[_plain_group(group, found) for group in found.already],
        notes=found.notes,
    )


def _supposed(found: Radius) -> str:
    scenario = found.scenario
    parts = [
        f"if {printed_serial(one.serial)} of {clean(cut(one.subject, 100))} is revoked by {clean(cut(one.issuer, 100))}"
        for one in scenario.revoked
    ]
    parts += ["if no CRL is valid"] if scenario.without_crls else []
    parts += [f"on {utc_day(scenario.at)}, if nothing is renewed before"] if scenario.dated else []
    return fixes.begun(" and ".join(parts))


def _span(nodes: Sequence[Affected]) -> str:
    times = sorted({utc_day(one.since) for one in nodes if one.since is not None})
    if not times:
        return "with the new CRL"
    return times[0] if len(times) == 1 else f"{times[0]} to {times[-1]}"


def _named(affected: Affected, group: Group) -> str:
    name = clean(cut(affected.node.certname, 100))
    differ = group.nodes[0].since != group.nodes[-1].since
    return f"{name} ({utc_day(affected.since)})" if differ and affected.since is not None else name


def _prints(group: Group) -> str:
    name = group.nodes[0].node.certname if len(group.nodes) == 1 else "<certname>"
    return group.reason.prints.replace("{name}", name)


def _plain_group(group: Group, found: Radius) -> PlainGroup:
    reason = group.reason
    return PlainGroup(
        kind=reason.kind,
        verdict=reason.verdict,
        why=reason.text,
        unless=reason.unless or None,
        prints=reason.prints or None,
        certificate=reason.certificate,
        authority=reason.authority,
        nodes=[_plain_node(affected) for affected in group.nodes],
        steps=fixes.fields(steps(group, found.inventory)),
    )


def _plain_node(affected: Affected) -> PlainNode:
    node = affected.node
    since = None if affected.since is None else utc(affected.since)
    return PlainNode(node.certname, since, node.agent_version, utc(node.last))


# -- what to do before -----------------------------------------------------------------------------------------

_ENROL = (fixes.group("enrol"),)
_STEPS: dict[Kind, Fix] = {
    Kind.NODE_ENDED: _ENROL,
    Kind.NODE_REVOKED: _ENROL,
    Kind.MASTER_ENDED: (fixes.group("renew_master"),),
    Kind.MASTER_REVOKED: (fixes.group("renew_master"),),
    Kind.CA_ENDED: (
        fixes.advice("give the CA a new certificate for the same key, and put it into ca_crt.pem"),
        fixes.advice("bring the new bundle to every agent: agents of 8.1 and later fetch it every day, to others copy "
                     "it as certs/ca.pem"),
    ),
    Kind.CA_REVOKED: (fixes.advice("set up a new CA; every node below it enrols anew"), fixes.group("enrol_ca")),
    Kind.CRL_ENDED: (fixes.group("renew_crl"),),
    Kind.CRL_MISSING: (fixes.group("renew_crl"),),
}  # fmt: skip


def steps(found: Group, inventory: Inventory) -> Fix:
    """Return what prevents that the nodes of a group break; empty if they do not."""
    if found.reason.verdict is Verdict.WORKS:
        return ()
    nodes = [affected.node for affected in found.nodes]
    only = nodes[0] if len(nodes) == 1 else None
    master = inventory.certificates.get(found.reason.certificate or "")
    return fill(
        _STEPS[found.reason.kind],
        FixContext(
            name=only.certname if only else None,
            host=nodes[0].server,
            master=master.certname if master else None,
            names=tuple(dict.fromkeys(master.names)) if master else (),
            early_ca=_early(nodes[0].master_version),
            early_node=_early_node(nodes),
        ),
    )


def _early(version: str | None) -> bool | None:
    """Whether a version is 5 or earlier; None: it is not known."""
    return None if numbers(version) == (0, 0) else numbers(version) < (6, 0)


def _early_node(nodes: list[Node]) -> bool | None:
    """Whether all agents of nodes are of 5 or earlier; None: it is not known, or they differ."""
    found = {_early(node.agent_version) for node in nodes}
    return found.pop() if len(found) == 1 else None

"""A blast radius in words and for JSON, with the fixes of the rules as what to do before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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

    from inspector.fleet.trust.inventory import Certificate, Inventory, Node
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


def plain_entry(entry: Entry, now: float) -> dict[str, Any]:
    """A certificate or CRL for JSON."""
    return {
        "role": entry.role,
        "name": entry.name,
        "serial": entry.serial,
        "issuer": entry.issuer,
        "from": utc(entry.begin),
        "until": None if entry.end is None else utc(entry.end),
        "days": entry.days(now),
        "last": utc(entry.last),
        "replaced": entry.replaced,
        "fingerprint": entry.fingerprint,
    }


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


def plain(found: Radius) -> dict[str, Any]:
    """Return a blast radius as a JSON-able structure."""
    scenario = found.scenario
    return {
        "at": utc(scenario.at),
        "dated": scenario.dated,
        "revoked": [_plain_certificate(one) for one in scenario.revoked],
        "crls": "none" if scenario.without_crls else None,
        "nodes": len(found.inventory.nodes),
        "breaks": found.number(Verdict.BREAKS),
        "may_break": found.number(Verdict.MAY_BREAK),
        "works": found.number(Verdict.WORKS),
        "untouched": found.untouched,
        "groups": [_plain_group(group, found) for group in found.groups],
        "already": [_plain_group(group, found) for group in found.already],
        "notes": list(found.notes),
    }


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


def _plain_certificate(certificate: Certificate) -> dict[str, Any]:
    return {
        "serial": printed_serial(certificate.serial),
        "subject": certificate.subject,
        "issuer": certificate.issuer,
        "roles": list(certificate.roles),
        "fingerprint": certificate.fingerprint,
    }


def _plain_group(group: Group, found: Radius) -> dict[str, Any]:
    reason = group.reason
    return {
        "kind": str(reason.kind),
        "verdict": str(reason.verdict),
        "why": reason.text,
        "unless": reason.unless or None,
        "prints": reason.prints or None,
        "certificate": reason.certificate,
        "authority": reason.authority,
        "nodes": [_plain_node(affected) for affected in group.nodes],
        "steps": fixes.fields(steps(group, found.inventory)),
    }


def _plain_node(affected: Affected) -> dict[str, Any]:
    node = affected.node
    return {
        "certname": node.certname,
        "from": None if affected.since is None else utc(affected.since),
        "agent_version": node.agent_version,
        "last": utc(node.last),
    }


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

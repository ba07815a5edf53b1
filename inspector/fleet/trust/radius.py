"""The blast radius of a scenario: which nodes break, grouped by reason, which keep working though it touches them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from inspector.fleet.trust.effects import Judge, Kind, Verdict
from inspector.fleet.trust.paths import Paths
from inspector.fleet.trust.scenario import Scenario
from inspector.protocol.certificates import printed_serial
from inspector.text import plural, utc_day

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from inspector.fleet.trust.effects import Effect, Reason
    from inspector.fleet.trust.inventory import Inventory, Node


class Affected(NamedTuple):
    """A node that a reason concerns."""

    node: Node
    since: float | None
    """When it begins; None: as soon as the CRL is in place."""


class Group(NamedTuple):
    """A reason and the nodes that it concerns, those that break first at the beginning."""

    reason: Reason
    nodes: tuple[Affected, ...]


@dataclass(frozen=True, slots=True)
class Radius:
    """The effects of a scenario on all nodes. A node may be in several groups."""

    scenario: Scenario
    inventory: Inventory
    groups: tuple[Group, ...]
    """The worst and the largest first."""
    already: tuple[Group, ...]
    """Why nodes do not work now, whatever is assumed. They are in no other group."""
    untouched: int
    """How many nodes it does not concern."""
    notes: tuple[str, ...]
    """Notes on missing knowledge, and on all nodes."""

    def number(self, verdict: Verdict) -> int:
        """How many nodes have a verdict: of several, the worst one of a node counts."""
        worst: dict[int, int] = {}
        for group in self.groups:
            rank = _RANKS[group.reason.verdict]
            for affected in group.nodes:
                worst[id(affected.node)] = min(rank, worst.get(id(affected.node), rank))
        return sum(rank == _RANKS[verdict] for rank in worst.values())


_PROXY = (
    "Behind a proxy of puppet-inspector, agents are shown the proxy's certificate, which is not in the tables. The "
    "proxy reads its CRLs (puppet_crl) again when they change, refuses whom they revoke, and uses no identity towards "
    "the master while none is valid."
)
_RANKS = {Verdict.BREAKS: 0, Verdict.MAY_BREAK: 1, Verdict.WORKS: 2}


def radius(inventory: Inventory, scenario: Scenario, now: float) -> Radius:
    """Compute what a scenario does to the nodes of an inventory. ``now`` is in seconds since the epoch."""
    paths = Paths(inventory)
    present, then = Judge(inventory, paths, Scenario(now)), Judge(inventory, paths, scenario)
    already: dict[Reason, list[Affected]] = {}
    found: dict[Reason, list[Affected]] = {}
    untouched = 0
    for node in inventory.nodes:
        broken = [effect for effect in _effects(present, node) if effect.reason.verdict is Verdict.BREAKS]
        effects = broken or _effects(then, node)
        for effect in effects:
            (already if broken else found).setdefault(effect.reason, []).append(Affected(node, effect.since))
        untouched += not effects
    return Radius(
        scenario, inventory, _groups(found), _groups(already), untouched, tuple(_notes(paths, inventory, scenario))
    )


def _effects(judge: Judge, node: Node) -> list[Effect]:
    """Return the effects on a node, without those that began before its last complete run: it has a newer CRL."""
    return [
        effect
        for effect in judge.effects(node)
        if effect.since is None
        or effect.reason.kind is Kind.CRL_MISSING
        or node.worked is None
        or node.worked <= effect.since
    ]


def _groups(found: Mapping[Reason, Iterable[Affected]]) -> tuple[Group, ...]:
    groups = [
        Group(reason, tuple(sorted(nodes, key=lambda one: (one.since or 0.0, one.node.certname))))
        for reason, nodes in found.items()
    ]
    return tuple(sorted(groups, key=lambda group: (_RANKS[group.reason.verdict], -len(group.nodes), group.reason)))


def _notes(paths: Paths, inventory: Inventory, scenario: Scenario) -> Iterator[str]:
    nodes = inventory.nodes
    unknown = sum(not paths.complete(inventory.certificates[node.certificates[0]]) for node in nodes)
    if unknown:
        yield f"The CAs of {plural(unknown, 'node')} are not all in the tables: what they do is not counted."
    if inventory.failed:
        names, more = ", ".join(inventory.failed[:5]), len(inventory.failed) - 5
        named = f"{names} and {more:,} more" if more > 0 else names
        count = plural(len(inventory.failed), "node")
        yield f"{count} not counted, of which no connection with a certificate succeeded: {named}."
    unseen = sum(not node.masters for node in nodes)
    if unseen:
        yield f"Which master answers {plural(unseen, 'node')} was not recorded: its certificate is not counted."
    if scenario.dated or scenario.without_crls:
        yield from _about_crls(paths, inventory, scenario)
    if scenario.revoked:
        yield from _about_keys(inventory, scenario)
    yield _PROXY


def _about_crls(paths: Paths, inventory: Inventory, scenario: Scenario) -> Iterator[str]:
    authorities = [one for one in inventory.certificates.values() if "ca" in one.roles]
    missing = sorted({one.subject for one in authorities if paths.crl(one) is None})
    if missing and scenario.dated:
        yield f"The tables have no CRL of {', '.join(missing[:5])}: when it ends is not known."
    ends = [crl.next_update for one in authorities if (crl := paths.crl(one)) and crl.next_update is not None]
    if scenario.without_crls and ends:
        yield (
            f"An agent that has CRLs goes on with them until they end, the latest known at {utc_day(min(ends))}: a "
            "download that fails is only logged. New nodes of 6 and later cannot enrol meanwhile."
        )
    elif ends:
        yield (
            "Which CRLs agents have on disk is not in the traffic. Those that do not fetch them every day (up to 8.0) "
            "may have older ones, which end earlier than the latest."
        )


def _about_keys(inventory: Inventory, scenario: Scenario) -> Iterator[str]:
    for revoked in scenario.revoked:
        same = [
            one
            for one in inventory.certificates.values()
            if one.key == revoked.key and one.fingerprint != revoked.fingerprint
        ]
        if same:
            names = ", ".join(f"{printed_serial(one.serial)} {one.subject}" for one in same[:5])
            yield (
                f"The same key is in {plural(len(same), 'other certificate')}, which is not revoked with this one: "
                f"{names}{' and more' if len(same) > 5 else ''}."
            )

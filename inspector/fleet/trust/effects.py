"""What a scenario does to one node: which certificate or CRL is refused, by whom, from when, and unless what.

The rules are those of agents and masters (docs/protocol.md#certificates). An agent's settings are not in its traffic:
what depends on them is a condition of the effect.
"""

from __future__ import annotations

import itertools
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from inspector import clocks
from inspector.fleet.trust import abilities
from inspector.fleet.trust.paths import Paths, is_root
from inspector.protocol.certificates import printed_serial
from inspector.protocol.chains import in_agents_words
from inspector.text import plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from inspector.fleet.trust.abilities import Abilities
    from inspector.fleet.trust.inventory import Certificate, Crl, Inventory, Node
    from inspector.fleet.trust.scenario import Scenario


class Kind(StrEnum):
    """The kind of what is refused: whose certificate or CRL, and why."""

    NODE_ENDED = "node-ended"
    NODE_REVOKED = "node-revoked"
    MASTER_ENDED = "master-ended"
    MASTER_REVOKED = "master-revoked"
    CA_ENDED = "ca-ended"
    CA_REVOKED = "ca-revoked"
    CRL_ENDED = "crl-ended"
    CRL_MISSING = "crl-missing"


class Verdict(StrEnum):
    """Whether a node breaks."""

    BREAKS = "breaks"
    MAY_BREAK = "may break"
    """It depends on what neither tables nor Puppet's source show."""
    WORKS = "keeps working"


class Reason(NamedTuple):
    """Why; the same for all nodes that it concerns."""

    kind: Kind
    verdict: Verdict
    text: str
    unless: str = ""
    """A condition under which it is otherwise; empty: none."""
    prints: str = ""
    """What an agent of 6.4 or later prints; ``{name}`` is its certname."""
    certificate: str | None = None
    """The fingerprint of the certificate that is refused, if it is one for all of these nodes."""
    authority: str | None = None
    """The CA whose CRL it is."""


class Effect(NamedTuple):
    """A reason, for one node."""

    reason: Reason
    since: float | None
    """When it begins; None: as soon as the CRL is in place."""


class _Revocation(NamedTuple):
    """The revocation of a certificate."""

    since: float | None
    """None: it is only assumed."""


_NO_CHECKS = "certificate_revocation is false"
_LEAF = "certificate_revocation is leaf or false"
_ROOT = "its OpenSSL asks no CRL about a root (4.0 does not, 3.0 does)"


class Judge:
    """Applies the rules of a scenario to the nodes of an inventory."""

    def __init__(self, inventory: Inventory, paths: Paths, scenario: Scenario) -> None:
        self._certificates = inventory.certificates
        self._paths = paths
        self._scenario = scenario
        self._shared: dict[tuple[object, ...], list[Effect]] = {}
        """Effects shared by nodes that differ only in their own certificates."""

    def effects(self, node: Node) -> list[Effect]:
        """Return what the scenario does to a node; what is already so is among it."""
        own = [self._certificates[name] for name in node.certificates]
        able = abilities.of_agent(node.agent_version)
        found = [effect for certificate in own for effect in self._own(node, certificate, able)]
        found += _unused(node, own, self._scenario)
        issuers = tuple(authority.fingerprint for one in own for authority in self._paths.above(one)[:1])
        key = (issuers, node.masters, node.agent_version, node.master_version, node.downloads > 1, _clock(node))
        if key not in self._shared:
            self._shared[key] = list(self._above(node, own, able))
        return found + self._shared[key]

    def _above(self, node: Node, own: list[Certificate], able: Abilities) -> Iterator[Effect]:
        """Yield the effects of the masters' certificates, and of the CAs of both sides."""
        masters = [self._certificates[name] for name in node.masters if name in self._certificates]
        yield from self._masters(node, masters, able)
        ends = (*own, *masters)
        authorities = _distinct(map(self._paths.above, ends))
        for authority in authorities:
            direct = [one for one in ends if self._paths.above(one)[:1] == (authority,)]
            yield from self._authority(node, authority, able)
            crl = self._paths.crl(authority)
            if crl and not self._scenario.without_crls:
                signs_own = any(one in own for one in direct)
                shown = next(self._below(authority, masters), "")
                yield from _crl_ended(
                    node, authority, crl, self._scenario, able, shown, direct=bool(direct), signs_own=signs_own
                )
        if self._scenario.without_crls and authorities:
            yield _without_crls(self._scenario, able)

    def _below(self, authority: Certificate, masters: list[Certificate]) -> Iterator[str]:
        """Which certificates that masters show are issued by a CA."""
        for master in masters:
            path = (master, *self._paths.above(master))
            yield from (below.subject for below, above in itertools.pairwise(path) if above == authority)

    # -- certificates -----------------------------------------------------------------------------------

    def _own(self, node: Node, certificate: Certificate, able: Abilities) -> Iterator[Effect]:
        # The master judges it by its clock, and an agent that verifies itself by its own, too.
        clock = max(0.0, _clock(node)) if able.verifies_itself else 0.0
        if certificate.not_after < self._scenario.at + clock:
            who = "the agent makes no connection" if able.verifies_itself else "the master refuses it"
            unless = "it is renewed before: the agent asks for that 30 days before, if its CA has allow-auto-renewal"
            yield Effect(
                Reason(
                    Kind.NODE_ENDED, Verdict.BREAKS, f"the node's own certificate has ended: {who}",
                    unless if able.renews else "", _words(10, "CN={name}") if able.verifies_itself else "",
                ),
                certificate.not_after - clock,
            )  # fmt: skip
        revocation = self._revocation(certificate)
        if revocation is None and node.refused is not None:
            revocation = _Revocation(node.refused)  # whatever CRL the master has, the tables have another one
        if revocation is None:
            return
        reloads = abilities.reloads_crl(node.master_version)
        restart = "" if reloads else ", from its restart on" if reloads is False else (
            ", from its restart on if it is older than Puppet Server 5.1 or in Ruby"
        )  # fmt: skip
        when = f"once it has the new CRL{restart}" if node.refused is None else "already"
        refuses = f"the node's own certificate is revoked: the master refuses it {when}"
        if node.addresses > 1:
            refuses += f"; the node, or copies of it, used it from {node.addresses} addresses"
        prints = _words(23, "CN={name}") if able.verifies_itself and _fetches(node, able) else ""
        yield Effect(
            Reason(Kind.NODE_REVOKED, Verdict.BREAKS, refuses, "", prints, certificate.fingerprint),
            revocation.since,
        )

    def _masters(self, node: Node, masters: list[Certificate], able: Abilities) -> Iterator[Effect]:
        for master in masters:
            called = f"the certificate of the master {master.certname or master.subject}"
            others = len(masters) - 1
            only = f"another master answers ({plural(others, 'other')} with that name)" if others else ""
            subject = f"CN={master.certname}" if master.certname else master.subject
            since = master.not_after - _clock(node)
            if since < self._scenario.at:
                prints = f"certificate verify failed [certificate has expired for {subject}]"
                reason = Reason(
                    Kind.MASTER_ENDED, Verdict.BREAKS, f"{called} has ended: the agent refuses it", only,
                    prints if able.verifies_itself else "", master.fingerprint,
                )  # fmt: skip
                yield Effect(reason, since)
            if revocation := self._revocation(master):
                unless = ", or ".join(filter(None, (_NO_CHECKS, only)))
                prints = f"certificate verify failed [certificate revoked for {subject}]"
                reason = Reason(
                    Kind.MASTER_REVOKED, Verdict.BREAKS, f"{called} is revoked", unless, prints, master.fingerprint
                )
                yield Effect(_by_crl(reason, "the agent refuses it", node, able), revocation.since)

    def _authority(self, node: Node, authority: Certificate, able: Abilities) -> Iterator[Effect]:
        since = authority.not_after - _clock(node)
        if since < self._scenario.at:
            text = f"the certificate of the CA {authority.subject} has ended: the agent trusts nothing below it"
            unless = "the agent gets a new CA certificate before: it fetches the CA every day" if able.refreshes else ""
            prints = _words(10, authority.subject) if able.verifies_itself else ""
            reason = Reason(Kind.CA_ENDED, Verdict.BREAKS, text, unless, prints, authority.fingerprint)
            yield Effect(reason, since)
        if revocation := self._revocation(authority):
            unless = f"{_LEAF}, or {_ROOT}" if is_root(authority) else _LEAF
            reason = Reason(
                Kind.CA_REVOKED, Verdict.BREAKS, f"the certificate of the CA {authority.subject} is revoked", unless,
                _words(23, authority.subject), authority.fingerprint,
            )  # fmt: skip
            yield Effect(_by_crl(reason, "the agent trusts nothing below it", node, able), revocation.since)

    def _revocation(self, certificate: Certificate) -> _Revocation | None:
        """Whether a certificate is revoked: already, or in the scenario."""
        crl = self._paths.crl_about(certificate)
        if crl and certificate.serial in crl.serials:
            return _Revocation(crl.last_update)
        assumed = any(one.fingerprint == certificate.fingerprint for one in self._scenario.revoked)
        return _Revocation(None) if assumed else None


def _by_crl(reason: Reason, then: str, node: Node, able: Abilities) -> Reason:
    """The reason of an agent that learns it from its CRL, and ``then`` does something."""
    verdict, when = _learns(node, able)
    if verdict is Verdict.WORKS:
        return reason._replace(verdict=verdict, text=f"{reason.text}, but {when}", unless="", prints="")
    return reason._replace(
        verdict=verdict,
        text=f"{reason.text}: {then} {when}",
        unless=f"{reason.unless}, or crl_refresh_interval is longer" if able.refreshes else reason.unless,
        prints=reason.prints if able.verifies_itself else "",
    )


def _learns(node: Node, able: Abilities) -> tuple[Verdict, str]:
    """Whether and when a node gets a new CRL."""
    if able.refreshes:
        return Verdict.BREAKS, "within a day, when it has fetched the new CRL"
    if not able.known:
        return Verdict.MAY_BREAK, "once it has the new CRL: its version is not known"
    if _fetches(node, able):
        return Verdict.BREAKS, "when it has fetched the new CRL: it was recorded to fetch it again"
    if able.may_refresh:
        return Verdict.WORKS, "the agent goes on with the CRL that it has: up to 8.0 it fetches no new one by itself"
    return Verdict.WORKS, "the agent goes on with the CRL that it has: up to 5 it fetches one at its enrolment only"


def _fetches(node: Node, able: Abilities) -> bool:
    """Whether an agent fetches the CRL again, by its defaults or as was recorded."""
    return able.refreshes or (able.may_refresh and node.downloads > 1)


def _unused(node: Node, own: Iterable[Certificate], scenario: Scenario) -> Iterator[Effect]:
    """What a certificate that was replaced does not do."""
    for certificate in scenario.revoked:
        if certificate.fingerprint in node.replaced:
            newer = ", ".join(printed_serial(one.serial) for one in own)
            text = f"this certificate of it was replaced: it uses {newer}"
            yield Effect(Reason(Kind.NODE_REVOKED, Verdict.WORKS, text, certificate=certificate.fingerprint), None)


# -- CRLs ---------------------------------------------------------------------------------------------------


def _crl_ended(
    node: Node, authority: Certificate, crl: Crl, scenario: Scenario, able: Abilities, shown: str, *, direct: bool,
    signs_own: bool,
) -> Iterator[Effect]:  # fmt: skip
    if crl.next_update is None or crl.next_update - _clock(node) >= scenario.at:
        return
    since = crl.next_update - _clock(node)
    text = f"the CRL of {authority.subject} has ended"
    prints = _words(12, authority.subject) if able.verifies_itself else ""
    if shown and _fetches(node, able):
        # It tries to fetch a new one, and refuses the master by the old one.
        prints = f"certificate verify failed [CRL has expired for {shown}]"
    if signs_own and abilities.renews_crl(node.master_version):
        # Whoever fetches it every day has the new one long before.
        if _fetches(node, able):
            fetches = "fetches it every day" if able.refreshes else "was recorded to fetch it again"
            text += f": a CA of 8.4 or later signs a new one 30 days before, and the agent {fetches}"
            yield Effect(Reason(Kind.CRL_ENDED, Verdict.WORKS, text, authority=authority.subject), since)
            return
        text += ": a CA of 8.4 or later signs a new one 30 days before, but this agent does not fetch it by itself"
        unless = f"{_NO_CHECKS}, or crl_refresh_interval is set"
        yield Effect(Reason(Kind.CRL_ENDED, Verdict.BREAKS, text, unless, prints, None, authority.subject), since)
    elif signs_own:
        text += ": the master refuses every client, and agents refuse the master"
        yield Effect(Reason(Kind.CRL_ENDED, Verdict.BREAKS, text, "", prints, None, authority.subject), since)
    else:
        text += ": agents refuse the master"
        unless = _NO_CHECKS if direct else _LEAF
        yield Effect(Reason(Kind.CRL_ENDED, Verdict.BREAKS, text, unless, prints, None, authority.subject), since)


def _without_crls(scenario: Scenario, able: Abilities) -> Effect:
    if able.known and able.verifies_itself:
        text = "the agent has no valid CRL: it refuses the master, and cannot fetch one"
        unless = f"{_NO_CHECKS} and no CRL is there at all: if the master's own has expired, it refuses every client"
        reason = Reason(Kind.CRL_MISSING, Verdict.BREAKS, text, unless)
    else:
        text = "agents up to 5 go on if there is no CRL, but refuse the master if theirs has expired"
        if not able.known:
            text = "agents of 6.4 and later refuse the master without a valid CRL; the version of this one is not known"
        elif able.may_refresh:
            text = "the agent has no valid CRL: agents of 6.0 to 6.3 cannot enrol; whether they run was not tried"
        reason = Reason(Kind.CRL_MISSING, Verdict.MAY_BREAK, text)
    return Effect(reason, scenario.at)


# -- small helpers ------------------------------------------------------------------------------------------


def _clock(node: Node) -> float:
    """How far an agent's clock is ahead; a few minutes are not known so exactly."""
    return node.clock if abs(node.clock) > clocks.SKEW else 0.0


def _distinct(paths: Iterable[tuple[Certificate, ...]]) -> list[Certificate]:
    return list({authority.fingerprint: authority for path in paths for authority in path}.values())


def _words(code: int, name: str) -> str:
    return in_agents_words(code, name, name)

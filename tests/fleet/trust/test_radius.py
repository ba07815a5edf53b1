"""Who breaks: exactly those whose path contains what is revoked; each node once; in time for a large fleet."""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.fleet.trust.effects import Kind, Verdict
from inspector.fleet.trust.paths import Paths
from inspector.fleet.trust.radius import radius
from inspector.fleet.trust.scenario import Assumptions, Scenario, scenarios
from tests.support.trust import DAY, NOW, certificate, crl, inventory, node
from tests.support.work import work_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from inspector.fleet.trust.inventory import Certificate, Inventory, Node
    from inspector.fleet.trust.radius import Radius

ROOT = certificate("root")
CA = certificate("ca", ROOT, serial=2)
MASTER = certificate("master", CA, serial=3, roles=("master",))
WEB, DB = (certificate(name, CA, serial=serial, roles=("agent",)) for name, serial in (("web", 4), ("db", 5)))
ALL = (ROOT, CA, MASTER, WEB, DB)


def broken(found: Radius) -> set[str]:
    return {
        affected.node.certname
        for group in found.groups
        if group.reason.verdict is Verdict.BREAKS
        for affected in group.nodes
    }


@st.composite
def fleets(draw: Callable[..., Any]) -> Inventory:
    """Some CAs below others, masters and nodes of any of them, with serial numbers that come again."""
    serials = st.integers(1, 6)
    authorities: list[Certificate] = []
    for number in range(draw(st.integers(1, 6))):
        above = draw(st.sampled_from([None, *authorities]))
        authorities.append(certificate(f"ca{number}", above, serial=draw(serials)))
    issuers = st.sampled_from(authorities)
    masters = [
        certificate(f"m{number}", draw(issuers), serial=draw(serials), roles=("master",))
        for number in range(draw(st.integers(1, 3)))
    ]
    nodes, own = [], []
    for number in range(draw(st.integers(1, 8))):
        own.append(certificate(f"n{number}", draw(issuers), serial=draw(serials), roles=("agent",)))
        nodes.append(node(f"n{number}", own[-1], *draw(st.lists(st.sampled_from(masters), max_size=2, unique=True))))
    return inventory([*authorities, *masters, *own], nodes)


def test_who_is_refused_already_does_not_break() -> None:
    """No CRL that an agent asked for need have it; a node that worked since has another certificate."""
    refused = node("web", WEB, MASTER, refused=NOW - DAY)
    healed = node("db", DB, MASTER, refused=NOW - 2 * DAY, worked=NOW - DAY)
    fleet = inventory(ALL, [refused, healed])
    found = radius(fleet, Scenario(NOW, revoked=(WEB,)), NOW)
    assert [affected.node.certname for group in found.already for affected in group.nodes] == ["web"]
    assert [group.reason.text for group in found.already] == [
        "the node's own certificate is revoked: the master refuses it already"
    ]
    assert broken(found) == set()
    assert broken(radius(fleet, Scenario(NOW, revoked=(DB,)), NOW)) == {"db"}


def test_nodes_without_a_certificate_are_named() -> None:
    fleet = inventory(ALL, [node("web", WEB, MASTER)])
    names = tuple(f"n{number}" for number in range(7))
    for failed, text in (
        (names[:1], "1 node not counted, of which no connection with a certificate succeeded: n0."),
        (names, "7 nodes not counted, of which no connection with a certificate succeeded: n0, n1, n2, n3, n4 and 2"),
    ):
        notes = radius(dataclasses.replace(fleet, failed=failed), Scenario(NOW, revoked=(WEB,)), NOW).notes
        assert any(note.startswith(text) for note in notes)
    assert not any("not counted, of which" in note for note in radius(fleet, Scenario(NOW), NOW).notes)


def depends(fleet: Inventory, one: Node) -> set[str]:
    """The fingerprints of all that a node depends on, found the long way: by names, one after another."""
    found, todo = set(), [*one.certificates, *one.masters]
    while todo:
        fingerprint = todo.pop()
        found.add(fingerprint)
        issuer = fleet.certificates[fingerprint].issuer
        above = [other.fingerprint for other in fleet.certificates.values() if other.subject == issuer]
        todo += [each for each in above if each not in found]
    return found


@pytest.mark.slow
@given(fleets(), st.integers(1, 6))
def test_who_breaks_is_whose_path_contains_the_serial(fleet: Inventory, serial: int) -> None:
    if all(one.serial != serial for one in fleet.certificates.values()):
        return
    for one in scenarios(Assumptions(NOW, serials=(serial,)), fleet):
        (revoked,) = one.revoked
        expected = {each.certname for each in fleet.nodes if revoked.fingerprint in depends(fleet, each)}
        found = radius(fleet, one, NOW)
        assert broken(found) == expected
        assert found.number(Verdict.BREAKS) == len(expected)
        assert found.untouched == len(fleet.nodes) - len(expected)


def test_a_node_counts_once_by_the_worst() -> None:
    """An old agent goes on without a new CRL, but not if its own certificate is revoked."""
    fleet = inventory(ALL, [node("web", WEB, MASTER, agent_version="7.23.0"), node("db", DB, MASTER)])
    found = radius(fleet, Scenario(NOW, revoked=(WEB, MASTER)), NOW)
    assert [(group.reason.kind, str(group.reason.verdict), len(group.nodes)) for group in found.groups] == [
        (Kind.MASTER_REVOKED, "breaks", 1), (Kind.NODE_REVOKED, "breaks", 1), (Kind.MASTER_REVOKED, "keeps working", 1),
    ]  # fmt: skip
    assert [found.number(verdict) for verdict in Verdict] == [2, 0, 0]
    assert radius(fleet, Scenario(NOW, revoked=(MASTER,)), NOW).number(Verdict.WORKS) == 1


@pytest.mark.parametrize(
    ("differs", "expected"),
    [
        ({"downloads": 2}, {"web", "db"}),
        ({"agent_version": "7.23.0", "downloads": 1}, {"web"}),
        ({"agent_version": "5.5.22"}, {"web"}),
        ({"masters": ()}, {"web"}),
    ],
)
def test_what_nodes_have_in_common_is_computed_once(differs: dict[str, Any], expected: set[str]) -> None:
    """And nothing else: nodes that differ in what decides are judged apart."""
    first = node("web", WEB, MASTER, agent_version="7.23.0", downloads=2)
    fleet = inventory(ALL, [first, first._replace(certname="db", certificates=(DB.fingerprint,), **differs)])
    assert broken(radius(fleet, Scenario(NOW, revoked=(MASTER,)), NOW)) == expected


def test_who_breaks_first_is_first() -> None:
    soon = [WEB._replace(not_after=NOW + 9 * DAY), DB._replace(not_after=NOW + 5 * DAY)]
    fleet = inventory([ROOT, CA, MASTER, *soon], [node("web", soon[0], MASTER), node("db", soon[1], MASTER)])
    (group,) = radius(fleet, Scenario(NOW + 30 * DAY, dated=True), NOW).groups
    assert [(one.node.certname, one.since) for one in group.nodes] == [("db", NOW + 5 * DAY), ("web", NOW + 9 * DAY)]


def test_who_does_not_work_now_is_apart() -> None:
    ended = WEB._replace(not_after=NOW - DAY)
    fleet = inventory([ROOT, CA, MASTER, ended, DB], [node("web", ended, MASTER), node("db", DB, MASTER)])
    found = radius(fleet, Scenario(NOW, revoked=(MASTER,)), NOW)
    assert broken(found) == {"db"}
    assert [(group.reason.kind, group.nodes[0].node.certname) for group in found.already] == [(Kind.NODE_ENDED, "web")]


def test_a_run_that_went_well_disproves_what_tables_say() -> None:
    """The CRL in the tables had ended when it ran: there is a newer one, which nobody recorded."""
    lists = crl(CA, days=-5), crl(ROOT)
    ran = inventory(ALL, [node("web", WEB, MASTER, worked=NOW - DAY)], *lists)
    assert radius(ran, Scenario(NOW + DAY, dated=True), NOW).already == ()
    before = inventory(ALL, [node("web", WEB, MASTER, worked=NOW - 6 * DAY)], *lists)
    assert radius(before, Scenario(NOW + DAY, dated=True), NOW).already[0].reason.kind is Kind.CRL_ENDED
    # No CRL at all is another question.
    assert broken(radius(ran, Scenario(NOW, without_crls=True), NOW)) == {"web"}


def test_what_is_not_known_is_said() -> None:
    twin = certificate("twin", CA, serial=9, roles=("issued",), key=WEB.key)
    fleet = inventory([CA, MASTER, WEB, DB, twin], [node("web", WEB), node("db", DB, MASTER)], crl(CA))
    notes = " ".join(radius(fleet, Scenario(NOW + DAY, dated=True, revoked=(WEB,)), NOW).notes)
    assert "The CAs of 2 nodes are not all in the tables" in notes
    assert "Which master answers 1 node was not recorded" in notes
    assert "Which CRLs agents have on disk" in notes
    assert "The same key is in 1 other certificate, which is not revoked with this one: 0x0009 CN=twin." in notes
    assert "The tables have no CRL of CN=ca, CN=root: when" in " ".join(
        radius(inventory(ALL, []), Scenario(NOW + DAY, dated=True), NOW).notes
    )
    missing = radius(fleet, Scenario(NOW, without_crls=True), NOW).notes
    assert "until they end, the latest known at 2029-10-11" in " ".join(missing)


@pytest.mark.slow
def test_many_nodes() -> None:
    half, whole = (work_of(partial(_broken, number)) for number in (10_000, 20_000))
    assert whole < 2.2 * half


def _broken(number: int) -> None:
    own = [certificate(f"n{serial}", CA, serial=serial, roles=("agent",)) for serial in range(10, 10 + number)]
    fleet = inventory([ROOT, CA, MASTER, *own], [node(one.certname or "", one, MASTER) for one in own], crl(CA))
    for scenario in (Scenario(NOW, revoked=(CA,)), Scenario(NOW + 2000 * DAY, dated=True)):
        assert radius(fleet, scenario, NOW).number(Verdict.BREAKS) == number
    assert len(Paths(fleet).above(own[0])) == 2

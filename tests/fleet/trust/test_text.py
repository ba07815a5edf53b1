"""A blast radius in words."""

from __future__ import annotations

from inspector.fleet.trust import text
from inspector.fleet.trust.radius import radius
from inspector.fleet.trust.scenario import Scenario
from tests.support.trust import DAY, NOW, certificate, crl, inventory, node

ROOT = certificate("root")
MASTER = certificate("master", ROOT, serial=3, roles=("master",))
OWN = [
    certificate(f"n{number:02}", ROOT, serial=number, roles=("agent",), not_after=NOW + number * DAY)
    for number in range(10, 40)
]
FLEET = inventory([ROOT, MASTER, *OWN], [node(one.certname or "", one, MASTER) for one in OWN])


def test_the_sentence_at_the_top() -> None:
    assert text.head(radius(FLEET, Scenario(NOW, revoked=(OWN[0],)), NOW)) == (
        "If 0x000A of CN=n10 is revoked by CN=root: 1 of 30 nodes breaks."
    )
    assert text.head(radius(FLEET, Scenario(NOW + 20.5 * DAY, dated=True, without_crls=True), NOW)) == (
        "If no CRL is valid and on 2027-02-04, if nothing is renewed before: 30 of 30 nodes break."
    )


def test_the_first_names_and_how_many_more() -> None:
    found = radius(FLEET, Scenario(NOW + 900 * DAY, dated=True), NOW)
    assert text.rows(found)[0][:3] == ("30", "breaks", "2027-01-25 to 2027-02-23")
    lines = "\n".join(text.details(found, 10_000))
    assert "n10 (2027-01-25), n11 (2027-01-26)" in lines
    assert "n29 (2027-02-13) and 10 more" in lines
    assert "n30" not in lines
    assert len(text.plain(found).groups[0].nodes) == 30


def test_the_same_steps_are_printed_once() -> None:
    lines = "\n".join(text.details(radius(FLEET, Scenario(NOW, revoked=(ROOT, MASTER)), NOW), 200))
    assert lines.count("puppetserver ca generate") == 1
    assert "prints: certificate verify failed [certificate revoked for CN=master]" in lines


def test_names_of_the_traffic_are_clean() -> None:
    hostile = certificate("\x1b[2Jx\u202e", ROOT, serial=99, roles=("agent",))
    fleet = inventory([ROOT, hostile], [node("\x1b[2Jx\u202e", hostile)])
    found = radius(fleet, Scenario(NOW, revoked=(hostile,)), NOW)
    printed = [text.head(found), *text.details(found, 80), *(cell for row in text.rows(found) for cell in row)]
    assert all(line.isprintable() for line in printed)


NAMED = certificate("master.example", ROOT, serial=3, roles=("master",), names=("DNS:puppet", "DNS:puppet", "DNS:$(x)"))
WEB = certificate("web.example", ROOT, serial=4, roles=("agent",))


def commands(scenario: Scenario, **given: str | None) -> list[str]:
    fleet = inventory([ROOT, NAMED, WEB], [node("web.example", WEB, NAMED, **given)], crl(ROOT, days=10))
    found = radius(fleet, scenario, NOW)
    return [step.command for group in found.groups for step in text.steps(group, fleet) if step.command]


def test_steps_for_a_node() -> None:
    assert commands(Scenario(NOW, revoked=(WEB,))) == [
        "puppetserver ca clean --certname web.example", "puppet ssl clean; puppet agent -t",
        "puppetserver ca sign --certname web.example",
    ]  # fmt: skip
    assert commands(Scenario(NOW, revoked=(WEB,)), agent_version="5.5.22", master_version="5.5.22")[0] == (
        "puppet cert clean web.example"
    )


def test_steps_for_a_master() -> None:
    made = "puppetserver ca generate --certname master.example --subject-alt-names puppet --ca-client"
    assert made in commands(Scenario(NOW, revoked=(NAMED,)))


def test_steps_for_a_crl() -> None:
    assert any("fix new-crl" in command for command in commands(Scenario(NOW + 20 * DAY, dated=True)))


def test_no_steps_where_nothing_breaks() -> None:
    assert commands(Scenario(NOW, revoked=(NAMED,)), agent_version="7.23.0") == []

"""What to do before: commands that work, with names that are safe in them."""

from __future__ import annotations

from inspector.fleet.trust.radius import radius
from inspector.fleet.trust.scenario import Scenario
from inspector.fleet.trust.steps import steps
from tests.support.trust import DAY, NOW, certificate, crl, inventory, node

ROOT = certificate("root")
MASTER = certificate(
    "master.example", ROOT, serial=3, roles=("master",), names=("DNS:puppet", "DNS:puppet", "DNS:$(x)")
)
WEB = certificate("web.example", ROOT, serial=4, roles=("agent",))


def commands(scenario: Scenario, **given: str | None) -> list[str]:
    fleet = inventory([ROOT, MASTER, WEB], [node("web.example", WEB, MASTER, **given)], crl(ROOT, days=10))
    found = radius(fleet, scenario, NOW)
    return [step.command for group in found.groups for step in steps(group, fleet) if step.command]


def test_of_a_node() -> None:
    assert commands(Scenario(NOW, revoked=(WEB,))) == [
        "puppetserver ca clean --certname web.example", "puppet ssl clean; puppet agent -t",
        "puppetserver ca sign --certname web.example",
    ]  # fmt: skip
    assert commands(Scenario(NOW, revoked=(WEB,)), agent_version="5.5.22", master_version="5.5.22")[0] == (
        "puppet cert clean web.example"
    )


def test_of_a_master() -> None:
    made = "puppetserver ca generate --certname master.example --subject-alt-names puppet --ca-client"
    assert made in commands(Scenario(NOW, revoked=(MASTER,)))


def test_of_a_crl() -> None:
    assert any("fix new-crl" in command for command in commands(Scenario(NOW + 20 * DAY, dated=True)))


def test_nothing_where_nothing_breaks() -> None:
    assert commands(Scenario(NOW, revoked=(MASTER,)), agent_version="7.23.0") == []

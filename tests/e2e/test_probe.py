"""The verification probe on the wire: an agent that verifies, and one that does not."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

import pytest

from inspector.lab import Lab
from inspector.model import Exchange, Handshake, Severity
from tests.e2e.wire import Peer
from tests.support.proxies import analyzed, exchanges, records
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.lab.agent import AgentResult
    from inspector.proxy.launcher import Proxy
    from tests.support.proxies import Proxied

NAME = "web1.lab.example"
NODE = f"/puppet/v3/node/{NAME}?environment=production"
AGENT = {"X-Puppet-Version": "7.23.0"}
WARNING = f"-- {NAME} will be presented once with a certificate that it must not trust: one request or run of it "


def probe_lines(proxy: Proxy) -> list[str]:
    """What the probe said so far."""
    return [line for line in proxy.lines if line.startswith("-- probe: ")]


def expect(proxy: Proxy) -> str:
    """The one line of the probe, once it comes."""
    assert eventually(lambda: bool(probe_lines(proxy)))
    (line,) = probe_lines(proxy)
    return line


REFUSED = (
    f"-- probe: {NAME} (127.0.0.1) refused the certificate it must not trust (alert unknown_ca): it verifies its master"
)


def test_an_agent_that_verifies_fails_one_request_and_no_more(lab: Lab, proxied: Proxied, capture: Path) -> None:
    with proxied(lab, puppet_probe_verification=NAME) as proxy:
        agent = lab.agent(NAME, enrolled=True)
        assert _trouble(agent.run()) == []
        assert probe_lines(proxy) == []
        (trouble,) = _trouble(agent.run())
        assert "certificate verify failed: unable to get local issuer certificate" in trouble
        assert expect(proxy) == REFUSED
        assert _trouble(agent.run()) == []
    assert any(line.startswith(WARNING) for line in proxy.lines)
    assert probe_lines(proxy) == [REFUSED]
    (handshake,) = [record for record in records(capture) if isinstance(record, Handshake)]
    assert handshake.leg.probed
    assert handshake.reason == "the agent refused the certificate of the verification probe, as it should"
    assert (handshake.alert, handshake.alert_by) == ("unknown_ca", "agent")
    assert {received.certname for received in lab.master.received} == {NAME}
    assert [run.outcome for run in analyzed(capture).runs] == ["complete", "complete", "complete"]


def _trouble(result: AgentResult) -> list[str]:
    return [line for line in result.log if "certificate verify failed" in line]


def test_a_bootstrap_is_probed_at_its_next_poll(answers: list[Exchange], proxied: Proxied, capture: Path) -> None:
    with Lab(answers=answers) as lab, proxied(lab, puppet_probe_verification=NAME) as proxy:
        agent = lab.agent(NAME, waitforcert=0.05)
        probed = agent.run()
        assert (probed.status, len(_trouble(probed))) == (1, 1)
        assert expect(proxy) == REFUSED
        lab.ca.sign(NAME)
        assert agent.run().status in (0, 2)
    assert not any(record.agent.probed for record in exchanges(capture))
    (run,) = [run for run in analyzed(capture).runs if run.certname]
    assert run.outcome == "complete"


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_an_agent_that_does_not_verify_continues_without_identity(
    version: ssl.TLSVersion, lab: Lab, proxied: Proxied, capture: Path
) -> None:
    place = lab.agent(NAME, enrolled=True).place
    with proxied(lab, puppet_probe_verification=NAME) as proxy:
        careless = Peer(proxy.address, lab.proxy_name, None, (place.certificate, place.key))
        careless.context().maximum_version = version
        statuses = [careless.ask("GET", NODE, headers=AGENT).status for _ in range(3)]
        line = expect(proxy)
    assert line == (
        f"-- probe: {NAME} (127.0.0.1) WENT ON with GET /puppet/v3/node/{NAME} although it must not trust "
        "the presented certificate: "
        "it does not verify its master"
    )
    assert probe_lines(proxy) == [line]
    assert statuses == [200, 403, 200]
    assert [received.certname for received in lab.master.received] == [NAME, None, NAME]
    before, probed, after = records(capture)
    assert isinstance(before, Exchange)
    assert isinstance(probed, Exchange)
    assert isinstance(after, Exchange)
    assert [record.agent.probed for record in (before, probed, after)] == [False, True, False]
    assert before.agent.own_chain == after.agent.own_chain
    assert probed.agent.peer_chain == before.agent.peer_chain
    assert probed.identity
    assert probed.identity.certname is None
    found = [finding for run in analyzed(capture).runs for finding in run.findings if finding.rule == "B03"]
    assert [(finding.severity, finding.seqs) for finding in found] == [(Severity.ERROR, (probed.seq,))]


def test_a_careless_bootstrap_is_reported(answers: list[Exchange], proxied: Proxied, capture: Path) -> None:
    with Lab(answers=answers) as lab, proxied(lab, puppet_probe_verification=NAME) as proxy:
        careless = Peer(proxy.address, lab.proxy_name)
        assert careless.ask("GET", "/puppet-ca/v1/certificate/ca", headers=AGENT).status == 200
        for _ in range(3):
            assert careless.ask("GET", f"/puppet-ca/v1/certificate/{NAME}", headers=AGENT).status == 404
        assert f"WENT ON with GET /puppet-ca/v1/certificate/{NAME}" in expect(proxy)
    third = records(capture)[2]
    assert isinstance(third, Exchange)
    assert third.agent.probed
    (run,) = analyzed(capture).runs
    assert [found.severity for found in run.findings if found.rule == "B03"] == [Severity.ERROR]


def test_others_are_left_alone(lab: Lab, proxied: Proxied, capture: Path) -> None:
    with proxied(lab, puppet_probe_verification="other.lab.example") as proxy:
        agent = lab.agent(NAME, enrolled=True)
        assert [agent.run().status in (0, 2) for _ in range(2)] == [True, True]
    assert [line.partition(" was not probed")[0] for line in probe_lines(proxy)] == ["-- probe: other.lab.example"]
    assert not any(isinstance(record, Handshake) for record in records(capture))

"""Who shows no certificate counts into nobody's run: one behind the same address cannot blame a node."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from inspector.analysis.analyzer import Analyzer
from inspector.model import Exchange, Identity
from inspector.summaries import summary, wording
from tests.support.briefs import verdict_of
from tests.support.conversations import START, WAITS, Agent, analyzed, steps, together

if TYPE_CHECKING:
    from collections.abc import Callable

    from inspector.runs.run import Run

LIVE = Identity("none")


def live(agent: Agent) -> Agent:
    """The same talk, recorded by the proxy: it asks for a certificate, so there was none where none is recorded."""
    agent.records = [
        dataclasses.replace(record, identity=LIVE) if isinstance(record, Exchange) else record
        for record in agent.records
    ]
    return agent


BLAMES: dict[str, Callable[[Agent], Agent]] = {
    "the catalog": lambda a: a.catalog(status=403, own=False),
    "the catalog, got": lambda a: a.catalog(own=False),
    "the catalog, failed": lambda a: a.catalog(status=500, own=False),
    "the plugins": lambda a: a.ask("GET", "/puppet/v3/file_metadatas/plugins?recurse=true", status=403),
    "a file": lambda a: a.ask("GET", "/puppet/v3/file_metadata/modules/m/f", status=403),
    "a report": lambda a: a.ask("PUT", "/puppet/v3/report/a.example", status=403, sent=b'{"status": "failed"}'),
    "the node": lambda a: a.ask("GET", "/puppet/v3/node/a.example", status=403),
    "the facts": lambda a: a.ask("PUT", "/puppet/v3/facts/a.example", status=403),
    "a renewal": lambda a: a.ask("POST", "/puppet-ca/v1/certificate_renewal", status=403),
    "any path": lambda a: a.ask("GET", "/favicon.ico", status=404),
    "nonsense": lambda a: a.ask("BREW", "//..%00/", status=400),
    "nothing answered": lambda a: a.catalog(status=None, own=False),
    "its certificate": lambda a: a.issued("other"),
    "another key": lambda a: a.csr(status=400, text=WAITS),
}
SCRIPTS: dict[str, Callable[[Agent], Agent]] = {
    "a run": lambda a: a.run(),
    "a refresh and a run": lambda a: a.ca(refresh=True).crl(status=304, refresh=True).run(),
    "a bootstrap and its run": lambda a: a.bootstrap(polls=2).run(),
    "a bootstrap of 3.8 and its run": lambda a: a.old_bootstrap(polls=2).run(),
}


def mixed(script: str, blame: str, *, address: str = "192.0.2.1") -> tuple[Agent, Agent]:
    agent = Agent(version="3.8.7" if "3.8" in script else "7.23.0")
    SCRIPTS[script](agent)
    neighbour = Agent(address=address, owner="neighbour", time=START, version=agent.version)
    for record in agent.records:
        neighbour.time = record.time + 0.01  # after every request of the agent's
        BLAMES[blame](neighbour)
    return live(agent), live(neighbour)


def result_of(run: Run, own: dict[int, int]) -> tuple[object, ...]:
    """What is known of a run, with the numbers that its records have without anybody else."""
    found = {
        (finding.rule, finding.severity, finding.message, frozenset(own.get(seq, -seq) for seq in finding.seqs))
        for finding in run.findings
    }
    return run.certname, run.outcome, run.agent_version, [own.get(seq, -seq) for seq in run.seqs], found


OF_A_BOOTSTRAP = {"its certificate", "another key"}
"""What an agent without a certificate asks for too: only after it has shown one, somebody else does."""


@pytest.mark.slow
@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("address", ["192.0.2.1", "192.0.2.9"])
def test_who_shows_no_certificate_changes_nothing_of_an_agents_run(script: str, address: str) -> None:
    for blame in BLAMES.keys() - (OF_A_BOOTSTRAP if script != "a run" else set()):
        agent, neighbour = mixed(script, blame, address=address)
        (alone,) = analyzed(agent).runs
        records = together(agent, neighbour)
        own = {
            record.seq: agent.records.index(dataclasses.replace(record, seq=0)) + 1
            for record in records
            if dataclasses.replace(record, seq=0) in agent.records
        }
        runs = analyzed(agent, neighbour).runs
        (found,) = [run for run in runs if set(run.seqs) & set(own)]
        assert result_of(found, own) == result_of(alone, {seq: seq for seq in alone.seqs}), blame
        if blame not in OF_A_BOOTSTRAP:
            assert all(run.certname is None and run.stranger for run in runs if run is not found), blame


def test_a_request_in_anothers_name_is_a_run_of_its_own_with_its_finding_and_says_that_it_showed_nothing() -> None:
    agent, neighbour = mixed("a run", "the catalog")
    own, other = analyzed(agent, neighbour).runs
    assert (own.certname, own.outcome, own.findings) == ("a.example", "complete", [])
    assert [finding.rule for finding in other.findings if finding.rule == "T03"] == ["T03"]
    assert wording.run_row(other.snapshot())[2] == "192.0.2.1 (no certificate)"
    verdict = verdict_of(other)
    assert verdict
    assert "192.0.2.1 (no certificate) was refused" in verdict.message
    assert wording.run_row(own.snapshot())[2] == "a.example"


def test_a_request_in_anothers_name_is_listed_by_address() -> None:
    (step,) = steps(Analyzer(), together(live(Agent().catalog(status=403, own=False))))
    assert (step.certname, summary.brief_of(step).certname) == (None, None)


def test_of_what_others_recorded_the_names_in_the_paths_count() -> None:
    agent = Agent().node().plugins().catalog(own=False).report()
    agent.records = [
        dataclasses.replace(record, agent=dataclasses.replace(record.agent, peer_chain=(), tls_version=None))
        for record in agent.records
        if isinstance(record, Exchange)
    ]
    (run,) = analyzed(agent).runs
    assert (run.certname, run.outcome, run.stranger) == ("a.example", "complete", False)


def test_a_failed_handshake_after_a_strangers_request_is_that_of_the_agent_that_bootstraps() -> None:
    agent = live(Agent().ca())
    neighbour = live(Agent(owner="neighbour", time=agent.time).catalog(status=403, own=False))
    agent.time = neighbour.time
    agent.refused()
    own, other = analyzed(agent, neighbour).runs
    assert (own.outcome, own.seqs.tolist(), other.seqs.tolist()) == ("refused", [1, 3], [2])

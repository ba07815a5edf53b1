"""What a run knows beside its outcome: by what evidence, how long it waited, what it cost, whose clock is wrong."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import pytest

from inspector.analysis import verdicts
from inspector.model import Exchange, Gap, Handshake
from inspector.runs.examples import altered, ca, catalog, crl, csr, issued, not_issued, plugins, report, talk
from inspector.runs.observations import Bounded, merge
from tests.support.briefs import why
from tests.support.conversations import runs_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inspector.model import Message, Record
    from inspector.runs.run import Run


def only(records: Sequence[Record]) -> Run:
    (run,) = runs_of(records)
    return run


def later(record: Record, seconds: float) -> Record:
    assert isinstance(record, Exchange)
    request, response = record.request, record.response
    assert response
    return dataclasses.replace(record, request=_shifted(request, seconds), response=_shifted(response, seconds))


def _shifted[M: Message](message: M, seconds: float) -> M:
    started, ended = (message.started or 0) + seconds, (message.ended or 0) + seconds
    return dataclasses.replace(message, started=started, ended=ended)


@pytest.mark.parametrize(
    ("version", "generation", "evidence"),
    [
        ("3.8.7", "3", "facts"),
        ("5.5.22", "4-5", "header"),
        ("6.2.0", "6.0-6.3", "header"),
        ("7.23.0", "6.4-7", "header"),
        ("8.10.0", "8", "header"),
        ("8.28.1", "OpenVox 8", "header"),
        ("9.0.0-rc1", "9", "header"),
    ],
)
def test_version_generation_and_evidence(version: str, generation: str, evidence: str) -> None:
    run = only(talk(catalog(), report(), version=version))
    assert (run.agent_version, run.generation, run.agent_version_from) == (version, generation, evidence)


def test_a_catalog_behind_a_redirect_is_judged_by_the_report() -> None:
    """As 7.23.0 follows it, to an address that is not the master's."""
    elsewhere = altered(catalog(status=301), answers={"Location": "https://puppet.example:8140/other"})
    assert only(talk(plugins(), elsewhere, report(result="changed"))).outcome == "complete"
    assert only(talk(plugins(), elsewhere, report(result="failed"))).outcome == "failed"
    assert only(talk(plugins(), elsewhere)).outcome == "failed"


def test_waits_are_named_by_what_the_agent_did() -> None:
    records = talk(ca(), crl(), csr(), not_issued(), csr(status=400), issued(), catalog(), report())
    records[4:] = [later(record, 120) for record in records[4:]]
    records[6:] = [later(record, 3) for record in records[6:]]
    records[7:] = [later(record, 40) for record in records[7:]]
    run = only(records)
    # The sample's exchanges begin a second after each other and take 0.2 s.
    assert {what: round(pause, 1) for what, pause in run.waits.items()} == {
        "certificate": 124.0,
        "facts": 3.8,
        "applying": 40.8,
    }


def test_a_run_without_a_catalog_applies_nothing() -> None:
    run = only(talk(catalog(status=503), report(result="failed")))
    assert set(run.waits) == {"other"}


def test_connections_and_bytes() -> None:
    records = talk(ca(), crl(), csr(), issued(), catalog(), report())
    run = only(records)
    exchanges = [record for record in records if isinstance(record, Exchange)]
    assert run.connections == 5
    assert run.sent == sum(len(exchange.request.body) for exchange in exchanges)
    assert run.received == sum(len(exchange.response.body) for exchange in exchanges if exchange.response)


def test_environment_asked_and_used() -> None:
    asked, conversation = talk(catalog(environment="staging"), report())
    assert isinstance(conversation, Exchange)
    target = conversation.request.target.replace("production", "staging")
    run = only(
        [asked, dataclasses.replace(conversation, request=dataclasses.replace(conversation.request, target=target))]
    )
    assert (run.environment_asked, run.environment) == ("production", "staging")


def test_the_compiler_is_named() -> None:
    asked, conversation = talk(catalog(), report())
    assert isinstance(asked, Exchange)
    assert asked.response
    headers = (*asked.response.headers, ("X-Puppet-Compiler-Name", "compiler2.example"))
    run = only(
        [dataclasses.replace(asked, response=dataclasses.replace(asked.response, headers=headers)), conversation]
    )
    assert run.compiler == "compiler2.example"


def test_a_tools_calls_are_no_agents_run() -> None:
    asked, conversation = talk(catalog(), report())
    assert isinstance(conversation, Exchange)
    curl = dataclasses.replace(conversation.request, headers=(("User-Agent", "curl/7.88.1"), ("Accept", "*/*")))
    agent, tool = runs_of((asked, dataclasses.replace(conversation, request=curl)))
    assert (agent.tool, agent.outcome) == (None, "unfinished")
    assert (tool.tool, tool.generation) == ("curl/7.88.1", None)


def test_rubys_own_client_is_an_agent() -> None:
    """Agents of 4 and 5 download files without X-Puppet-Version."""
    asked, conversation = talk(catalog(), report(), version="3.8.7")
    assert isinstance(conversation, Exchange)
    ruby = dataclasses.replace(conversation.request, headers=(*conversation.request.headers, ("User-Agent", "Ruby")))
    assert only([asked, dataclasses.replace(conversation, request=ruby)]).tool is None


def test_a_handshake_between_two_steps_that_went_on_is_no_refusal() -> None:
    asked, conversation = talk(catalog(), report())
    assert isinstance(asked, Exchange)
    assert isinstance(conversation, Exchange)
    failed = Handshake(asked.agent, asked.ended + 0.1, "the agent left", seq=2)
    run = only([asked, failed, dataclasses.replace(conversation, seq=3)])
    assert (len(run.handshakes), run.outcome) == (1, "complete")


def test_a_node_that_enrols_anew_is_no_error() -> None:
    """The first request was cleaned from the CA before anybody signed it."""
    records = talk(ca(), crl(), csr(), not_issued(), ca(), crl(), csr(key="other"), issued(key="other"))
    findings = {(finding.rule, str(finding.severity)) for run in runs_of(records) for finding in run.findings}
    assert findings == {("B01", "notice"), ("B20", "notice"), ("B45", "notice")}


def test_the_reason_is_a_resources_message() -> None:
    asked, conversation = talk(catalog(), report(result="failed"))
    assert isinstance(conversation, Exchange)
    document = json.loads(conversation.request.body) | {
        "logs": [
            {"level": "err", "message": "Permission denied - /proc/1/environ", "source": "Facter"},
            {
                "level": "err",
                "message": "Could not evaluate\n  backtrace",
                "source": "/Stage[main]/Demo/File[/x]/ensure",
            },
        ]
    }
    request = dataclasses.replace(conversation.request, body=json.dumps(document).encode())
    assert why(only([asked, dataclasses.replace(conversation, request=request)])) == (
        "the report says failed: Could not evaluate"
    )


def test_merged_series_are_in_the_order_of_their_records_and_keep_both_ends() -> None:
    mine, other = (Bounded(Gap(0.0, "", seq=seq) for seq in seqs) for seqs in (range(301, 500), range(1, 151)))
    merge(mine, other)
    assert mine.total == 349
    assert [gap.seq for gap in mine] == [*range(1, 101), *range(400, 500)]


def test_an_injected_fault_stays_with_the_run_that_its_stretch_belongs_to() -> None:
    """An agent that starts again asks for the CA before it says its name: that stretch joins its run."""
    polls = talk(ca(), csr(), not_issued())
    again = talk(ca(status=500), after=30)
    records = [*polls, *again, *talk(csr(), not_issued(), after=60)]
    numbered: list[Any] = [dataclasses.replace(record, seq=seq) for seq, record in enumerate(records, 1)]
    hit = len(polls) + 1
    numbered[hit - 1] = dataclasses.replace(numbered[hit - 1], injected="answered 500")
    run = only(numbered)
    assert hit in run.seqs
    assert run.injected == {hit: "answered 500"}


def test_of_many_injected_faults_the_first_and_the_latest_remain() -> None:
    polls: Sequence[Any] = talk(ca(), csr(), *([not_issued()] * 300))
    run = only([dataclasses.replace(record, seq=seq, injected="delayed by 1 s") for seq, record in enumerate(polls, 1)])
    assert list(run.injected) == [*range(1, 101), *range(203, 303)]


def test_a_catalog_that_was_too_large_to_be_recorded_is_no_failure_of_the_masters() -> None:
    """``puppet_keep_body`` is the proxy's own setting."""
    records = [
        dataclasses.replace(record, response=dataclasses.replace(record.response, body=b"", lost=70_000_000))
        if isinstance(record, Exchange) and record.response and "/catalog/" in record.request.target
        else record
        for record in talk(plugins(), catalog(), report())
    ]
    run = only(records)
    assert (run.outcome, verdicts.verdict(run)) == ("complete", None)

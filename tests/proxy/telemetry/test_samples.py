"""What is measured: of each record and run, and never with captured text in it."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import TYPE_CHECKING

import msgspec
import pytest
from prometheus_client import generate_latest

from inspector.analysis.analyzer import Analyzer
from inspector.model import Exchange, Gap, Handshake, Identity, Leg, OpenRequest, Phase, Present, Response
from inspector.proxy.telemetry.metrics import Metrics
from inspector.proxy.telemetry.samples import (
    Ended,
    Found,
    Lost,
    Refused,
    Sample,
    Sampler,
    Served,
    UnderWayCounts,
    under_way,
)
from inspector.runs.examples import catalog, talk
from inspector.runs.snapshot import RunState
from inspector.summaries import conclusions
from inspector.summaries.under_way import NO_HABIT, Moment
from tests.support.conversations import START, Agent
from tests.support.hostile import HOSTILE, hostile_records

if TYPE_CHECKING:
    from inspector.model import Record


def measured(*records: Record) -> list[Sample]:
    """The samples of these records and of the runs that they are, as they come through a pipe."""
    analyzer, sampler, samples = Analyzer(), Sampler(), []
    for seq, record in enumerate(records, 1):
        step = analyzer.feed(dataclasses.replace(record, seq=seq))
        samples += sampler.step(step)
        for run in step.over:
            samples += sampler.ended(run, conclusions.of_run(run))
    over = {run.number for run in analyzer.runs if run.closed}
    for run in analyzer.finish():
        if run.number not in over:
            samples += sampler.ended(run, conclusions.of_run(run))
    return msgspec.json.decode(msgspec.json.encode(samples), type=list[Sample])


def identified(record: Record) -> Record:
    """A request that the proxy passed on with the agent's identity."""
    identity = Identity("keys", "a.example")
    return dataclasses.replace(record, identity=identity) if isinstance(record, Exchange) else record


def test_a_run() -> None:
    records = Agent(leg="1").run().records
    samples = measured(*(identified(record) for record in records))
    served = [sample for sample in samples if isinstance(sample, Served)]
    assert [(one.route, one.phase, one.status) for one in served if one.route == "catalog"] == [
        ("catalog", "catalog", "200")
    ]
    assert all(0 < one.seconds < 1 for one in served)
    (ended,) = [sample for sample in samples if isinstance(sample, Ended)]
    assert (ended.outcome, ended.certname) == ("complete", "a.example")
    assert ended.seconds > 0


def test_a_rule_counts_once_for_a_run() -> None:
    records = Agent(leg="1").plugins().plugins(404).plugins(404).catalog(status=500).report("failed").records
    analyzer, wanted = Analyzer(), []
    for seq, record in enumerate(records, 1):
        analyzer.feed(dataclasses.replace(record, seq=seq))
    for run in analyzer.finish():
        wanted += sorted({finding.rule for finding in run.findings})
    assert wanted
    assert sorted(one.rule for one in measured(*records) if isinstance(one, Found)) == sorted(wanted)


def test_who_only_claims_a_name_has_none() -> None:
    for agent in (Agent().ca().crl().csr(), Agent(leg="1").catalog(own=False), Agent(leg="1").catalog()):
        (ended,) = [sample for sample in measured(*agent.records) if isinstance(sample, Ended)]
        assert ended.certname == ""  # no identity was used for it


def test_refusals_gaps_and_missing_identities() -> None:
    leg = Leg("x", "master")
    assert measured(Handshake(leg, START, "revoked", "certificate_revoked", "master"))[0] == Refused(
        "master", "certificate_revoked", "master"
    )
    assert measured(Handshake(leg, START, "gone"))[0] == Refused("master", "none", "none")
    assert measured(Gap(START, "full", 7)) == [Lost(7)]
    exchange = Agent(leg="1").catalog().records[0]
    assert isinstance(exchange, Exchange)
    (sample, *_) = measured(dataclasses.replace(exchange, identity=Identity("keys", None, "no key"), master=leg))
    assert isinstance(sample, Served)
    assert sample.identity_missing


@pytest.mark.parametrize("status", [0, 299, 999, 2**60])
def test_a_status_that_is_none_is_no_label(status: int) -> None:
    exchange = Agent(leg="1").catalog().records[0]
    assert isinstance(exchange, Exchange)
    (sample, *_) = measured(dataclasses.replace(exchange, response=Response(status=status)))
    assert isinstance(sample, Served)
    assert sample.status == "other"


def test_captured_text_is_no_label() -> None:
    strangers = (dataclasses.replace(record, identity=None) if isinstance(record, Exchange) else record
                 for record in hostile_records())  # fmt: skip
    samples = measured(*strangers)
    text = msgspec.json.encode(samples).decode()
    with contextlib.closing(Metrics(("127.0.0.1", 0))) as metrics:
        metrics.observe(samples)
        text += generate_latest(metrics.registry).decode()  # what a scraper gets
    assert "puppet_inspector_request" in text
    assert HOSTILE[1:5] not in text
    assert "x1b" not in text
    assert "u001b" not in text


def test_what_is_under_way_is_counted_by_phase() -> None:
    analyzer = Analyzer()
    for seq, record in enumerate(talk(catalog()), 1):
        analyzer.feed(dataclasses.replace(record, seq=seq))
    (run,) = analyzer.runs
    leg = run.snapshot().legs[-1]
    now = run.ended + 1.0
    asked = OpenRequest(leg, now, "PUT", "/puppet/v3/report/node1.example?environment=production")
    other = OpenRequest("stranger", now, "GET", "/\x1b]0;owned\x07")

    def counted(present: Present, at: float = now) -> UnderWayCounts:
        moment, facts = Moment(present, at), run.snapshot()
        doing = moment.under_way([(facts, NO_HABIT)] if moment.state(facts) is RunState.OPEN else [])
        return msgspec.json.decode(msgspec.json.encode(under_way(doing, present)), type=UnderWayCounts)

    quiet = counted(Present("open", now))
    assert (quiet.requests, quiet.runs) == ({}, {Phase.CATALOG: 1})
    busy = counted(Present("open", now, (asked, other), more_requests=3))
    assert (busy.requests, busy.runs) == ({Phase.REPORT: 1, Phase.OTHER: 4}, {Phase.REPORT: 1})
    assert counted(Present("open", now), now + 86_400.0).runs == {}
    assert counted(Present("ended", now)).runs == {}
    assert counted(Present()).runs == {}

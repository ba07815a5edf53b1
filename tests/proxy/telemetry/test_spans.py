"""Runs on their way to a collector: each as one trace, masked, and no more of them wait than there is room for."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import pytest

from inspector.analysis.analyzer import Analyzer
from inspector.model import Exchange
from inspector.privacy import redact
from inspector.proxy.telemetry import spans as spans_module
from inspector.proxy.telemetry.spans import Spans
from inspector.runs.examples import catalog, report, talk
from inspector.summaries import conclusions
from tests.support.conversations import Agent, together
from tests.support.otlp import attributes, spans_of

if TYPE_CHECKING:
    from inspector.model import Record

WORD = "Tr0ub4dor-horse"


class Kept:
    """In place of the sender."""

    def __init__(self, _url: str) -> None:
        self.bodies: list[tuple[bytes, int]] = []
        self.dropped: list[tuple[str, int]] = []

    def put(self, body: bytes, spans: int) -> None:
        self.bodies.append((body, spans))

    def drop(self, reason: str, spans: int) -> None:
        self.dropped.append((reason, spans))


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Spans:
    monkeypatch.setattr(spans_module, "Sender", Kept)
    return Spans("http://127.0.0.1:1/v1/traces", lambda: None)


def follow(made: Spans, *records: Record) -> list[list[Any]]:
    """The spans of each body that is sent for these records."""
    analyzer = Analyzer()
    for seq, record in enumerate(records, 1):
        step = analyzer.feed(dataclasses.replace(record, seq=seq))
        made.step(step)
        for run in step.over:
            made.ended(run, conclusions.of_run(run))
    sender: Any = made.sender
    found = []
    for body, number in sender.bodies:
        found.append(spans_of(body.decode()))
        assert len(found[-1]) == number
    return found


def test_a_run_is_a_trace_and_nothing_of_it_stays(made: Spans) -> None:
    agents = [Agent(f"{name}.example", f"192.0.2.{at}").run(f"u-{name}") for at, name in enumerate("ab", 1)]
    first, second = follow(made, *together(*agents))
    for spans, name in ((first, "a.example"), (second, "b.example")):
        assert len({span.trace_id for span in spans}) == 1
        root = attributes(spans[-1])
        assert (root["puppet.certname"], root["puppet.outcome"]) == (name, "complete")
        records = [attributes(span)["puppet.record"] for span in spans if span.kind == 2]
        assert len(records) == len(agents[0].records)
        assert records == sorted(records)
    assert made._records == {}
    assert made._number == 0


def test_a_secret_that_an_error_quotes_does_not_leave_either(made: Spans) -> None:
    secret = "violet harbour lantern"
    resource = {"type": "User", "title": "app", "parameters": {"password": secret}, "tags": [], "exported": False}
    log = {"level": "err", "message": f"Could not log in to db01 as app with {secret}: refused", "source": "Exec[x]"}
    records = talk(catalog(resources=[resource]), report(result="failed", logs=[log], resource_statuses={}))
    (spans,) = follow(made, *records, *talk(catalog(), after=9000))[:1]
    assert any("as app with MASKED: refused" in str(attributes(span)) for span in spans)
    assert secret not in str([attributes(span) for span in spans])
    assert made._secrets.keys() <= made._records.keys()


def test_a_run_whose_secrets_cannot_be_found_does_not_leave(made: Spans, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_: Exchange) -> set[str]:
        raise KeyError("ours")

    monkeypatch.setattr(redact, "known", fails)
    sender: Any = made.sender
    assert follow(made, *together(Agent("a.example").run("u-1"))) == []
    assert [reason for reason, _ in sender.dropped] == ["not masked"]
    assert (made._records, made._secrets, made._unknown, made._number) == ({}, {}, set(), 0)


def test_what_is_in_bodies_paths_and_headers_does_not_leave(made: Spans) -> None:
    agent = Agent(leg="1").catalog(body=f'{{"message":"{WORD}"}}'.encode(), status=500)
    agent.ask("GET", f"/puppet/v3/file_content/modules/m/{WORD}?{WORD}={WORD}", own=True,
              headers=(("X-Token", WORD), ("User-Agent", WORD), ("Authorization", f"Basic {WORD}")))  # fmt: skip
    agent.report("failed")
    (spans,) = follow(made, *agent.records)
    sender: Any = made.sender
    assert WORD not in sender.bodies[0][0].decode()
    assert any("file_content" in attributes(span).get("url.path", "") for span in spans)
    assert [attributes(span)["http.response.status_code"] for span in spans if span.kind == 2] == [500, 200, 200]
    assert "a.example" in sender.bodies[0][0].decode()


def test_bodies_and_certificates_are_not_kept_while_a_run_lasts(made: Spans) -> None:
    analyzer = Analyzer()
    for record in Agent(leg="1").catalog().records:
        made.step(analyzer.feed(record))
    for records in made._records.values():
        for record in records:
            assert isinstance(record, Exchange)
            assert record.agent.peer_chain == ()
            assert record.request.body == b""
            assert record.request.size > 0


def test_more_than_there_is_room_for_is_dropped_and_counted(made: Spans, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans_module, "WAITING", 3)
    (spans,) = follow(made, *Agent().run().records)
    sender: Any = made.sender
    assert len([span for span in spans if span.kind == 2]) == 3
    assert sender.dropped == [("too many records wait", 1)] * 3


def test_names_are_not_remembered_for_ever(made: Spans, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spans_module, "LEARNED", 5)
    before = made._gate
    agents = [Agent(f"{name}.example", f"192.0.2.{at}").run(f"u-{name}") for at, name in enumerate("ab", 1)]
    for spans in follow(made, *together(*agents)):
        assert attributes(spans[-1])["puppet.certname"] in ("a.example", "b.example")
    assert made._gate is not before

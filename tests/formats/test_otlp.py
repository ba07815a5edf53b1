"""Spans: OpenTelemetry's own definitions parse them, they form a tree for each run, and queries contain no facts."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from inspector.capture.store import Capture
from inspector.explain.master_log.measured import MasterTime, MasterTimes
from inspector.formats import exporting, otlp
from inspector.formats.otlp import ERROR, attributes_of, encoded, span_of
from inspector.model import Exchange, Response
from inspector.summaries import listing
from inspector.summaries.summary import RunBrief
from tests.support.captures import save
from tests.support.conversations import Agent, together
from tests.support.hostile import harmless, hostile_records
from tests.support.odd_records import ODD
from tests.support.otlp import attributes, spans_of
from tests.support.recorded import SAMPLES

if TYPE_CHECKING:
    from pathlib import Path


INTERNAL, SERVER, CLIENT = 1, 2, 3


def exported(path: Path) -> list[Any]:
    return spans_of("".join(exporting.Chosen.by(path, opened=None).lines("otlp")))


def of(*records: Any) -> list[Any]:
    return spans_of("".join(otlp.lines(records)))


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_a_sample_is_a_tree_of_spans_for_each_run(sample: Path) -> None:
    spans = exported(sample)
    found = list(listing.listed(sample))
    runs = {run.number: run for _, run in found if run and run.number}
    assert len({span.span_id for span in spans}) == len(spans)
    by_id = {span.span_id: span for span in spans}
    for span in spans:
        assert span.end_time_unix_nano >= span.start_time_unix_nano > 0
        if span.parent_span_id:
            assert by_id[span.parent_span_id].trace_id == span.trace_id
    roots = [span for span in spans if not span.parent_span_id and span.kind == INTERNAL]
    assert [attributes(span)["puppet.outcome"] for span in roots] == [run.result for run in runs.values()]
    for span, run in zip(roots, runs.values(), strict=True):
        assert span.name == f"puppet run {run.result}"
        assert (span.status.code == ERROR) is (run.result in ("failed", "refused"))
        if run.transaction_uuid:
            assert span.trace_id.hex() == run.transaction_uuid.replace("-", "")
        phases = [attributes(child)["puppet.phase"] for child in spans if child.parent_span_id == span.span_id]
        assert set(phases) >= {str(part.phase) for part in run.spans}
    exchanges = {brief.seq: brief for brief, _ in found if brief.kind == "exchange"}
    servers = {attributes(span)["puppet.record"]: span for span in spans
               if span.kind == SERVER and span.name != "TLS handshake"}  # fmt: skip
    assert list(servers) == list(exchanges)
    for seq, brief in exchanges.items():
        shown = attributes(servers[seq])
        assert shown["http.request.method"] == brief.method
        assert shown.get("http.response.status_code") == brief.status
        assert shown["url.path"] == brief.target.partition("?")[0]
        assert shown["puppet.phase"] == str(brief.phase)
        assert abs(servers[seq].end_time_unix_nano - servers[seq].start_time_unix_nano - brief.duration * 1e9) < 5000
        clients = [span for span in spans if span.parent_span_id == servers[seq].span_id]
        assert [span.kind for span in clients] == ([CLIENT] if brief.master else [])
        for client in clients:
            assert servers[seq].start_time_unix_nano <= client.start_time_unix_nano
            assert client.end_time_unix_nano <= servers[seq].end_time_unix_nano
            failed = (brief.status or 0) >= 400
            assert (client.status.code == ERROR) is failed
            assert ("error.type" in attributes(client)) is failed
    events = [attributes(event) for span in spans for event in span.events]
    wanted = [(found.rule, str(found.severity)) for run in runs.values() for found in run.findings]
    assert sorted((event["puppet.rule"], event["puppet.severity"]) for event in events) == sorted(wanted)


def test_attributes_are_those_of_the_stable_conventions() -> None:
    (first, *_) = [span for span in exported(SAMPLES[1]) if span.kind == SERVER]
    stable = {
        "http.request.method", "http.response.status_code", "http.route", "network.protocol.name",
        "network.protocol.version", "url.path", "url.scheme", "url.query", "server.address", "server.port",
        "client.address", "client.port", "user_agent.original", "error.type",
    }  # fmt: skip
    assert {name for name in attributes(first) if not name.startswith("puppet.")} <= stable
    assert {"http.request.method", "url.path", "url.scheme"} <= set(attributes(first))


def test_a_query_says_nothing_of_the_node() -> None:
    facts = quote('{"values":{"secret":"s3cret"}}')
    target = f"/puppet/v3/catalog/a.example?environment=production&facts={facts}&s3cret&x=s3cret&links=follow&facts=1"
    exchange = Agent(leg="1").catalog().records[0]
    assert isinstance(exchange, Exchange)
    changed = dataclasses.replace(exchange, request=dataclasses.replace(exchange.request, target=target))
    text = "".join(otlp.lines([dataclasses.replace(changed, master=dataclasses.replace(changed.agent, side="master"))]))
    assert "s3cret" not in text
    assert "facts" not in text
    assert text.count("environment=production&links=follow") == 2
    assert otlp.query("facts=x") is None


def test_the_trace_is_that_of_the_transaction(subtests: pytest.Subtests) -> None:
    table = [
        ("39B3D918-309b-5522-d0fc-259a715bc215", True), ("39b3d918309b5522d0fc259a715bc215", True), ("u-1", False),
        (None, False), ("0" * 32, False), ("39b3d918-309b-5522-d0fc-259a715bc21\n", False), ("../" * 9, False),
    ]  # fmt: skip
    for uuid, same in table:
        with subtests.test(uuid=uuid):
            run = RunBrief(number=1, certname="a.example", started=1.0, transaction_uuid=uuid)
            ident = otlp.trace_id(run)
            assert len(bytes.fromhex(ident)) == 16
            assert (ident == (uuid or "").lower().replace("-", "")) is same
            assert ident == otlp.trace_id(run)
            other = RunBrief(number=2, certname="a.example", started=9.0, transaction_uuid=uuid)
            assert (otlp.trace_id(other) == ident) is same


def test_two_runs_that_claim_one_transaction_do_not_share_spans(tmp_path: Path) -> None:
    uuid = "39b3d918-309b-5522-d0fc-259a715bc215"
    twins = [Agent(f"{name}.example", f"192.0.2.{at}", leg="1").run(uuid) for at, name in enumerate("ab", 1)]
    spans = exported(save(tmp_path / "c.sqlite", *together(*twins)))
    assert len({span.trace_id for span in spans}) == 1
    assert len({span.span_id for span in spans}) == len(spans)


def test_an_answer_is_an_error_of_the_server_only_from_500_on() -> None:
    exchange = Agent(leg="1").catalog().records[0]
    assert isinstance(exchange, Exchange)
    for status, failed in ((403, False), (500, True)):
        (span,) = of(dataclasses.replace(exchange, response=Response(status=status)))
        assert (span.status.code == ERROR) is failed
    (span,) = of(dataclasses.replace(exchange, response=None, error="the agent disconnected"))
    assert (span.status.code, span.status.message) == (ERROR, "the agent disconnected")
    assert attributes(span)["error.type"] == "no_response"


def test_odd_methods_are_not_names() -> None:
    exchange = Agent(leg="1").catalog().records[0]
    assert isinstance(exchange, Exchange)
    request = dataclasses.replace(exchange.request, method="BREW", target="/a/b/c")
    (span,) = of(dataclasses.replace(exchange, request=request))
    assert span.name == "HTTP"
    shown = attributes(span)
    assert (shown["http.request.method"], shown["http.request.method_original"]) == ("_OTHER", "BREW")


def test_what_is_hostile_or_odd_is_valid() -> None:
    text = "".join(otlp.lines([*hostile_records(), *ODD]))
    assert harmless(text)
    for span in spans_of(text):
        assert harmless(span.name + span.status.message)
        for value in attributes(span).values():
            assert not isinstance(value, str) or harmless(value)


@pytest.mark.parametrize("started", [float("inf"), float("nan"), 1e308, -1e308])
def test_a_time_that_is_none_is_no_attribute(started: float) -> None:
    """Of a damaged capture, with a log."""
    with Capture.open(SAMPLES[0]) as capture:
        record = next(one for one in capture.records() if isinstance(one, Exchange) and one.master and one.response)
    assert record.response
    odd = dataclasses.replace(record, response=dataclasses.replace(record.response, started=started))
    times = MasterTimes({odd.seq: MasterTime(took=float("inf"), worked=float("inf"), compiled=float("inf"))})
    text = "".join(otlp.lines([odd], times=times))
    assert "null" not in text
    assert len(spans_of(text)) == 2


# -- messages --------------------------------------------------------------------------------------------------


def plain(message: object) -> Any:
    return json.loads(encoded(message))


def test_values_have_their_type_and_those_without_one_are_left_out() -> None:
    found = plain(attributes_of({"a": "text", "b": 2**40, "c": True, "d": ["x", "y"], "e": None, "f": ""}))
    assert found == [
        {"key": "a", "value": {"stringValue": "text"}},
        {"key": "b", "value": {"intValue": str(2**40)}},
        {"key": "c", "value": {"boolValue": True}},
        {"key": "d", "value": {"arrayValue": {"values": [{"stringValue": "x"}, {"stringValue": "y"}]}}},
    ]


def test_texts_are_cleaned() -> None:
    assert "\x1b" not in encoded(attributes_of({"a": "\x1b[2J"}))
    assert "\x1b" not in encoded(span_of("t", "s", "name", 1, 0.0, 1.0, {}, error="\x1b[2J"))


def test_a_span_never_ends_before_it_begins() -> None:
    found = plain(span_of("t", "s", "name", 1, 2.5, 1.0, {}))
    assert (found["startTimeUnixNano"], found["endTimeUnixNano"]) == ("2500000000", "2500000000")
    assert found["status"] == {}


def test_an_error_is_a_status_with_its_description() -> None:
    failed = plain(span_of("t", "s", "name", 1, 0.0, 1.0, {}, error="reset"))
    assert failed["status"] == {"code": ERROR, "message": "reset"}
    within = plain(span_of("t", "s", "name", 1, 0.0, 1.0, {}, "parent", ""))
    assert (within["status"], within["parentSpanId"]) == ({"code": ERROR}, "parent")

"""Trace events: each fits the format, slices of a thread nest, and what a viewer shows is what the capture says."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest

from inspector.formats import exporting, trace
from inspector.summaries import listing
from tests.support import places
from tests.support.captures import save
from tests.support.conversations import Agent, together
from tests.support.hostile import harmless, hostile_records
from tests.support.odd_records import ODD
from tests.support.recorded import SAMPLES

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from inspector.formats.lossless import CaptureItem

SCHEMA = json.loads((places.SCHEMAS / "trace.schema.json").read_text())
VALIDATOR = jsonschema.Draft202012Validator(SCHEMA)


def read(lines: Iterable[str]) -> list[dict[str, Any]]:
    """The events of a trace that fits the schema and in which slices nest."""
    document = json.loads("".join(lines))
    VALIDATOR.validate(document)
    events: list[dict[str, Any]] = document["traceEvents"]
    nested(events)
    return events


def nested(events: list[dict[str, Any]]) -> None:
    """Check that no two slices of a thread overlap without one being within the other, as viewers need it."""
    threads: dict[int, list[tuple[int, int]]] = {}
    for event in events:
        if event["ph"] == "X":
            threads.setdefault(event["tid"], []).append((event["ts"], event["ts"] + event["dur"]))
    for slices in threads.values():
        open_until: list[int] = []
        for began, ended in sorted(slices, key=lambda span: (span[0], -span[1])):
            while open_until and open_until[-1] <= began:
                open_until.pop()
            assert not open_until or ended <= open_until[-1]
            open_until.append(ended)


def of(items: Iterable[CaptureItem]) -> list[dict[str, Any]]:
    return read(trace.lines(items))


def slices(events: list[dict[str, Any]], category: str) -> list[dict[str, Any]]:
    return [event for event in events if event["ph"] == "X" and category in event["cat"].split(",")]


def test_the_schema_refuses_what_the_format_has_not() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    document = json.loads("".join(trace.lines(ODD)))
    for event in document["traceEvents"]:
        for name in event:
            without = {key: value for key, value in event.items() if key != name}
            assert not VALIDATOR.is_valid(document | {"traceEvents": [without]})
        assert not VALIDATOR.is_valid(document | {"traceEvents": [event | {"foreign": 1}]})
        assert not VALIDATOR.is_valid(document | {"traceEvents": [event | {"ts": 0.5}]})


@pytest.mark.slow
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_a_sample_is_shown_as_the_lists_show_it(sample: Path) -> None:
    events = read(exporting.Chosen.by(sample).lines("trace"))
    found = list(listing.listed(sample))
    exchanges = {brief.seq: brief for brief, _ in found if brief.kind == "exchange"}
    runs = {run.number: run for _, run in found if run and run.number}
    requests = slices(events, "request")
    agents = [event for event in requests if "path" in event["args"]]
    assert [event["args"]["record"] for event in agents] == list(exchanges)
    for event in agents:
        brief = exchanges[event["args"]["record"]]
        assert event["args"].get("status") == brief.status
        assert event["cat"] == f"request,{brief.phase}"
        assert abs(event["dur"] - brief.duration * 1e6) < 3
    masters = {event["args"]["record"]: event for event in requests if "path" not in event["args"]}
    assert set(masters) == {brief.seq for brief in exchanges.values() if brief.master}
    # A flow leads from a request's slice to the slice of the same request at the master.
    for start in (event for event in events if event["ph"] == "s"):
        (end,) = [event for event in events if event["ph"] == "f" and event["id"] == start["id"]]
        (agent,) = [event for event in agents if event["args"]["record"] == start["id"]]
        for flow, around in ((start, agent), (end, masters[start["id"]])):
            assert flow["tid"] == around["tid"]
            assert around["ts"] <= flow["ts"] <= around["ts"] + around["dur"]
    assert [event["name"] for event in slices(events, "run")] == [
        f"run {run.number}: {run.ending}" for run in runs.values()
    ]
    assert [event["args"]["outcome"] for event in slices(events, "run")] == [run.result for run in runs.values()]
    phases = [event["name"] for event in slices(events, "phase")]
    assert set(phases) >= {str(span.phase) for run in runs.values() for span in run.spans}
    wanted = sorted((run.number, finding.rule) for run in runs.values() for finding in run.findings)
    shown = [event for event in events if event["ph"] == "i" and event["cat"].startswith("finding,")]
    assert sorted((event["args"]["run"], event["name"].split()[0]) for event in shown) == wanted
    refused = [brief.seq for brief, _ in found if brief.kind == "handshake"]
    assert [event["args"]["record"] for event in slices(events, "handshake")] == refused


def test_agents_are_processes_and_their_connections_threads(tmp_path: Path) -> None:
    agents = [Agent(f"{name}.example", f"192.0.2.{at}", uuid=name, leg="1").run() for at, name in enumerate("ab", 1)]
    capture = save(tmp_path / "c.sqlite", *together(*agents))
    events = read(exporting.Chosen.by(capture).lines("trace"))
    names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert sorted(names.values()) == ["a.example", "b.example", "puppet-inspector"]
    for event in slices(events, "request"):
        assert len({other["pid"] for other in events if other.get("tid") == event["tid"]}) == 1
    assert {names[event["pid"]] for event in slices(events, "run")} == {"a.example", "b.example"}


def test_runs_of_one_name_at_once_are_beside_each_other(tmp_path: Path) -> None:
    twins = [Agent("a.example", f"192.0.2.{at}", uuid=f"u{at}", leg=str(at)).run() for at in (1, 2)]
    events = read(exporting.Chosen.by(save(tmp_path / "c.sqlite", *together(*twins))).lines("trace"))
    assert len({event["tid"] for event in slices(events, "run")}) == len(slices(events, "run")) == 2


def test_hostile_text_is_not_raw_and_hostile_times_are_in_the_calendar() -> None:
    text = "".join(trace.lines([*hostile_records(), *ODD]))
    assert text.isascii()
    assert text.replace("\n", "").isprintable()
    for event in read([text]):
        strings = [event["name"], *event.get("args", {}).values()]
        assert all(harmless(value) for value in strings if isinstance(value, str))


def test_what_was_lost_is_an_instant_of_everything() -> None:
    (gap,) = [event for event in of(ODD) if event["ph"] == "i"]
    assert (gap["s"], gap["args"]["lost"]) == ("g", 12)

"""The same facts on every surface: the JSON of ``runs``, ``list`` and ``show``, the table of runs and the index."""

from __future__ import annotations

import contextlib
import dataclasses
from typing import TYPE_CHECKING, Any

import pytest

from inspector import text
from inspector.analysis.analyzer import Analyzer
from inspector.capture.store import Capture
from inspector.formats import json_output
from inspector.model import Exchange
from inspector.rules import all_rules, fixes
from inspector.summaries import conclusions, index, indexer, listing, wording
from tests.support.briefs import documents
from tests.support.captures import save
from tests.support.conversations import Agent, numbered, steps
from tests.support.json_output import builtins
from tests.support.recorded import SAMPLES, records_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from inspector.model import Record
    from inspector.rules import Rule
    from inspector.summaries.summary import RunBrief


def fields(brief: RunBrief, seqs: Iterable[int]) -> dict[str, Any]:
    """What the JSON of ``runs`` should say by a run of the index."""
    verdict = brief.verdict
    return {
        "run": brief.number,
        "certname": brief.certname,
        "address": brief.address,
        "tool": brief.tool,
        "dialect": brief.dialect,
        "agent_version": brief.agent_version,
        "agent_version_from": brief.agent_version_from,
        "master_version": brief.master_version,
        "compiler": brief.compiler,
        "generation": brief.generation,
        "environment": brief.environment,
        "environment_asked": brief.environment_asked,
        "transaction_uuid": brief.transaction_uuid,
        "outcome": brief.outcome,
        "started": text.utc(brief.started),
        "duration_s": round(brief.duration, 3),
        "connections": brief.connections,
        "bytes": {"sent": brief.sent, "received": brief.received},
        "waits": {what: round(pause, 3) for what, pause in brief.waits.items()},
        "clock_skew": {
            side: {"offset_s": round(offset.seconds, 3), "uncertainty_s": round(offset.uncertainty, 3)}
            if (offset := brief.clocks.get(side)) and offset.known
            else None
            for side in ("agent", "master")
        },
        "phases": [
            {"phase": span.phase, "exchanges": span.exchanges, "duration_s": round(span.duration, 3)}
            for span in brief.spans
        ],
        "seqs": list(seqs),
        "injected": list(brief.injected),
        "findings": [
            {"rule": finding.rule, "severity": finding.severity, "seq": finding.seqs[0] if finding.seqs else None}
            for finding in brief.findings
        ],
        "verdict": verdict
        and {
            "cause": verdict.cause,
            "symptoms": list(verdict.symptoms),
            "besides": list(verdict.besides),
            "certainty": verdict.certainty,
            "since": text.utc(verdict.since),
            "message": verdict.message,
            "meaning": brief.meaning,
            "remedy": brief.fix,
            "steps": builtins(fixes.fields(brief.steps)),
        },
    }


def same_everywhere(records: Sequence[Record], capture: Path) -> int:
    """Compare all surfaces, and return how many runs there are."""
    save(capture, *records)
    with Capture.open(capture) as opened:  # a capture gives its records numbers
        records = list(opened.records())
    analyzer = Analyzer()
    taken = list(steps(analyzer, records))
    runs = analyzer.finish()
    shown = {fields["run"]: fields for fields in documents(runs)}
    rows = [builtins(listing.row(brief, run)) for brief, run in listing.listed(capture)]
    rules_of = {row["seq"]: {sign["rule"] for sign in row["findings"]} for row in rows}
    well = {seq: run.number for run in runs if run.outcome == "complete" for seq in run.seqs}
    indexer.build(capture, index.place(capture))
    found = index.Index.open(index.place(capture))
    assert found is not None
    with contextlib.closing(found):
        indexed = {run.brief.number: run for run in found.runs().values() if run}

    assert set(indexed) == set(shown) == {run.number for run in runs}
    for run in runs:
        number = run.number or 0
        of_json, of_index, own = shown[number], indexed[number], [row for row in rows if row["run"] == number]
        assert of_json == builtins(json_output.run(of_index.brief, of_index.seqs))
        expected = fields(of_index.brief, of_index.seqs)
        assert {key: of_json[key] for key in expected} == expected
        assert of_json["not_analyzed"] == [row["seq"] for row in own if row["not_analyzed"]] == []
        assert wording.run_row(conclusions.of_run(run)) == wording.run_row(of_index.brief)
        assert {row["certname"] for row in own} <= {of_json["certname"], None}
        assert [row["seq"] for row in own] == of_json["seqs"]
        assert len(own) == of_index.brief.records
        totals = {way: sum(row["bytes"][way] for row in own if row["bytes"]) for way in ("sent", "received")}
        assert of_json["bytes"] == totals
        counted = {span["phase"]: span["exchanges"] for span in of_json["phases"]}
        assert counted == {phase: sum(row["phase"] == phase for row in own) for phase in counted}
        assert sum(counted.values()) == len(own)
        for finding in of_index.brief.findings:
            # A finding's evidence in another run that went well is not marked: it would look like a fault.
            assert all(finding.rule in rules_of[seq] for seq in finding.seqs if well.get(seq, number) == number)
    assert len(rows) == len(taken)
    for step, row in zip(taken, rows, strict=True):
        same_record(builtins(json_output.show(step, step.run)), row)
    return len(runs)


def same_record(shown: dict[str, Any], row: dict[str, Any]) -> None:
    assert [shown[name] for name in ("seq", "kind", "time", "phase")] == [
        row[name] for name in ("seq", "kind", "time", "phase")
    ]
    if row["bytes"] is None:
        return
    request, response = shown["request"], shown["response"]
    assert (request["method"], request["target"].partition("?")[0]) == (row["method"], row["path"])
    assert (response and response["status"]) == row["status"]
    assert row["bytes"] == {"sent": request["body_length"], "received": response["body_length"] if response else 0}
    assert round(shown["duration_s"] * 1000, 3) == row["ms"]


@pytest.mark.slow
@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_a_sample(sample: Path, tmp_path: Path) -> None:
    assert same_everywhere(records_of(sample), tmp_path / "c.sqlite")


@pytest.mark.slow
@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.id)
def test_the_examples_of_a_rule(rule: Rule, tmp_path: Path) -> None:
    """All in one capture, where their runs may even interleave."""
    records = [record for example in (*rule.good(), *rule.bad()) for record in example]
    same_everywhere(records, tmp_path / "c.sqlite")


def test_bodies_that_were_not_kept_and_requests_that_are_none_of_puppets_count(tmp_path: Path) -> None:
    """``puppet_keep_body`` leaves bodies out of the capture, not out of its figures."""
    records = numbered(Agent().ask("GET", "/favicon.ico", status=404, body=b"none", own=True).run().records)
    partly = [
        dataclasses.replace(record, request=dataclasses.replace(record.request, lost=1_000_000))
        if isinstance(record, Exchange)
        else record
        for record in records
    ]
    assert same_everywhere(partly, tmp_path / "c.sqlite") == 1
    analyzer = Analyzer()
    list(steps(analyzer, partly))
    (run,) = analyzer.finish()
    retained = [record for record in records if isinstance(record, Exchange)]
    assert run.sent == sum(len(exchange.request.body) for exchange in retained) + 1_000_000 * len(retained)
    assert run.received == sum(len(exchange.response.body) for exchange in retained if exchange.response)

"""What is wrong now, by cause."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from inspector.model import Severity
from inspector.runs.examples import (
    ca,
    crl,
    csr,
    not_issued,
    talk,
    together,
)  # fmt: skip
from inspector.summaries import conclusions
from inspector.summaries.incidents import by_cause
from inspector.summaries.judgement import Judgement, NodeState, of_runs
from inspector.summaries.summary import Conclusion, RunBrief
from tests.support.conversations import SIGNED, runs_of
from tests.support.nodes import refused, uncompiled, well

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inspector.model import Record


def briefs(*conversations: Sequence[Record]) -> list[RunBrief]:
    records = sorted(together(*conversations), key=lambda record: record.time)
    return list(map(conclusions.of_run, runs_of(records)))


def shown(*conversations: Sequence[Record]) -> Judgement:
    return of_runs(briefs(*conversations))


def numbers(found: Judgement) -> tuple[int, int, int]:
    """How many nodes fail, completed with errors, and with warnings."""
    failing, flawed, doubtful = NodeState.FAILING, NodeState.ERRORS, NodeState.WARNINGS
    return len(found.of(failing)), len(found.of(flawed)), len(found.of(doubtful))


def well_runs(found: Judgement) -> list[RunBrief]:
    return [node.latest.run for node in found.of(NodeState.WELL) if node.latest]


def test_nodes_with_the_same_cause_are_one_incident_and_the_most_come_first() -> None:
    found = shown(refused(1), uncompiled(2), uncompiled(3, after=60), well(4))
    assert [(incident.cause, incident.nodes) for incident in by_cause(found).now] == [
        ("S01", ["web2.example", "web3.example"]),
        ("B18", ["db1.example"]),
    ]
    first = by_cause(found).now[0]
    assert "web" not in first.reason.replace("profile::web", "")
    assert first.severity is Severity.ERROR
    assert first.since == min(run.verdict.since for run in first.runs if run.verdict)
    assert first.last == max(run.ended for run in first.runs)
    assert numbers(found) == (3, 0, 0)
    assert [run.name for run in well_runs(found)] == ["web4.example"]


def test_what_a_later_run_does_not_show_any_more_is_over() -> None:
    found = shown(uncompiled(2), uncompiled(3), well(2, after=600))
    (incident,) = by_cause(found).now
    assert incident.nodes == ["web3.example"]
    assert len(incident.runs) == 2
    assert (numbers(found), len(well_runs(found)), by_cause(found).past) == ((1, 0, 0), 1, [])
    found = shown(uncompiled(2), well(2, after=600))
    assert by_cause(found).now == []
    assert [incident.nodes for incident in by_cause(found).past] == [[]]
    assert [incident.over for incident in by_cause(found).past] == [True]
    assert (numbers(found), [run.started > 600 for run in well_runs(found)]) == ((0, 0, 0), [True])


def test_a_run_is_over_since_the_first_that_its_node_completed_after_all_that_showed_the_same() -> None:
    def over(*conversations: Sequence[Record]) -> dict[int, str]:
        return {run.number: since for run in shown(*conversations).runs.values() if (since := run.over_since())}

    assert over(uncompiled(2), well(2, after=600), well(2, after=1200)) == {1: "run 2"}
    assert over(uncompiled(2), uncompiled(3, after=60), well(2, after=600)) == {1: "run 3"}, (
        "of the other node it is not"
    )
    assert over(uncompiled(2), well(2, after=600), uncompiled(2, after=1200)) == {}, "it came back"
    again = uncompiled(2), well(2, after=600), uncompiled(2, after=1200), well(2, after=1800)
    assert over(*again) == {1: "run 4", 3: "run 4"}
    assert over(uncompiled(2), uncompiled(2, after=600)) == {}


def test_what_is_over_is_told_in_the_past() -> None:
    """A node that waited for its signature has one."""
    waiting = talk(ca(), crl(), csr(), not_issued(), certname="web2.example")
    (now,) = by_cause(shown(waiting)).now
    assert now.runs[0].verdict
    assert (now.reason, now.key) == ("the certificate request is waiting to be signed",) * 2
    assert now.runs[0].verdict.message.startswith("web2.example has no certificate yet: ")
    assert ", since " in now.runs[0].verdict.message
    completed = [replace(run, number=2) for run in briefs(well(2, after=7200))]
    (past,) = by_cause(of_runs([*briefs(waiting), *completed])).past
    assert past.runs[0].verdict
    assert (past.reason, past.key) == ("the certificate request was waiting to be signed", now.key)
    assert past.runs[0].verdict.message.startswith(
        "web2.example had no certificate: the certificate request was waiting to be signed, at "
    )


def test_whether_a_node_failed_says_its_latest_run() -> None:
    """The same cause may end one run, and cost another nothing."""
    found = of_runs([replace(run, outcome=outcome) for run, outcome in _twice("failed", "complete")])
    assert [incident.nodes for incident in by_cause(found).now] == [["web2.example"]]
    assert numbers(found) == (0, 1, 0)
    found = of_runs([replace(run, outcome=outcome) for run, outcome in _twice("complete", "failed")])
    assert numbers(found) == (1, 0, 0)
    lighter = [replace(run, outcome=outcome) for run, outcome in _twice("failed", "complete")]
    findings = tuple(dataclasses.replace(finding, severity=Severity.WARNING) for finding in lighter[1].findings)
    verdict = lighter[1].verdict
    assert verdict
    lighter[1] = replace(lighter[1], findings=findings, verdict=replace(verdict, severity=Severity.WARNING))
    found = of_runs(lighter)
    assert by_cause(found).now[0].severity is Severity.ERROR
    assert numbers(found) == (0, 0, 1)


def _twice(*outcomes: str) -> Iterator[tuple[RunBrief, Any]]:
    """Two runs of a node with one cause, and how each is to end."""
    return zip(briefs(uncompiled(2), uncompiled(2, after=600)), outcomes, strict=True)


def test_what_later_runs_could_not_show_is_not_over() -> None:
    unlike = talk(ca(), crl(), csr(status=400, text=SIGNED), not_issued(), certname="web2.example", after=600)
    (incident,) = by_cause(shown(uncompiled(2), unlike)).past
    assert (incident.cause, incident.over) == ("S01", False)
    (incident,) = [
        each for each in by_cause(shown(uncompiled(2), well(2, after=300), unlike)).past if each.cause == "S01"
    ]
    assert incident.over


def test_what_differs_between_nodes_is_not_part_of_the_cause() -> None:
    rows: list[tuple[str, str, str]] = [
        ("a.example", "no catalog for a.example: x on node a.example", "no catalog: x"),
        ("a.example", "handshakes with a.example end", "handshakes with the node end"),
        (
            "a.example",
            "the certificate of a.example (serial 0x00af) is revoked",
            "the certificate of the node is revoked",
        ),
        ("a", "a certificate for a is revoked", "a certificate is revoked"),
        ("a", "no catalog for abc", "no catalog for abc"),
        (
            "a.example",
            "no role (file: /manifests/a.example.pp, line: 2) for a.example.",
            "no role (file: /manifests/a.example.pp, line: 2).",
        ),
        ("a.example", "no 'role for a.example' in a.example", "no 'role for a.example' in the node"),
        ("a.example", "the agent's name 'a.example', or a.example", "the agent's name 'a.example', or the node"),
        ("a.example", "for a.example", ""),
    ]
    for name, reason, expected in rows:

        def failed(name: str, reason: str) -> RunBrief:
            verdict = Conclusion(
                lead="", reason=reason, cause="T05", severity=Severity.ERROR, certainty="certain", since=1.0
            )
            return RunBrief(number=1, certname=name, outcome="refused", verdict=verdict)

        (incident,) = by_cause(of_runs([failed(name, reason)])).now
        assert incident.reason == expected, name


def test_what_is_quoted_keeps_the_name_and_nodes_with_the_same_failure_are_one_incident() -> None:
    def failed(number: int, name: str) -> RunBrief:
        reason = f"no catalog: none for '{name}' in nodes/{name}.pp"
        verdict = Conclusion(
            lead="", reason=reason, cause="S01", severity=Severity.ERROR, certainty="certain", since=1.0
        )
        return RunBrief(number=number, certname=name, started=number, outcome="failed", verdict=verdict)

    (incident,) = by_cause(of_runs([failed(1, "a.example"), failed(2, "b.example")])).now
    assert incident.nodes == ["a.example", "b.example"]
    assert incident.reason == "no catalog: none for 'b.example' in nodes/b.example.pp"

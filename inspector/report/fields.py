"""A report's answer as JSON (docs/json/report.schema.json)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inspector.formats import json_output
from inspector.formats.outgoing import Content
from inspector.rules import fixes
from inspector.summaries.judgement import NodeState
from inspector.text import utc

if TYPE_CHECKING:
    from inspector.report.answers import Answer, Answers
    from inspector.report.copies import LeavingCapture


def fields(answers: Answers, copy: LeavingCapture) -> dict[str, Any]:
    """Return the answer, and the runs that were chosen."""
    judgement = answers.judgement
    return {
        "capture": copy.name,
        "headline": answers.headline,
        "nodes": {
            "failing": len(judgement.of(NodeState.FAILING, NodeState.WAITING)),
            "with_errors": len(judgement.of(NodeState.ERRORS)),
            "warnings": len(judgement.of(NodeState.WARNINGS)),
            "well": len(judgement.of(NodeState.WELL, NodeState.SILENT)),
        },
        "states": json_output.states(judgement),
        "answers": [_answer(answer) for answer in answers.found],
        "past": [_answer(answer) for answer in answers.past],
        "runs": [json_output.run(run, copy.source.seqs(run.number)) for run in copy.runs],
        "withheld": {str(content): copy.withheld[content] for content in Content},
    }


def _answer(answer: Answer) -> dict[str, Any]:
    return {
        "severity": str(answer.severity),
        "sentence": answer.sentence,
        "rule": answer.rule,
        "certainty": answer.certainty or "certain",
        "since": utc(answer.since),
        "last": utc(answer.last),
        "over": answer.over,
        "nodes": list(answer.nodes),
        "run": answer.run.number,
        "runs": answer.runs,
        "seqs": list(answer.seqs),
        "steps": fixes.fields(answer.steps),
    }

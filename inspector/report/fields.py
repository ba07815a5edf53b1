"""A report's answer as JSON (docs/json/report.schema.json)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from inspector.columns import Utc
from inspector.formats import json_output
from inspector.formats.outgoing import Content
from inspector.model import Severity
from inspector.rules import fixes
from inspector.summaries.judgement import NodeState
from inspector.text import utc

if TYPE_CHECKING:
    from inspector.pages.finding_groups import Group
    from inspector.report.answers import Answer, Answers
    from inspector.report.copies import LeavingCapture


class PlainAnswer(msgspec.Struct):
    """What is wrong, and what to do."""

    severity: Severity
    sentence: str
    rule: str | None
    """null: the cause is not visible in the traffic."""
    certainty: str
    """"certain", or why it is not."""
    since: Utc
    last: Utc
    over: bool
    """Each node that showed it completed a run since."""
    nodes: tuple[str, ...]
    run: int
    """The latest run that shows it."""
    runs: int
    """How many runs show it."""
    seqs: tuple[int, ...]
    """The records that show it."""
    steps: list[fixes.PlainStep]
    """What to do, in order."""


class OutsideRuns(msgspec.Struct):
    """What a rule found in requests that are part of no run: those of masters to PuppetDB, and of tools."""

    rule: str
    severity: Severity
    """The worst of them."""
    message: str
    """What was found last."""
    seqs: tuple[int, ...]
    """The records that show that."""
    times: int
    """How many findings of the rule there are."""
    steps: list[fixes.PlainStep]
    """What to do about the last one, in order."""


class NodeCounts(msgspec.Struct):
    """How many nodes are in which state."""

    failing: int
    """Nodes whose latest run did not succeed."""
    with_errors: int
    """Nodes whose latest run succeeded with errors."""
    warnings: int
    """Nodes whose latest run succeeded with warnings."""
    well: int


class PlainReport(msgspec.Struct):
    """The answer of a report, and the runs that it is about."""

    capture: str
    """The file's name; "shared capture" with --shared."""
    headline: str
    """The whole answer in one sentence."""
    nodes: NodeCounts
    states: list[json_output.PlainNode]
    """What each node is now, in the order in which they first ran."""
    answers: list[PlainAnswer]
    """What is wrong now, the worst first."""
    past: list[PlainAnswer]
    """What no node's latest run shows."""
    runs: list[dict[str, Any]]
    """As runs --json prints them (runs.schema.json)."""
    withheld: dict[Content, int]
    """How many values were withheld, by what opens them."""
    outside: list[OutsideRuns]
    """What was found in requests that are part of no run, by rule; none if runs were chosen."""


def fields(answers: Answers, copy: LeavingCapture) -> PlainReport:
    """Return the answer, and the runs that were chosen."""
    judgement = answers.judgement
    return PlainReport(
        capture=copy.name,
        headline=answers.headline,
        nodes=NodeCounts(
            failing=len(judgement.of(NodeState.FAILING, NodeState.WAITING)),
            with_errors=len(judgement.of(NodeState.ERRORS)),
            warnings=len(judgement.of(NodeState.WARNINGS)),
            well=len(judgement.of(NodeState.WELL, NodeState.SILENT)),
        ),
        states=json_output.states(judgement),
        answers=[_answer(answer) for answer in answers.found],
        past=[_answer(answer) for answer in answers.past],
        runs=[json_output.run(run, copy.source.seqs(run.number)) for run in copy.runs],
        withheld={content: copy.withheld[content] for content in Content},
        outside=[_outside(group) for group in copy.apart],
    )


def _outside(group: Group) -> OutsideRuns:
    found, run = group.members[-1].finding, group.members[-1].run
    return OutsideRuns(
        group.key, group.worst, found.message, found.seqs, len(group.members), fixes.fields(run.fix_for(found.rule))
    )


def _answer(answer: Answer) -> PlainAnswer:
    return PlainAnswer(
        severity=answer.severity,
        sentence=answer.sentence,
        rule=answer.rule,
        certainty=answer.certainty or "certain",
        since=utc(answer.since),
        last=utc(answer.last),
        over=answer.over,
        nodes=answer.nodes,
        run=answer.run.number,
        runs=answer.runs,
        seqs=answer.seqs,
        steps=fixes.fields(answer.steps),
    )

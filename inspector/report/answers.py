"""The answer of a report: what failed, since when, on how many nodes, why, and what to do."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from inspector.analysis.analyzer import retrace
from inspector.model import Severity
from inspector.pages import plain
from inspector.rules import fixes, rule_of
from inspector.summaries import incidents
from inspector.summaries.incidents import differences, last_good
from inspector.summaries.judgement import WORDS, Judgement, state_after
from inspector.text import clean, counts, plural

if TYPE_CHECKING:
    from inspector.capture.store import Capture
    from inspector.report.copies import LeavingCapture
    from inspector.rules.fixes import Fix
    from inspector.summaries.incidents import Incident
    from inspector.summaries.summary import RunBrief

EVIDENCE = 2
"""Records of a cause that are quoted in full."""
NAMED = 12
"""Nodes of an answer that are named."""
_CERTAINTIES = {"certain": "", "likely": "likely", "not visible": "the cause is not visible in the traffic"}


@dataclass(frozen=True, slots=True)
class Quoted:
    """A record that is evidence, in full."""

    seq: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Answer:
    """One cause: the runs that show it, and what to do."""

    severity: Severity
    sentence: str
    rule: str | None
    """None: the cause is not visible in the traffic."""
    title: str
    explanation: str
    certainty: str
    """Empty: it is certain."""
    since: float
    last: float
    nodes: tuple[str, ...]
    run: RunBrief
    """The latest run that shows it."""
    runs: int
    steps: Fix
    past: bool
    """Whether no node's latest run shows it."""
    over: bool
    seqs: tuple[int, ...] = ()
    """The records that show it."""
    quoted: tuple[Quoted, ...] = ()
    changed: tuple[tuple[str, str, str], ...] = ()
    """What is different from the node's last run that went well: its name, what it was, what it is."""

    @property
    def state(self) -> str:
        """How the run ended, in the word that all lists have for it; one that completed, with what."""
        return WORDS[state_after(self.run)] if self.run.result == "complete" else self.run.ending

    @property
    def where(self) -> str:
        """The node, or how many nodes there are, in words."""
        if len(self.nodes) == 1:
            return clean(self.nodes[0])
        return plural(len(self.nodes), "node")

    @property
    def named(self) -> list[str]:
        """The names of the first nodes."""
        return [clean(node) for node in self.nodes[:NAMED]]


@dataclass(frozen=True, slots=True)
class Answers:
    """What is wrong, the worst first, and the judgement that it is from."""

    found: tuple[Answer, ...] = ()
    past: tuple[Answer, ...] = ()
    judgement: Judgement = field(default_factory=Judgement)
    latest: float | None = None
    """When the latest run ended."""
    alone: RunBrief | None = None
    """The run that was chosen: what its node is now is not known from it."""

    @property
    def headline(self) -> str:
        """The whole answer in one sentence."""
        if self.alone:
            found = counts(self.alone.findings)
            over = self.alone.over_since()
            how = ", ".join(filter(None, [self.alone.ending, found]))
            return f"Run {self.alone.number}: {how}{f'; over since {over}' if over else ''}"
        text = self.judgement.headline
        return text[:1].upper() + text[1:]

    @property
    def look(self) -> str:
        """How the headline looks: an error, a warning, or well."""
        doubtful = any(found.severity is not Severity.NOTICE for found in self.judgement.findings)
        return "error" if self.judgement.bad else "warning" if doubtful or not self.judgement.nodes else "well"


def answers_of(copy: LeavingCapture) -> Answers:
    """Return the answers for the chosen runs. Raises CaptureError."""
    found = incidents.by_cause(copy.judgement)
    with copy.source.capture() as capture:
        now = tuple(_answer(incident, copy, capture) for incident in found.now)
        past = tuple(_answer(incident, copy, capture) for incident in found.past)
    latest = max((run.ended for run in copy.runs), default=None)
    alone = copy.runs[0] if len(copy.runs) == 1 and not copy.whole else None
    return Answers(now, past, copy.judgement, latest, alone)


def _answer(incident: Incident, copy: LeavingCapture, capture: Capture) -> Answer:
    run = max(incident.runs, key=lambda run: run.started)
    verdict = run.verdict
    finding = run.cause_found
    rule = rule_of(incident.cause) if incident.cause else None
    seqs = finding.seqs if finding else ()
    good = last_good(copy.runs, run)
    certainty = _CERTAINTIES[verdict.certainty] if verdict else ""
    if verdict and verdict.evidence is not None:
        certainty = f"likely: run {verdict.evidence} shows it"
    return Answer(
        incident.severity,
        clean(incident.reason),
        incident.cause,
        rule.title if rule else "",
        run.explanation_of(rule.id) if rule else "",
        certainty,
        incident.since,
        incident.last,
        tuple(incident.nodes or dict.fromkeys(each.name for each in incident.runs)),
        run,
        len(incident.runs),
        run.steps,
        not incident.nodes,
        incident.over,
        seqs,
        tuple(_quoted(seq, run, capture) for seq in seqs[-EVIDENCE:]),
        tuple(differences(run, good)) if good else (),
    )


def _quoted(seq: int, run: RunBrief, capture: Capture) -> Quoted:
    record = capture.record(seq)
    if record is None:
        return Quoted(seq, (f"Record {seq} is not in this capture any more.",))
    (step,) = retrace([record])
    return Quoted(seq, tuple(plain.lines(step, run)))


class FixStep(NamedTuple):
    """A step of a fix, as a page or a ticket shows it."""

    only_if: str
    begins: bool
    """Whether the step before has another condition, or none."""
    text: str
    command: str
    variant: str
    variant_for: str


def fix_steps(steps: Fix) -> list[FixStep]:
    """Return the steps of a fix; a condition stands at the first step that has it."""
    made, condition = [], ""
    for step in steps:
        begins = step.only_if != condition
        condition = step.only_if
        made.append(
            FixStep(condition, begins, fixes.begun(fixes.sentence(step)) or "Run", step.command, step.variant,
                    step.variant_for)
        )  # fmt: skip
    return made

"""What each node's state is now, and why: the one judgement that every surface shows.

Runs in brief and what is under way go in, states come out. Pure: ``now`` is handed in.

A node is judged by its latest run that is over. A run that failed without a visible cause leaves the cause of a failed
run right before it in force: likely it is the same. What belongs to no run of an agent (calls of tools and of other
``puppet`` commands) is counted apart and changes no node's state.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from inspector import regex
from inspector.analysis import verdicts
from inspector.model import NOTHING_OPEN, Severity
from inspector.rules import On, rule_of
from inspector.runs.snapshot import RunState
from inspector.summaries.calls import Calls
from inspector.summaries.summary import REASON
from inspector.summaries.under_way import Habit, Moment, settled
from inspector.text import beginning, clean, counts, plural

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from inspector.model import Finding, Present
    from inspector.summaries.calls import Apart
    from inspector.summaries.summary import Conclusion, RunBrief
    from inspector.summaries.under_way import UnderWay

SILENT_AFTER = 7200.0
"""Seconds without a run after which a node is silent at the earliest."""
MISSED = 3
"""Runs that a node must have missed to be silent."""
USUAL_PAUSE = 86_400.0
"""Seconds between two runs of a node of which only one is known."""


_QUOTES, _PUNCTUATION = ("'", '"', "`"), "(),;:."
_SERIAL = regex.compile(r" \(serial 0x[0-9a-f]+\)")


class NodeState(StrEnum):
    """What a node is now; the worst first."""

    FAILING = "failing"
    """Its latest run did not succeed."""
    ERRORS = "errors"
    """It completed with errors."""
    WAITING = "waiting"
    """Its certificate request waits to be signed."""
    WARNINGS = "warnings"
    SILENT = "silent"
    """Its latest run was well, and it missed several since."""
    OPEN = "open"
    """Its first run is under way, or was when the recording ended."""
    WELL = "well"

    @property
    def bad(self) -> bool:
        """Whether somebody has to do something."""
        return self in (NodeState.FAILING, NodeState.ERRORS, NodeState.WAITING)


WORDS = {
    NodeState.FAILING: "failing",
    NodeState.ERRORS: "completed with errors",
    NodeState.WAITING: "waiting for a signature",
    NodeState.WARNINGS: "completed with warnings",
    NodeState.SILENT: "silent",
    NodeState.OPEN: "under way",
    NodeState.WELL: "completed",
}
"""What lists, pages and the headline call them."""


class Standing(NamedTuple):
    """What a node is after a run that says how it is."""

    state: NodeState
    cause: str | None
    """The rule that explains it; None: nothing is wrong, or the cause is not visible in the traffic."""
    reason: str | None
    """Why, in a sentence."""
    since: float
    """When it got into this state: when its cause was first found."""
    explained: bool = True
    """Whether the run shows why."""

    @classmethod
    def of(cls, run: RunBrief) -> Standing:
        """Return the state of a node after this run alone."""
        verdict, state = run.verdict, state_after(run)
        if verdict is None or state is NodeState.WELL:
            return cls(state, None, None, verdict.since if verdict else run.started, verdict is not None)
        return cls(state, run.cause, verdict.reason, verdict.since, verdict.certainty != "not visible")

    def after(self, before: Standing | None) -> Standing:
        """Return the state after this run, given the state before; ``before`` itself if it explains this failure."""
        if before is None or before.state is not self.state:
            return self
        if self.state is NodeState.FAILING and not self.explained and before.cause is not None:
            return before
        return self._replace(since=min(self.since, before.since)) if before.cause == self.cause else self


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """A run with its state, and the capture that has it. Without a verdict as long as nothing can be said."""

    run: RunBrief
    capture: Path
    standing: Standing | None
    """What its node was after it; None: its outcome may still change, and does not say how the node is."""

    @property
    def conclusive(self) -> bool:
        """Whether its outcome says how the node is."""
        return self.standing is not None


@dataclass(slots=True)
class NodeVerdict:
    """The verdict that several runs of one node, or several calls of a command, share."""

    run: RunBrief
    """The latest of these runs."""
    verdict: Conclusion
    """On that run."""
    severity: Severity
    capture: Path
    """The capture with that run."""
    name: str
    times: int = 1
    superseded_by: int | None = None
    """The number of a later run of the node that ended differently: this verdict is history."""
    superseded_in: Path | None = None
    """The capture with that later run."""

    @property
    def current(self) -> bool:
        """Whether it holds now."""
        return self.superseded_by is None


@dataclass(slots=True)
class Node:
    """What a node is now."""

    name: str
    """Its certname, or the address of one that never showed a name."""
    state: NodeState = NodeState.OPEN
    latest: JudgedRun | None = None
    """Its latest run that is over, which decides; None while its first is under way."""
    run: RunBrief | None = None
    """The run with the cause of its state: ``latest``, or the one before it that failed with a visible cause."""
    standing: Standing | None = None
    """What it was after ``latest``."""
    before: RunBrief | None = None
    """The run before ``latest``."""
    open: JudgedRun | None = None
    """The run that is under way, or was when the recording ended."""
    habit: Habit = field(default_factory=Habit)
    """How long its runs took that are over."""
    runs: list[JudgedRun] = field(default_factory=list)
    """In the order in which they began."""

    @property
    def cause(self) -> str | None:
        """The rule that explains its state; None: nothing is wrong, or the cause is not visible in the traffic."""
        return self.standing.cause if self.standing else None

    @property
    def since(self) -> float:
        """When it got into its state."""
        return self.standing.since if self.standing else math.inf


class Recorded(NamedTuple):
    """What is known of one capture."""

    runs: Sequence[RunBrief]
    capture: Path = Path()
    present: Present = NOTHING_OPEN
    apart: Apart | None = None
    """What is part of no run."""


@dataclass(slots=True)
class Judgement:
    """What captures show of their nodes."""

    nodes: dict[str, Node] = field(default_factory=dict)
    """By name, in the order in which they first ran."""
    verdicts: list[NodeVerdict] = field(default_factory=list)
    """One per node and cause: the worst first, then the latest; history is last."""
    under_way: list[UnderWay[RunBrief]] = field(default_factory=list)
    """What agents do at the moment, the longest first."""
    cut_off: list[UnderWay[RunBrief]] = field(default_factory=list)
    """What agents did when the recording ended."""
    calls: list[Calls] = field(default_factory=list)
    """What belongs to no run of an agent."""
    runs: dict[tuple[Path, int], RunBrief] = field(default_factory=dict)
    """All runs as they were judged, by capture and number; also calls."""
    apart: list[Finding] = field(default_factory=list)
    """What was found in what belongs to no run of an agent."""

    def doing(self, number: int) -> UnderWay[RunBrief] | None:
        """Return what the agent of a run does, or did when the recording ended; None if the run is over."""
        every = (*self.under_way, *self.cut_off)
        return next((each for each in every if each.run and each.run.number == number), None)

    def of(self, *states: NodeState) -> list[Node]:
        """Return the nodes in these states."""
        return [node for node in self.nodes.values() if node.state in states]

    @property
    def bad(self) -> bool:
        """Whether somebody has to do something: a node fails, waits or completed with errors, or a call failed."""
        return any(node.state.bad for node in self.nodes.values()) or any(
            verdict.current and verdict.severity is Severity.ERROR for verdict in self.verdicts
        )

    @property
    def findings(self) -> list[Finding]:
        """What was found in the runs that decide, and in what belongs to no run."""
        deciding = (node.latest.run for node in self.nodes.values() if node.latest)
        return [*(found for run in deciding for found in run.findings), *self.apart]

    @property
    def headline(self) -> str:
        """The whole answer in one line: how many nodes are in which state, and what was found."""
        again = sum(node.open is not None and node.latest is not None for node in self.nodes.values())
        numbers = Counter(node.state for node in self.nodes.values())
        nodes = in_words(numbers, again, going=bool(self.under_way))
        found = counts(self.findings)
        if self.nodes:
            return "; ".join([", ".join(filter(None, [nodes, found])), *map(str, self.calls)])
        beginning = len({each.name for each in self.under_way})
        lead = f"{plural(beginning, 'agent')} under way" if beginning else nodes
        return "; ".join(filter(None, [lead, *map(str, self.calls), found]))


def in_words(numbers: Mapping[NodeState, int], again: int = 0, *, going: bool = True) -> str:
    """Return how many nodes are in which state; ``again``: of how many another run is under way; ``going``: the
    recording goes on."""
    words = WORDS | ({} if going else {NodeState.OPEN: "under way when the recording ended"})
    parts = [f"{plural(number, 'node')} {words[state]}" for state in NodeState if (number := numbers.get(state))]
    if again:
        parts.append(f"{again:,} of them in another run")
    return ", ".join(parts) or "no run of an agent"


def judge(
    recorded: Iterable[Recorded], now: float = math.inf, before: Mapping[str, Standing] = MappingProxyType({})
) -> Judgement:
    """Return what captures show of their nodes; ``now`` is the present, for captures that are being recorded, and
    ``before`` what nodes were, by name, before these runs."""
    recorded = list(recorded)
    result = Judgement()
    located = [(run, each.capture) for each in recorded for run in each.runs]
    located.sort(key=lambda pair: pair[0].started)
    shared = with_shared([run for run, _ in located])
    moments = {each.capture: Moment(each.present, now) for each in recorded}
    last = {run.certname: run.started for run, _ in located if not run.command}
    runs = [
        (_perhaps_an_agents(run, moments[capture], last), capture)
        for run, (_, capture) in zip(shared, located, strict=True)
    ]
    _add_calls(result, [run for run, _ in runs if run.tool or run.command], [each.apart for each in recorded])
    owners = _owners([run for run, _ in runs])
    for name, own in _by_node(runs, owners).items():
        result.nodes[name] = _node(Node(name, standing=before.get(name)), own, moments)
    result.runs = {(capture, run.number): run for run, capture in runs}
    for node in result.nodes.values():
        result.runs |= {(each.capture, each.run.number): each.run for each in node.runs}
    end = max((until(each, now) for each in recorded), default=0.0)
    for node in result.nodes.values():
        if node.state is NodeState.WELL and node.open is None and _silent(node, end):
            node.state = NodeState.SILENT
    _add_verdicts(result, [(run, capture) for run, capture in runs if run.tool or run.command])
    for each in recorded:
        going = [
            (node.open.run, node.habit)
            for node in result.nodes.values()
            if node.open and node.open.capture == each.capture
        ]
        doing = moments[each.capture].under_way(going)
        if each.present.recording == "open":
            result.under_way += doing
        else:
            result.cut_off += doing
    result.nodes = {node.name: node for node in result.nodes.values() if node.runs}
    return result


def _perhaps_an_agents(run: RunBrief, moment: Moment, last: dict[str | None, float]) -> RunBrief:
    """Return a run that looks like a command's as an agent's while it is under way: an agent begins with the same
    requests. ``last`` says when the latest run of each agent began."""
    if not run.command or moment.state(run, next_run=last.get(run.certname, 0.0) >= run.ended) is RunState.OVER:
        return run
    if moment.recording != "open" and not moment.connected(run):
        return run
    return msgspec.structs.replace(run, tool=None, command=None)


def of_runs(runs: Sequence[RunBrief], present: Present = NOTHING_OPEN, now: float = math.inf) -> Judgement:
    """Return what the runs of one capture show."""
    return judge([Recorded(runs, present=present)], now)


def until(recorded: Recorded, now: float) -> float:
    """Return until when a capture is known to have been recorded."""
    ended = max((run.ended for run in recorded.runs), default=0.0)
    apart = recorded.apart.ended if recorded.apart else 0.0
    return max(ended, apart, now if recorded.present.recording == "open" else recorded.present.time)


def silent(last: float, pause: float | None, end: float) -> bool:
    """Return whether a node missed several runs until ``end``: its latest one ended ``last``, and ``pause`` seconds are
    usual from one to the next; None: only one is known."""
    return end - last > max(SILENT_AFTER, MISSED * (USUAL_PAUSE if pause is None else pause))


def _silent(node: Node, end: float) -> bool:
    last = max(each.run.ended for each in node.runs)
    pauses = [later.run.started - earlier.run.started for earlier, later in pairwise(node.runs)]
    if not pauses:
        return silent(last, None, end)
    from statistics import median

    return silent(last, median(pauses), end)


def state_after(run: RunBrief) -> NodeState:
    """The state of a node whose latest run is this one, once it is over."""
    severity = run.verdict.severity if run.verdict and run.verdict.cause else None
    match run.result, severity:
        case "complete", Severity.ERROR:
            return NodeState.ERRORS
        case "complete", Severity.WARNING:
            return NodeState.WARNINGS
        case "complete", _:
            return NodeState.WELL
        case "waiting", _:
            return NodeState.WAITING
    return NodeState.FAILING


def with_shared(runs: Sequence[RunBrief]) -> list[RunBrief]:
    """Return runs, those that show no cause themselves with what other runs of the capture showed of the CA.

    An agent stops before its first answer if it trusts nobody: then it is likely the same.
    """
    shared = [
        (finding, run)
        for run in runs
        for finding in run.findings
        if finding.rule in verdicts.OF_THE_CA and finding.severity is Severity.ERROR and run.number
    ]
    shared.sort(key=lambda each: each[0].since)
    return [_by_others(run, shared) for run in runs] if shared else list(runs)


def _by_others(run: RunBrief, shared: Sequence[tuple[Finding, RunBrief]]) -> RunBrief:
    """A run with what others showed next to its beginning; ``shared`` is in the order of time."""
    if run.verdict is None or run.verdict.certainty != "not visible" or not run.unheard:
        return run
    place = bisect_left(shared, run.started, key=lambda each: each[0].since)
    near = shared[max(0, place - 1) : place + 1]
    finding, other = min(near, key=lambda each: abs(each[0].since - run.started))
    verdict = msgspec.structs.replace(
        run.verdict,
        reason=beginning(clean(finding.message), REASON + 1),
        cause=finding.rule,
        severity=finding.severity,
        certainty="likely",
        since=run.started,
        evidence=other.number,
        advice=(),
    )
    return msgspec.structs.replace(run, verdict=verdict)


def _add_calls(result: Judgement, runs: Sequence[RunBrief], apart: Iterable[Apart | None]) -> None:
    calls: dict[tuple[str, bool], Calls] = {}
    for run in runs:
        name, command = run.command or run.tool or "", run.command is not None
        calls.setdefault((name, command), Calls(name, command)).add(run)
        result.apart += run.findings
    for each in apart:
        for name, found in each.calls.items() if each else ():
            known = calls.setdefault((name, False), Calls(name))
            known.number += found.number
            known.failed += found.failed
            known.statuses.update(found.statuses)
        result.apart += [finding for run in (each.found if each else ()) for finding in run.findings]
    result.calls = list(calls.values())


def _owners(runs: Sequence[RunBrief]) -> dict[int, str]:
    """Return the nodes of runs by their place in ``runs``, which are in the order of time. Of one that showed no name
    it is the node that came up at its address later for the first time, or the only one there if that ran again; else
    the address is its name."""
    came_up: dict[str, list[tuple[float, str]]] = {}
    """The names that were shown at each address, each with when it was shown first; in the order of time."""
    last: dict[str, float] = {}
    """When the latest run began that showed a name at an address."""
    known: set[tuple[str, str]] = set()
    for run in runs:
        if run.certname and not run.stranger and run.address and not run.tool:
            last[run.address] = run.started
            if (run.address, run.certname) not in known:
                known.add((run.address, run.certname))
                came_up.setdefault(run.address, []).append((run.started, run.certname))
    owners: dict[int, str] = {}
    for place, run in enumerate(runs):
        if run.certname and not run.stranger:
            owners[place] = run.certname
            continue
        here = came_up.get(run.address or "", [])
        later = bisect_right(here, run.started, key=lambda each: each[0])
        if later < len(here):
            owners[place] = here[later][1]
        elif len(here) == 1 and last[run.address or ""] > run.started:
            owners[place] = here[0][1]
        else:
            owners[place] = run.address or "-"
    return owners


def _by_node(runs: Sequence[tuple[RunBrief, Path]], owners: dict[int, str]) -> dict[str, list[tuple[RunBrief, Path]]]:
    found: dict[str, list[tuple[RunBrief, Path]]] = {}
    for place, (run, capture) in enumerate(runs):
        if not run.tool and not run.command:
            found.setdefault(owners[place], []).append((run, capture))
    return found


def _node(node: Node, runs: Sequence[tuple[RunBrief, Path]], moments: dict[Path, Moment]) -> Node:
    """A node with its runs."""
    states: list[RunState] = []
    found: list[tuple[RunBrief, Path, bool]] = []
    for place, (run, capture) in enumerate(runs):
        following = place + 1 < len(runs) and runs[-1][0].started >= run.ended
        states.append(moments[capture].state(run, node.habit, next_run=following))
        brief, conclusive = judged(run, states[-1], moments[capture].silence(run))
        found.append((brief, capture, conclusive))
        if states[-1] is RunState.OVER:
            node.habit.add(run)
    for state, (run, capture, conclusive) in zip(states, _with_over(node.name, found), strict=True):
        each = JudgedRun(run, capture, Standing.of(run).after(node.standing) if conclusive else None)
        node.runs.append(each)
        _take(node, each)
        node.open = None if state is RunState.OVER else each
    return node


def _with_over(name: str, found: Sequence[tuple[RunBrief, Path, bool]]) -> list[tuple[RunBrief, Path, bool]]:
    """Return the runs of a node, their captures and whether they are conclusive; a verdict that is over with the first
    run that the node completed after all that show the same."""
    later: dict[tuple[str | None, str], tuple[RunBrief, Path] | None] = {}
    made: list[tuple[RunBrief, Path, bool]] = []
    completed: tuple[RunBrief, Path] | None = None
    for run, capture, conclusive in reversed(found):
        each, verdict = run, run.verdict
        if verdict is not None:
            over = later.setdefault((verdict.cause, without_node(verdict.reason, name)), completed)
            if over is not None:
                where = f"{clean(over[1].name)} " if over[1] != capture else ""
                verdict = msgspec.structs.replace(verdict, over_since=f"{where}run {over[0].number}")
                each = msgspec.structs.replace(run, verdict=verdict)
        made.append((each, capture, conclusive))
        if conclusive and run.outcome == "complete":
            completed = run, capture
    return made[::-1]


def without_node(reason: str, name: str) -> str:
    """Return a reason without what differs between nodes with the same failure: their names are in the list of nodes.

    Only a name that is a word of its own is left out: never part of a path, of another word or of a quotation.
    """
    words: list[str] = []
    quote = ""
    for word in _SERIAL.sub("", reason).split(" "):
        inner = word.strip(_PUNCTUATION)
        if not quote and inner[:1] in _QUOTES:
            quote = inner[0]
        if quote:
            quote = "" if len(inner) > 1 and inner[-1] == quote else quote
            words.append(word)
        elif inner != name:
            words.append(word)
        elif words[-1:] == ["for"] or words[-2:] == ["on", "node"]:
            del words[-1 if words[-1] == "for" else -2 :]
            end = word[word.rindex(name) + len(name) :]
            words.append(words.pop() + end if words else end)
        else:
            words.append(word.replace(name, "the node") if "." in name else word)
    return " ".join(words)


def judged(run: RunBrief, state: RunState, silence: float) -> tuple[RunBrief, bool]:
    """Return a run as far as something can be said of it after these seconds of silence, and whether it says how its
    node is."""
    if state is RunState.OVER:
        return run, True
    # Whether it waits for a signature does not depend on what comes next; of what was cut off nothing comes.
    waits = settled(run, math.inf if state is RunState.CUT_OFF else silence)
    conclusive = waits or (state is RunState.CUT_OFF and run.proved)
    if conclusive:
        return msgspec.structs.replace(run, state=state), True
    # What the whole of a run shows may look different once it is over.
    findings = tuple(found for found in run.findings if rule_of(found.rule).on is not On.RUN_END)
    return msgspec.structs.replace(run, state=state, verdict=None, why=None, findings=findings), False


def _take(node: Node, judged: JudgedRun) -> None:
    """Make the next run decide the state of its node, if its outcome is conclusive."""
    if judged.standing is None:
        return
    node.before = node.latest.run if node.latest else None
    if judged.standing is not node.standing:  # else the run before explains it
        node.run = judged.run
    node.state, node.standing, node.latest = judged.standing.state, judged.standing, judged


def _add_verdicts(result: Judgement, calls: Sequence[tuple[RunBrief, Path]]) -> None:
    found: list[NodeVerdict] = []
    for node in result.nodes.values():
        by_cause: dict[tuple[str | None, str], NodeVerdict] = {}
        for judged in node.runs:
            run, verdict = judged.run, judged.run.verdict
            if verdict is None or not judged.conclusive:
                continue
            key = verdict.cause, run.outcome if verdict.cause is None else ""
            earlier = by_cause.pop(key, None)
            times = earlier.times + 1 if earlier else 1
            by_cause[key] = NodeVerdict(run, verdict, severity(run), judged.capture, node.name, times)
        for each in by_cause.values():
            if node.latest and each.run is not node.latest.run and each.run is not node.run:
                each.superseded_by, each.superseded_in = node.latest.run.number, node.latest.capture
        found += by_cause.values()
    for run, capture in calls:
        if run.verdict is not None:
            found.append(NodeVerdict(run, run.verdict, severity(run), capture, run.name))
    found.sort(key=lambda each: -each.run.started)
    found.sort(key=lambda each: (not each.current, -each.severity.rank, each.run.outcome == "complete"))
    result.verdicts = found


def severity(run: RunBrief) -> Severity:
    """Return how bad the verdict on a run is."""
    verdict = run.verdict
    if verdict is None or (verdict.cause is None and verdict.certainty == "likely"):
        return Severity.NOTICE  # likely a command that somebody ran
    if run.outcome != "complete":
        return Severity.ERROR
    return verdict.severity or Severity.WARNING

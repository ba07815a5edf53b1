"""A survey of captures: which nodes a newer version's removals and changed defaults concern, and what shows it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from inspector.analysis.analyzer import Analyzer
from inspector.explain.readiness.changes import for_version
from inspector.privacy import redact
from inspector.rules import On, rule_of
from inspector.rules.words import major
from inspector.runs.history import Ledger

if TYPE_CHECKING:
    from collections.abc import Iterable

    from inspector.analysis.analyzer import Step
    from inspector.explain.readiness.changes import Change
    from inspector.model import Record
    from inspector.runs.run import Run


@dataclass(slots=True)
class Evidence:
    """What shows that a change concerns a node."""

    node: str
    text: str
    """What its latest record shows."""
    capture: str
    record: int
    """The latest record."""
    time: float
    """When that record ended."""
    records: int = 1
    """How many records show it."""
    version: str = ""
    """The version of the agent or the master that the change comes with, at the latest record; empty if unknown."""

    def merge(self, other: Evidence) -> None:
        """Add another evidence of the same node."""
        if other.time >= self.time:
            self.text, self.capture, self.record, self.time = other.text, other.capture, other.record, other.time
            self.version = other.version or self.version
        self.records += other.records


@dataclass(slots=True)
class Survey:
    """What captures show about an upgrade to a version."""

    target: int
    captures: list[str] = field(default_factory=list)
    agents: dict[str, str] = field(default_factory=dict)
    """The agents, each with its latest version; empty if that is not known."""
    ended: dict[str, float] = field(default_factory=dict)
    """When the run ended that showed an agent's version."""
    masters: dict[str, None] = field(default_factory=dict)
    """The versions of the masters."""
    found: dict[str, dict[str, Evidence]] = field(default_factory=dict)
    """By the key of a change: the evidence of each node that showed what it is about."""
    settled: set[str] = field(default_factory=set)
    """The keys of changes that a node met and got on with."""
    unanalyzed: int = 0
    """Records that were not analyzed."""

    @property
    def changes(self) -> tuple[Change, ...]:
        """The changes that the survey looks for."""
        return for_version(self.target)

    @property
    def affected(self) -> list[Change]:
        """The changes that concern a node."""
        return [change for change in self.changes if self.evidence(change)]

    @property
    def past(self) -> list[Change]:
        """The changes that were recorded, and concern no node: their versions have it, or they got on with it."""
        recorded = self.found.keys() | self.settled
        return [change for change in self.changes if change.key in recorded and not self.evidence(change)]

    def evidence(self, change: Change) -> list[Evidence]:
        """Return the evidence of the nodes that a change concerns, the latest first."""
        concerned = [each for each in self.found.get(change.key, {}).values() if self._concerned(change, each)]
        return sorted(concerned, key=lambda each: (-each.time, each.node))

    def _concerned(self, change: Change, evidence: Evidence) -> bool:
        version = evidence.version
        if change.comes_with == "agent":
            version = self.agents.get(evidence.node) or version
        return change.concerns(major(version), self.target)

    def add(self, capture: str, records: Iterable[Record]) -> None:
        """Add the records of a capture."""
        self.captures.append(capture)
        _Reading(self, capture).take(records)


class _Reading:
    """The reading of one capture: the name of a node may become known after what shows something of it."""

    def __init__(self, survey: Survey, capture: str) -> None:
        self._survey = survey
        self._capture = capture
        self._by_rule = {rule: change for change in survey.changes for rule in change.rules}
        self._signs = [(change, change.sign) for change in survey.changes if change.sign]
        self._open: dict[Run, dict[str, Evidence]] = {}
        """The evidence of runs of which the certname is not known yet, by change."""
        self._names: dict[str, set[str]] = {}
        """The certnames of the agents at each address."""

    def take(self, records: Iterable[Record]) -> None:
        analyzer = Analyzer((rule_of(ident) for ident in self._by_rule), ledger=Ledger())
        for step in analyzer.steps(records):
            self._survey.unanalyzed += bool(step.unanalyzed)
            self._look(step)
            for run in step.over:
                self._end(run)
        for run in analyzer.finish():
            self._end(run)
        for run in list(self._open):  # calls of tools, which are no runs
            self._settle(run)
        for address, names in self._names.items():
            if len(names) == 1 and address in self._survey.agents:
                self._rename(address, *names)

    def _rename(self, address: str, node: str) -> None:
        """Give a node what an agent at its address did that did not get as far as its certname."""
        self._survey.agents.pop(address)
        for nodes in self._survey.found.values():
            if evidence := nodes.pop(address, None):
                self._merge(nodes, node, evidence)

    def _look(self, step: Step) -> None:
        for change, sign in self._signs:
            if text := sign(step):
                self._add(change, step.run, step.certname, redact.text(text), step.record)
        self._survey.settled.update(
            change.key for change in self._survey.changes if change.settled and change.settled(step)
        )
        for finding in step.findings:
            self._add(self._by_rule[finding.rule], step.run, step.certname, finding.message, step.record)

    def _add(self, change: Change, run: Run | None, certname: str | None, text: str, record: Record) -> None:
        found = Evidence("", text, self._capture, record.seq, record.ended, version=_version(change, run))
        if certname is None and run is not None:
            noted = self._open.setdefault(run, {})
            if change.key in noted:
                noted[change.key].merge(found)
            else:
                noted[change.key] = found
        else:
            self._keep(change.key, certname or "unknown", found)

    def _end(self, run: Run) -> None:
        """Take what the rules for whole runs found, and who it was."""
        name = _name(run)
        for finding in run.findings:
            if rule_of(finding.rule).on is On.RUN_END:
                seq = finding.seqs[-1] if finding.seqs else run.seqs[-1]
                change = self._by_rule[finding.rule]
                version = _version(change, run)
                self._keep(change.key, name, Evidence("", finding.message, self._capture, seq, run.ended, 1, version))
        if run.number is not None and run.tool is None:
            names = self._names.setdefault(run.address or "", set())
            if run.certname:
                names.add(name)
            self._survey.agents.setdefault(name, "")
            if run.agent_version and run.ended >= self._survey.ended.get(name, 0.0):
                self._survey.agents[name], self._survey.ended[name] = run.agent_version, run.ended
        self._survey.masters.update(dict.fromkeys(run.master_versions))
        self._settle(run)

    def _settle(self, run: Run) -> None:
        for key, found in self._open.pop(run, {}).items():
            self._keep(key, _name(run), found)

    def _keep(self, key: str, node: str, found: Evidence) -> None:
        self._merge(self._survey.found.setdefault(key, {}), node, found)

    def _merge(self, nodes: dict[str, Evidence], node: str, found: Evidence) -> None:
        found.node = node
        if node in nodes:
            nodes[node].merge(found)
        else:
            nodes[node] = found


def _name(run: Run) -> str:
    """Return a node's certname, whatever calls with it; a program with its address if there is none."""
    while run.joined is not None:
        run = run.joined
    tool = f" ({run.tool})" if run.tool else ""
    return run.certname or f"{run.address or 'unknown'}{tool}"


def _version(change: Change, run: Run | None) -> str:
    """Return the version that decides whether a change concerns the node of a run; empty if it is not known."""
    if run is None or change.comes_with is None:
        return ""
    return (run.agent_version if change.comes_with == "agent" else run.master_version) or ""

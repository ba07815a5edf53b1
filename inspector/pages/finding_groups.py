"""All findings of a capture in groups: the lines of the findings' list, and what they say."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Literal

from rich.text import Text

from inspector.analysis.verdicts import effects
from inspector.pages import palette
from inspector.rules import rule_of
from inspector.text import clean, counts, local_second, plural

if TYPE_CHECKING:
    from collections.abc import Iterable

    from inspector.model import Finding, Severity
    from inspector.rules import Rule
    from inspector.summaries.summary import RunBrief

type Order = Literal["rule", "agent", "severity"]
type GroupLine = Group | Member
ORDERS: tuple[Order, ...] = ("rule", "agent", "severity")


@dataclass(slots=True, eq=False)
class Member:
    """One finding of a run, or of requests that are part of none."""

    group: Group
    run: RunBrief
    finding: Finding

    @property
    def ident(self) -> tuple[str, int, str, str]:
        """A key that no other one has."""
        number = self.run.number or -min(self.finding.seqs, default=0)
        return self.group.key, number, self.finding.rule, self.finding.message

    @property
    def rule(self) -> Rule:
        return rule_of(self.finding.rule)

    @property
    def follows(self) -> str:
        """The finding of its run that it follows from; empty: none."""
        mine = self.finding.rule
        if mine not in self.run.symptoms:
            return ""
        causes = [finding.rule for finding in self.run.findings if mine in effects(finding.rule)]
        first = dict.fromkeys(rule for rule in causes if rule not in self.run.symptoms)
        return f"follows from {', '.join(first or dict.fromkeys(causes))}"

    @property
    def plain(self) -> str:
        """The searched text, in lower case."""
        return f"{self.finding.rule} {clean(self.run.name)} {clean(self.finding.message)}".casefold()

    # -- cells

    @property
    def mark(self) -> str:
        return ""

    @property
    def level(self) -> Text:
        return self._dimmed(palette.severity(self.finding.severity))

    @property
    def name(self) -> str:
        return self.finding.rule

    @property
    def where(self) -> str:
        return f"run {self.run.label}" if self.run.number else "no run"

    @property
    def who(self) -> Text:
        return self._dimmed(Text(clean(self.run.name)))

    @property
    def what(self) -> Text:
        prefix = f"{self.follows}: " if self.follows else ""
        return self._dimmed(Text(prefix + clean(self.finding.message)))

    @property
    def since(self) -> str:
        return _moment(self.finding.since)

    @property
    def last(self) -> str:
        return ""

    def _dimmed(self, text: Text) -> Text:
        if self.finding.rule in self.run.symptoms:
            text.stylize("dim")
        return text


@dataclass(eq=False)
class Group:
    """The findings of one rule, agent or severity."""

    key: str
    order: Order
    members: list[Member] = field(default_factory=list)
    unfolded: bool = False

    @property
    def group(self) -> Group:
        return self

    @property
    def ident(self) -> str:
        """A key that no other one has."""
        return self.key

    @property
    def rule(self) -> Rule | None:
        """The rule of all of them."""
        return rule_of(self.key) if self.order == "rule" else None

    @cached_property
    def worst(self) -> Severity:
        return max((member.finding.severity for member in self.members), key=lambda severity: severity.rank)

    @cached_property
    def symptomatic(self) -> bool:
        """Whether all of them follow from another finding."""
        return all(member.finding.rule in member.run.symptoms for member in self.members)

    @cached_property
    def title(self) -> str:
        """The value that they have in common."""
        return self.rule.title if self.rule else clean(self.key)

    @cached_property
    def counted(self) -> str:
        """Their number by severity, and their rules."""
        rules = sorted({member.finding.rule for member in self.members})
        return f"{counts([member.finding for member in self.members])}: {' '.join(rules)}"

    # -- cells

    @property
    def mark(self) -> str:
        return "▼" if self.unfolded else "▶"

    @property
    def level(self) -> Text:
        return palette.severity(self.worst)

    @property
    def name(self) -> str:
        return self.key if self.order == "rule" else ""

    @cached_property
    def where(self) -> str:
        runs = {member.run.number for member in self.members} - {0}
        return plural(len(runs), "run") if runs else "no run"

    @cached_property
    def who(self) -> Text:
        names = {member.run.name for member in self.members if member.run.number}
        return Text(plural(len(names), "agent") if names else "")

    @property
    def what(self) -> Text:
        if self.order == "severity":
            return Text(self.counted)
        return Text.assemble((self.title, "bold"), "" if self.rule else f": {self.counted}")

    @cached_property
    def since(self) -> str:
        return _moment(min((member.finding.since for member in self.members if member.finding.since), default=0.0))

    @cached_property
    def last(self) -> str:
        return _moment(max(member.finding.since for member in self.members))


def _moment(time: float) -> str:
    return local_second(time) if time else "-"


def grouped(runs: Iterable[RunBrief], order: Order, least: Severity) -> list[Group]:
    """Findings of at least this severity, in groups: worst first, causes before consequences, large groups before small
    ones."""
    groups: dict[str, Group] = {}
    for run in runs:
        for finding in sorted(run.findings, key=lambda finding: (-finding.severity.rank, finding.rule in run.symptoms)):
            if finding.severity.rank < least.rank:
                continue
            key = {"rule": finding.rule, "agent": run.name, "severity": str(finding.severity)}[order]
            group = groups.get(key)
            if group is None:
                group = groups[key] = Group(key, order)
            group.members.append(Member(group, run, finding))
    return sorted(
        groups.values(), key=lambda group: (-group.worst.rank, group.symptomatic, -len(group.members), group.key)
    )


def shown(groups: Iterable[Group], unfolded: set[str]) -> list[GroupLine]:
    """The lines of groups, and of the findings in unfolded groups."""
    lines: list[GroupLine] = []
    for group in groups:
        group.unfolded = group.key in unfolded
        lines.append(group)
        if group.unfolded:
            lines += group.members
    return lines

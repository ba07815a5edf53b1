"""Rules that raise: what is told without them must be what is told with them."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from inspector.analysis.analyzer import Analyzer
from inspector.rules import all_rules

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from inspector.model import Record
    from inspector.rules import Rule
    from inspector.rules.cases import Case, Statement


def costs_only_itself(rule: Rule, records: Iterable[Record]) -> bool:
    """Whether all runs are told, with all findings of the other rules, when one raises whenever it is asked."""

    def look(case: Case) -> Iterator[Statement]:
        raise ZeroDivisionError(f"{rule.id} of {case}")
        yield

    records = tuple(records)
    others = [other for other in all_rules() if other.id != rule.id]
    return _outcomes([dataclasses.replace(rule, function=look), *others], records) == _outcomes(others, records)


def _outcomes(rules: list[Rule], records: tuple[Record, ...]) -> list[tuple[Any, ...]]:
    analyzer = Analyzer(rules)
    for record in records:
        analyzer.feed(record)
    return [
        (run.number, run.certname, run.outcome, run.phase, run.seqs, sorted(map(str, run.findings)))
        for run in analyzer.finish()
    ]

"""The examples of a rule: what it must find, and what it must not."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.analysis.analyzer import Analyzer

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inspector.model import Record
    from inspector.rules import Rule


def problems(rule: Rule) -> Iterator[str]:
    """Yield what a rule does to its own examples that it should not, as clauses."""
    for kind, examples in (("good", rule.good), ("bad", rule.bad)):
        try:
            conversations = list(examples())
        except Exception as error:  # noqa: BLE001 - somebody else's code
            yield f"its {kind} examples cannot be made: {error!r}"
            continue
        if not conversations:
            yield f"it has no {kind} example"
        for number, conversation in enumerate(conversations, 1):
            for problem in _problems(rule, conversation, wanted=kind == "bad"):
                yield f"{kind} example {number}: {problem}"


def _problems(rule: Rule, conversation: Sequence[Record], *, wanted: bool) -> Iterator[str]:
    analyzer = Analyzer((rule,))
    try:
        steps = [analyzer.feed(record) for record in conversation]
    except Exception as error:  # noqa: BLE001 - it is not made of records
        yield f"it is no conversation: {error!r}"
        return
    # What is part of no run has the findings of its records only.
    found = [finding for run in analyzer.finish() for finding in run.findings]
    found += [finding for step in steps if step.run and step.run.number is None for finding in step.findings]
    if analyzer.failed:
        yield from analyzer.failed.values()
    elif wanted and not found:
        yield "it finds nothing"
    elif not wanted and found:
        yield f"it finds: {found[0].message}"

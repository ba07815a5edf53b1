"""Every rule by its own examples, through the real analyzer."""

from __future__ import annotations

import dataclasses
import itertools
import re
from functools import cache
from typing import TYPE_CHECKING

import pytest

from inspector import rules
from inspector.analysis.analyzer import Analyzer
from inspector.analysis.verdicts import BY_NATURE, effects
from inspector.capture.store import Capture
from inspector.model import Connection, Exchange
from inspector.rules import all_rules, rule_of
from inspector.rules.fixes import plain
from inspector.rules.kit import *
from tests.support import conversations
from tests.support.conversations import WAITS, Agent, all_findings, steps

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from inspector.model import Finding, Leg
    from inspector.rules import Rule, RuleFunction

RULES = {rule.id: rule for rule in all_rules()}


@cache
def examples(kind: str) -> list[tuple[Rule, str, Sequence[Record], list[Finding]]]:
    """Each example of each rule with a name for it, and what all rules find in it."""
    return [
        (rule, f"{rule.id}, {kind} example {number}", conversation, all_findings(conversation))
        for rule in RULES.values()
        for number, conversation in enumerate(rule.good() if kind == "good" else rule.bad(), 1)
    ]


def test_a_rule_says_what_why_and_what_to_do() -> None:
    assert list(RULES) == sorted(RULES)
    for rule in RULES.values():
        assert re.fullmatch(r"[BDTRFSP]\d\d", rule.id)
        for text in (rule.title, rule.explanation, plain(rule.fix_for(None)), rule.source):
            assert len(text) > 10, rule.id
        assert not rule.title.endswith("."), rule.id
        assert rule_of(rule.id) is rule
    assert {rule.id for kind in ("good", "bad") for rule, *_ in examples(kind)} == set(RULES)


def test_a_good_example_is_clean_of_every_rule() -> None:
    wrong = []
    for _, name, conversation, found in examples("good"):
        old = any("5.5" in (record.request.header("x-puppet-version") or "") for record in conversation
                  if isinstance(record, Exchange))  # fmt: skip
        allowed = {("B03", Severity.WARNING)} if old else set()
        worse = {(finding.rule, finding.severity) for finding in found if finding.severity is not Severity.NOTICE}
        if worse - allowed:
            wrong.append((name, worse - allowed))
    assert wrong == []


def test_a_good_example_says_nothing_of_the_kind_a_bad_one_says() -> None:
    wrong = [
        name
        for rule, name, _, found in examples("good")
        if rule.severity in {finding.severity for finding in found if finding.rule == rule.id}
    ]
    assert wrong == []


def test_a_bad_example_raises_its_rule_and_what_is_related_to_it() -> None:
    wrong = []
    for rule, name, _, found in examples("bad"):
        ids = {finding.rule for finding in found}
        related = {other for other in ids if other in effects(rule.id) or rule.id in effects(other)}
        if rule.id not in ids or ids - related - BY_NATURE - {rule.id, *rule.also}:
            wrong.append((name, ids))
    assert wrong == []


def test_the_evidence_of_a_finding_is_in_the_conversation() -> None:
    wrong = [
        (name, finding)
        for _, name, conversation, found in examples("bad")
        for finding in found
        if not finding.message or not set() < set(finding.seqs) <= {record.seq for record in conversation}
    ]
    assert wrong == []


def crowd() -> Sequence[Record]:
    first = Agent("a.example").bootstrap(2).run()
    return conversations.together(
        first, Agent("a.example", "192.0.2.2", owner="b").ca().crl().csr(status=400, text=WAITS).refused()
    )


def apart(record: Record, place: int) -> Record:
    """A record of a conversation that shares no connection with another conversation's."""
    changed = {name: dataclasses.replace(leg, id=f"{place}-{leg.id}") for name, leg in legs_of(record).items()}
    return dataclasses.replace(record, **changed)  # type: ignore[arg-type]


def legs_of(record: Record) -> dict[str, Leg]:
    return {name: leg for name in ("agent", "master", "leg") if (leg := getattr(record, name, None))}


@pytest.mark.slow
def test_live_and_offline_say_the_same(tmp_path: Path) -> None:
    conversations = [crowd(), *(conversation for _, _, conversation, _ in examples("bad"))]
    live = []
    with Capture.create(tmp_path / "c.sqlite") as capture:
        for place, conversation in enumerate(conversations):
            analyzer = Analyzer()
            for record in (apart(record, place) for record in conversation):
                for leg in legs_of(record).values():
                    capture.note(Connection(leg))
                analyzer.feed(capture.append(record))
            live.append([(run.findings, run.seqs) for run in analyzer.finish()])
    with Capture.open(tmp_path / "c.sqlite") as capture:
        again = capture.records()
        offline = []
        for conversation in conversations:
            analyzer = Analyzer()
            for record in itertools.islice(again, len(conversation)):
                assert analyzer.feed(record).trouble == []
            offline.append([(run.findings, run.seqs) for run in analyzer.finish()])
    assert [place for place, found in enumerate(live) if found != offline[place]] == []


# -- what the examples do not show ---------------------------------------------------------------------


@pytest.mark.parametrize("version", ["6.29.0", "7.23.0", "8.10.0"])
def test_what_a_healthy_agent_does_is_no_warning_its_first_run_included(version: str) -> None:
    found = all_findings(conversations.together(Agent(version=version).bootstrap(3).run().wait(1800).run("u-2")))
    bad = [finding for finding in found
           if finding.severity is not Severity.NOTICE and finding.rule != "S16"]  # fmt: skip
    assert bad == []


@pytest.mark.parametrize("version", ["3.8.7", "5.5.22"])
def test_a_healthy_old_agent_is_a_warning_only_for_what_it_never_verifies(version: str) -> None:
    found = all_findings(conversations.together(Agent(version=version).old_bootstrap(4).run().wait(1800).run("u-2")))
    bad = [finding for finding in found
           if finding.severity is not Severity.NOTICE]  # fmt: skip
    assert {(finding.rule, finding.severity) for finding in bad} == {("B03", Severity.WARNING)}


def test_the_same_statement_again_adds_proof_not_findings() -> None:
    polls = [part for _ in range(5) for part in (csr(status=400, text=WAITS), not_issued())]
    (found,) = [
        finding for finding in all_findings(talk(ca(), crl(), csr(), not_issued(), *polls)) if finding.rule == "B17"
    ]
    assert found.seqs == (5, 7, 9, 11, 13)


def test_a_rule_about_a_whole_run_is_asked_when_a_later_run_shows_that_it_is_over() -> None:
    killed = talk(ca(), csr(), issued(), catalog())
    later = talk(catalog(uuid="a-2"), report(uuid="a-2"))
    analyzer = Analyzer()
    moved = [*killed, *(_later(record, 4) for record in later)]
    for _ in steps(analyzer, moved):
        pass
    first, second = analyzer.runs
    assert (first.closed, second.closed) == (True, True)
    assert "B07" in {finding.rule for finding in first.findings}
    analyzer.finish()
    assert [finding.rule for finding in first.findings].count("B07") == 1
    assert second.findings == []


def _later(record: Record, by: int) -> Record:
    assert isinstance(record, Exchange)
    request = dataclasses.replace(record.request, started=(record.request.started or 0) + 60 * by)
    leg = dataclasses.replace(record.agent, id="later")
    return dataclasses.replace(record, seq=record.seq + by, request=request, agent=leg)


def test_a_rule_is_checked_when_its_case_says_unless_it_says_another_time() -> None:
    def declared(function: RuleFunction, on: On | None = None) -> On:
        with rules.collected() as found:
            rules.rule("U99", Severity.ERROR, on, title="x", fix=(), good=list, bad=list)(function)
        return found["U99"].on

    def at_the_end(case: RunCase) -> Iterator[Statement]:
        return iter(())

    assert declared(at_the_end) is On.RUN_END
    assert declared(lambda case: iter(()), On.HANDSHAKE) is On.HANDSHAKE
    with pytest.raises(TypeError, match="when rule U99 is checked"):
        declared(lambda case: iter(()))


def test_two_rules_cannot_have_one_id() -> None:
    with pytest.raises(ValueError, match="two rules with the id B01"):
        rules.rule("B01", Severity.ERROR, On.EXCHANGE, title="x", fix=(), good=list, bad=list)(lambda case: iter(()))

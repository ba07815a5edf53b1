"""Every rule by its own examples, through the real analyzer."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from inspector import rules
from inspector.analysis.analyzer import Analyzer
from inspector.analysis.verdicts import BY_NATURE, effects
from inspector.capture.store import Capture
from inspector.model import Connection, Exchange, Record, Severity
from inspector.rules import On, all_rules, rule_of
from inspector.rules.fixes import plain
from inspector.runs.examples import ca, catalog, crl, csr, issued, not_issued, report, talk
from tests.support.conversations import Agent, all_findings, steps, together

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from inspector.rules import Rule, RuleFunction
    from inspector.rules.cases import RunCase, Statement

RULES = {rule.id: rule for rule in all_rules()}
GOOD = [pytest.param(talk, id=f"{rule.id}-{n}") for rule in RULES.values() for n, talk in enumerate(rule.good(), 1)]
BAD = [pytest.param(rule, t, id=f"{rule.id}-{n}") for rule in RULES.values() for n, t in enumerate(rule.bad(), 1)]


def test_the_named_deviations_are_all_there() -> None:
    named = {"B01", "B03", "T03", "B07", "B08", "B10", "B13", "B17", "B18", "B20", "B22"}
    assert named <= set(RULES)
    assert list(RULES) == sorted(RULES)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_a_rule_says_what_why_and_what_to_do(rule: Rule) -> None:
    assert re.fullmatch(r"[BTRFSP]\d\d", rule.id)
    for text in (rule.title, rule.explanation, plain(rule.fix_for(None)), rule.source):
        assert len(text) > 10
    assert not rule.title.endswith(".")
    assert rule.good()
    assert rule.bad()
    assert rule_of(rule.id) is rule


@pytest.mark.parametrize("conversation", GOOD)
def test_a_good_example_is_clean_of_every_rule(conversation: Sequence[Record]) -> None:
    old = any("5.5" in (record.request.header("x-puppet-version") or "") for record in conversation
              if isinstance(record, Exchange))  # fmt: skip
    allowed = {"B01", "B03"} if old else {"B01"}
    worse = [finding for finding in all_findings(conversation) if finding.severity is not Severity.NOTICE]
    assert {finding.rule for finding in worse} <= allowed
    assert all(finding.severity is Severity.WARNING for finding in worse)


@pytest.mark.parametrize(("rule", "conversation"), BAD)
def test_a_bad_example_raises_its_rule_and_what_is_related_or_listed(
    rule: Rule, conversation: Sequence[Record]
) -> None:
    found = {finding.rule for finding in all_findings(conversation)}
    assert rule.id in found
    unrelated = {other for other in found if other not in effects(rule.id) and rule.id not in effects(other)}
    assert unrelated - BY_NATURE <= {rule.id, *rule.also}


@pytest.mark.parametrize(("rule", "conversation"), BAD)
def test_a_findings_proof_is_in_the_conversation(rule: Rule, conversation: Sequence[Record]) -> None:
    for finding in all_findings(conversation):
        assert finding.message
        assert finding.seqs
        assert set(finding.seqs) <= {record.seq for record in conversation}


@pytest.mark.parametrize(("rule", "conversation"), [*BAD, pytest.param(None, "crowd", id="crowd")])
def test_live_and_offline_say_the_same(tmp_path: Path, rule: Rule | None, conversation: Sequence[Record] | str) -> None:
    if isinstance(conversation, str):
        first = Agent("a.example").bootstrap(2).run()
        other = Agent("a.example", "192.0.2.2", owner="b").ca().crl().csr(status=400, text="already has x").refused()
        conversation = together(first, other)
    live, offline = Analyzer(), Analyzer()
    with Capture.create(tmp_path / "c.sqlite") as capture:
        appended = []
        for record in conversation:
            legs = [record.agent, record.master] if isinstance(record, Exchange) else [getattr(record, "leg")]  # noqa: B009
            for leg in filter(None, legs):
                capture.note(Connection(leg))
            appended.append(next(steps(live, [capture.append(record)])).findings)
            capture.flush()
    with Capture.open(tmp_path / "c.sqlite") as capture:
        again = [step.findings for step in steps(offline, capture.records())]
    assert appended == again
    assert [run.findings for run in live.finish()] == [run.findings for run in offline.finish()]
    assert [run.seqs for run in live.runs] == [run.seqs for run in offline.runs]


# -- what the examples do not show ---------------------------------------------------------------------


@pytest.mark.parametrize("version", ["6.29.0", "7.23.0", "8.10.0"])
def test_what_a_healthy_agent_does_is_a_warning_only_for_the_first_ca(version: str) -> None:
    found = all_findings(together(Agent(version=version).bootstrap(3).run().wait(1800).run("u-2")))
    bad = [finding for finding in found
           if finding.severity is not Severity.NOTICE and finding.rule != "S16"]  # fmt: skip
    assert [(finding.rule, finding.severity) for finding in bad] == [("B01", Severity.WARNING)]


@pytest.mark.parametrize("version", ["3.8.7", "5.5.22"])
def test_a_healthy_old_agent_is_a_warning_only_for_what_it_never_verifies(version: str) -> None:
    found = all_findings(together(Agent(version=version).old_bootstrap(4).run().wait(1800).run("u-2")))
    bad = [finding for finding in found
           if finding.severity is not Severity.NOTICE]  # fmt: skip
    assert {(finding.rule, finding.severity) for finding in bad} == {
        ("B01", Severity.WARNING),
        ("B03", Severity.WARNING),
    }


def test_the_same_statement_again_adds_proof_not_findings() -> None:
    waits = "already has a requested certificate"
    polls = [part for _ in range(5) for part in (csr(status=400, text=waits), not_issued())]
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
    import dataclasses

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

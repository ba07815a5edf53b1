"""A run in brief has the verdict and the fixes that the whole run has."""

from __future__ import annotations

import pytest

from inspector.model import Severity
from inspector.rules import all_rules, fixes, rule_of
from inspector.runs.examples import ca, catalog, crl, csr, issued, not_issued, report, talk, together, wait
from inspector.summaries import conclusions, judgement
from inspector.summaries.index import IndexedRun
from inspector.summaries.summary import SETTLED
from tests.support.conversations import runs_of


@pytest.mark.slow
def test_a_brief_run_has_the_fixes_of_the_run() -> None:
    """Also after it was stored."""
    examples = [(rule.id, records) for rule in all_rules() for records in rule.bad()]
    for rule, run in ((rule, run) for rule, records in examples for run in runs_of(records)):
        brief = IndexedRun.unpacked(IndexedRun.of(conclusions.of_run(run), run.seqs).packed()).brief
        assert brief == conclusions.of_run(run), rule
        for finding in run.findings:
            # A message that is known has a fix of its own (test_printed_messages).
            if finding.rule not in {*brief.settled, *brief.meanings}:
                assert brief.fix_for(finding.rule) == rule_of(finding.rule).fix_for(run), rule
        if brief.cause_found and brief.cause not in brief.settled:
            steps = brief.fix_for(brief.cause_found.rule)
            expected = steps if brief.cause_found.severity is Severity.NOTICE else fixes.proved(steps)
            assert brief.steps == expected, rule


def test_a_request_that_was_signed_meanwhile_needs_nothing() -> None:
    (run,) = runs_of(talk(ca(), crl(), *[csr(), not_issued(), wait(120)] * 3, csr(), issued(), catalog(), report()))
    brief = conclusions.of_run(run)
    assert "B39" in brief.settled
    assert brief.fix_for("B39") == SETTLED


def test_a_run_that_shows_nothing_is_explained_by_what_others_show_of_the_ca() -> None:
    silent = talk(ca(), certname="a.example")
    expired = talk(ca(), crl(expired=True), certname="b.example", address="192.0.2.8", after=60)
    alone, with_it = runs_of(silent), runs_of(together(silent, expired))
    (before,) = judgement.with_shared([conclusions.of_run(run) for run in alone])
    assert before.verdict
    assert (before.verdict.cause, before.verdict.certainty) == (None, "not visible")
    after = judgement.with_shared([conclusions.of_run(run) for run in with_it])
    (mute,) = [run for run in after if run.verdict and run.verdict.evidence]
    (other,) = [run for run in after if run is not mute]
    assert mute.verdict
    assert (mute.verdict.cause, mute.verdict.certainty) == (other.cause, "likely")
    assert f"(likely: run {other.number} shows it)" in mute.verdict.message
    assert mute.steps == fixes.proved(mute.fix_for(other.cause or ""))

"""The answer: what failed, since when, where, why, and what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inspector.model import Severity
from inspector.report.answers import answers_of, fix_steps
from inspector.rules.fixes import advice, on_ca, on_node
from inspector.runs.examples import catalog, report, talk
from tests.support.captures import save
from tests.support.conversations import together
from tests.support.nodes import uncompiled, well
from tests.support.pages import copied, sample

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.report.answers import Answers
    from tests.conftest import Run


def answers(path: Path) -> Answers:
    with copied(path) as copy:
        return answers_of(copy)


def states(found: Answers) -> list[str]:
    return [str(node.state) for node in found.judgement.nodes.values()]


@pytest.mark.parametrize(
    ("name", "rule", "words"),
    [
        ("mismatched-key", "B18", "another key than the agent's"),
        ("revoked", "T05", "is revoked"),
        ("compile-error", "S01", "no role for this node"),
    ],
)
def test_a_failure_has_cause_fix_and_evidence(name: str, rule: str, words: str) -> None:
    found = answers(sample(name))
    (answer,) = found.found
    assert (answer.rule, answer.severity, states(found)) == (rule, Severity.ERROR, ["failing"])
    assert words in answer.sentence
    assert answer.steps[-1].command == "puppet agent -t"
    assert {quoted.seq for quoted in answer.quoted} <= set(answer.seqs)
    assert any("HTTP" in line or "TLS" in line for line in answer.quoted[-1].lines)
    assert found.headline == "1 node failing, 2 errors"
    assert found.look == "error"


def test_success_is_counted_with_what_was_found() -> None:
    found = answers(sample("first-run"))
    assert (found.found, states(found)) == ((), ["well"])
    assert found.headline == "1 node completed, 2 notices"
    assert found.look == "well"


def test_the_same_failure_of_several_nodes_is_one_answer(tmp_path: Path) -> None:
    found = answers(save(tmp_path / "a.sqlite", *[*uncompiled(1), *uncompiled(2), *well(3)]))
    (answer,) = found.found
    assert (len(answer.nodes), answer.runs, states(found)) == (2, 2, ["failing", "failing", "well"])
    assert answer.where == "2 nodes"
    assert found.headline.startswith("2 nodes failing, 1 node completed, ")


def test_an_error_in_a_run_that_succeeded_is_no_failure(tmp_path: Path) -> None:
    """The node's clock is wrong, and nothing came of it."""
    late = talk(catalog(), report(time="2099-01-01T00:00:00+00:00"), certname="late.example")
    found = answers(save(tmp_path / "a.sqlite", *late))
    (answer,) = found.found
    assert (answer.rule, answer.severity, states(found)) == ("T10", Severity.ERROR, ["errors"])
    assert answer.state == "completed with errors"
    assert found.headline.startswith("1 node completed with errors, 1 error")
    both = answers(save(tmp_path / "b.sqlite", *[*uncompiled(1), *late, *well(3)]))
    assert both.headline.startswith("1 node failing, 1 node completed with errors, 1 node completed, ")
    assert [one.state for one in both.found] == ["failed", "completed with errors"]


def test_a_failure_that_is_over_is_past(tmp_path: Path) -> None:
    found = answers(save(tmp_path / "a.sqlite", *[*uncompiled(1), *well(1, 5000)]))
    (past,) = found.past
    assert (found.found, past.over, past.rule) == ((), True, "S01")


def test_the_report_of_one_run_does_not_say_what_its_node_is_now(run: Run, tmp_path: Path) -> None:
    capture = save(tmp_path / "a.sqlite", *[*uncompiled(1), *well(1, 5000)])
    _, first, _ = run("report", capture, "--run", "1", "--format", "markdown")
    assert first.startswith("# Run 1: failed, 2 errors; over since run 2\n")
    assert "\nThe fix at the time, nothing is to be done now:\n" in first
    _, second, _ = run("report", capture, "--run", "2", "--format", "markdown")
    assert second.startswith("# Run 2: complete\n")
    _, all_of_them, _ = run("report", capture, "--agent", "*", "--format", "markdown")
    assert all_of_them.startswith("# 1 node completed\n")


def test_what_is_over_has_its_why_and_the_fix_of_that_time(run: Run, tmp_path: Path) -> None:
    capture = save(tmp_path / "a.sqlite", *[*uncompiled(1), *well(1, 5000)])
    _, text, _ = run("report", capture, "--format", "markdown")
    assert "\n- over: no catalog: " in text
    assert "\nThe code or the classifier names a class" in text
    assert "\nThe fix at the time, nothing is to be done now:\n\n1. " in text
    page = tmp_path / "a.html"
    assert run("report", capture, "-o", page)[0] == 0
    answer = page.read_text().partition('<section id="answer"')[2].partition("</section>")[0]
    assert "<summary>Why, and the fix</summary>" in answer
    assert "Fix at the time: nothing is to be done now</h4>" in answer


def test_a_capture_without_runs_has_no_answer(tmp_path: Path) -> None:
    assert answers(save(tmp_path / "a.sqlite", *together())).headline == "No run of an agent"


def test_a_condition_stands_once_and_holds_for_all_its_steps() -> None:
    steps = (advice("look"), on_ca("clean", "a", only_if="lost"), on_node("enrol", "b", only_if="lost"), advice("wait"))
    found = fix_steps(steps)
    assert [(step.only_if, step.begins) for step in found] == [("", False), ("lost", True), ("lost", False), ("", True)]
    assert [step.text for step in found] == ["Look", "On the CA, clean", "On the node, enrol", "Wait"]

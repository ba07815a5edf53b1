"""What a rule does to its own examples."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from inspector.analysis import examples
from inspector.rules import rule_of
from inspector.runs.examples import ca, catalog, talk

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inspector.rules.cases import Case, Statement

B01 = rule_of("B01")


def test_a_rule_that_is_right() -> None:
    assert list(examples.problems(B01)) == []


def test_examples_of_the_wrong_kind() -> None:
    turned = dataclasses.replace(B01, good=lambda: [talk(ca())], bad=lambda: [talk(ca()), talk(catalog())])
    good, bad = examples.problems(turned)
    assert good.startswith("good example 1: it finds: the CA bundle was downloaded")
    assert bad == "bad example 2: it finds nothing"


def test_no_examples_and_those_that_cannot_be_made() -> None:
    without = dataclasses.replace(B01, good=list, bad=lambda: [[1 / 0]])  # type: ignore[list-item]
    assert list(examples.problems(without)) == [
        "it has no good example",
        "its bad examples cannot be made: ZeroDivisionError('division by zero')",
    ]
    wrong = dataclasses.replace(B01, good=lambda: [["x"]])  # type: ignore[list-item]
    assert [problem for problem in examples.problems(wrong) if problem.startswith("good example 1: ")]


def test_a_rule_that_raises_says_where() -> None:
    def broken(_: Case) -> Iterator[Statement]:
        raise RuntimeError("oh")
        yield

    one = [talk(ca())]
    raising = dataclasses.replace(B01, function=broken, at=(), good=lambda: one, bad=lambda: one)
    problems = list(examples.problems(raising))
    assert [problem.partition(" (test_examples.py, line ")[0] for problem in problems] == [
        "good example 1: rule B01 failed",
        "bad example 1: rule B01 failed",
    ]

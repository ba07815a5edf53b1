"""The graph of causes and consequences."""

from __future__ import annotations

import pytest

from inspector.analysis.causes import EVENTS, FOLLOWS, effects, explains
from inspector.model import Finding, Severity
from inspector.rules import all_rules

IDS = {rule.id for rule in all_rules()}


def test_the_table_names_rules_and_each_cause_once() -> None:
    causes = [row.cause for row in FOLLOWS]
    assert len(causes) == len(set(causes))
    assert {rule for row in FOLLOWS for rule in (row.cause, *row.effects, *row.without_catalog)} | EVENTS <= IDS


@pytest.mark.parametrize("cause", [row.cause for row in FOLLOWS])
def test_nothing_follows_from_what_follows_from_it(cause: str) -> None:
    assert all(cause not in effects(effect) for effect in effects(cause))


@pytest.mark.parametrize(
    ("cause", "symptom"),
    [("S01", "R20"), ("F09", "P01"), ("B27", "B43"), ("T03", "S02"), ("B10", "R03"), ("B26", "S15")],
)
def test_the_more_specific_is_the_cause(cause: str, symptom: str) -> None:
    assert symptom in effects(cause)
    assert cause not in effects(symptom)


def found(rule: str, since: float) -> Finding:
    return Finding(rule, Severity.ERROR, "", (), since)


def test_an_event_explains_nothing_that_was_there_before() -> None:
    assert explains(found("S01", 10.0), found("R20", 10.0))
    assert not explains(found("S01", 11.0), found("R20", 10.0))
    assert explains(found("S01", 11.0), found("R20", 0.0)), "when it appeared is not known"


def test_a_condition_may_be_recorded_after_what_follows_from_it() -> None:
    assert explains(found("B10", 11.0), found("T08", 10.0))


def test_what_keeps_the_catalog_explains_nothing_where_it_was_given() -> None:
    for cause in ("R09", "F07", "S02", "S05", "S06", "S12"):
        assert effects(cause)
        assert not effects(cause, catalog=True), cause
    assert "P01" in effects("T18", catalog=True), "files are missing all the same"


def test_each_row_has_a_reason() -> None:
    assert all(row.why for row in FOLLOWS)

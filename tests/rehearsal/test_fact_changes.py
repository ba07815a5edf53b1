"""Facts that are changed before they are sent."""

from __future__ import annotations

import pytest

from inspector.errors import InspectorError
from inspector.protocol import documents as d
from inspector.rehearsal import fact_changes
from inspector.rehearsal.fact_changes import FactChanges

FACTS = d.Facts("a.example", {"osfamily": "Debian", "os": {"family": "Debian", "release": {"major": "12"}}, "x.y": 1})


def test_nothing_is_changed() -> None:
    assert not FactChanges()
    assert FactChanges().applied(FACTS) == FACTS


def test_legacy_facts_are_left_out() -> None:
    assert list(FactChanges(without_legacy=True).applied(FACTS).values) == ["os", "x.y"]


def test_patterns_of_paths_are_left_out() -> None:
    values = FactChanges(dropped=("os.rel*", "x*")).applied(FACTS).values
    assert values == {"osfamily": "Debian", "os": {"family": "Debian"}}


def test_values_are_given() -> None:
    given = (fact_changes.given("os.family=Suse"), fact_changes.given('new.a={"b": [1]}'), fact_changes.given("x.y=2"))
    values = FactChanges(given=given).applied(FACTS).values
    assert values["os"] == {"family": "Suse", "release": {"major": "12"}}
    assert values["new"] == {"a": {"b": [1]}}
    assert values["x.y"] == 2
    assert FACTS.values["x.y"] == 1


def test_what_is_changed_is_told() -> None:
    changes = FactChanges(without_legacy=True, given=(("a", "é"),), dropped=("b*",))
    assert str(changes) == 'without legacy facts, without b*, a = "é"'


@pytest.mark.parametrize("text", ["", "a", "=b", "a..b=c", "." * 60 + "=1"])
def test_mistakes(text: str) -> None:
    with pytest.raises(InspectorError, match="gives no fact a value"):
        fact_changes.given(text)

"""Parameters of named queries: typed, checked, and never part of the SQL."""

from __future__ import annotations

import datetime

import pytest

from inspector.errors import InspectorError
from inspector.fleet.queries.query import Parameter, Query
from tests.support.json_output import builtins
from tests.support.made_tables import END

QUERY = Query(
    "example",
    "What?",
    "SELECT $at, $days, $limit, $path",
    (
        Parameter("at", None, "a time"),
        Parameter("days", 30, "days"),
        Parameter("limit", 0.5, "a limit"),
        Parameter("path", "os", "a path"),
    ),
)


def test_values_are_defaults_or_what_is_set() -> None:
    assert QUERY.values([], END) == {"at": END, "days": 30, "limit": 0.5, "path": "os"}
    settings = ["at=2026-11-20T09:00:00+02:00", "days=0", "limit=2", "path=a=b'; --"]
    at = datetime.datetime(2026, 11, 20, 7)  # noqa: DTZ001
    assert QUERY.values(settings, END) == {"at": at, "days": 0, "limit": 2.0, "path": "a=b'; --"}
    assert QUERY.values([], None)["at"] == datetime.datetime(1970, 1, 1)  # noqa: DTZ001


@pytest.mark.parametrize("written", ["days=x", "days=1.5", "days=-1", "days=99999999", "limit=nan", "at=tomorrow"])
def test_what_is_no_value_is_said(written: str) -> None:
    name = written.partition("=")[0]
    with pytest.raises(InspectorError, match=f"is no value of {name}") as raised:
        QUERY.values([written], END)
    assert raised.value.hint.startswith(f"For example: {name}=")


@pytest.mark.parametrize("written", ["day=3", "days", ""])
def test_what_sets_nothing_is_said_with_what_can_be_set(written: str) -> None:
    with pytest.raises(InspectorError, match="sets nothing") as raised:
        QUERY.values([written], END)
    assert raised.value.hint == "It has these parameters: at=TIME, days=30, limit=0.5, path=os."
    with pytest.raises(InspectorError) as raised:
        Query("none", "", "").values([written], END)
    assert raised.value.hint == "It has no parameters."


def test_it_is_described_with_its_statement() -> None:
    assert builtins(QUERY.described()) == {
        "name": "example",
        "question": "What?",
        "parameters": [
            {"name": "at", "default": None, "meaning": "a time"},
            {"name": "days", "default": 30, "meaning": "days"},
            {"name": "limit", "default": 0.5, "meaning": "a limit"},
            {"name": "path", "default": "os", "meaning": "a path"},
        ],
        "statement": "SELECT $at, $days, $limit, $path",
    }

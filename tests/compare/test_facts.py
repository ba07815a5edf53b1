"""Facts are compared by path; volatile ones are apart."""

from __future__ import annotations

from typing import Any

import pytest

from inspector.compare import facts
from inspector.compare.differences import Differences
from inspector.compare.facts import Volatile
from inspector.compare.masks import Masks
from inspector.protocol.documents import Facts
from tests.support.compared import Brief, brief


def compared(
    before: dict[str, Any], after: dict[str, Any], volatile: Volatile | None = None
) -> tuple[list[Brief], list[Brief]]:
    sides = Facts("a", before), Facts("a", after)
    found, changing = Differences(Masks(facts=sides)), Differences(Masks(facts=sides))
    facts.compare(*sides, found, changing, volatile or Volatile())
    return brief(found.found), brief(changing.found)


def test_structured_facts_are_walked() -> None:
    before = {
        "os": {"name": "Debian", "release": {"major": "12"}},
        "same": [1, {"a": 2}],
        "list": [1],
        "gone": {"a": 1},
    }
    after = {"os": {"name": "Debian", "release": {"major": "13"}}, "same": [1, {"a": 2}], "list": [1, 2], "new": False}
    assert compared(before, after)[0] == [
        ("removed", "gone", {"a": 1}, None),
        ("changed", "list", [1], [1, 2]),
        ("added", "new", None, False),
        ("changed", "os.release.major", "12", "13"),
    ]


@pytest.mark.parametrize(
    "path",
    ["uptime_seconds", "system_uptime.seconds", "memory.system.available_bytes", "load_averages.1m", "memoryfree_mb",
     "mountpoints./var/lib.used", "mountpoints./.capacity", "networking.dhcp"],
)  # fmt: skip
def test_volatile_facts_are_apart(path: str) -> None:
    names = path.split(".")
    old: Any = 1
    new: Any = 2
    for name in reversed(names):
        old, new = {name: old}, {name: new}
    assert compared(old, new) == ([], [("changed", path, 1, 2)])
    assert compared(old, new, Volatile(())) == ([("changed", path, 1, 2)], [])


def test_total_memory_is_not_volatile() -> None:
    old, new = ({"memory": {"system": {"total_bytes": number}}} for number in (1, 2))
    assert compared(old, new) == ([("changed", "memory.system.total_bytes", 1, 2)], [])


def test_structured_facts_that_agents_of_3_send_as_text_are_volatile_as_a_whole() -> None:
    old, new = ({"system_uptime": f'{{"seconds"=>{seconds}, "hours"=>1}}', "os": str(seconds)} for seconds in (1, 2))
    assert compared(old, new) == ([("changed", "os", "1", "2")], [("changed", "system_uptime", *_uptimes(old, new))])
    assert compared({"memory": None}, {"memory": "1 GB"})[1] == []


def _uptimes(*facts: dict[str, str]) -> list[str]:
    return [values["system_uptime"] for values in facts]


def test_patterns_of_a_site() -> None:
    assert compared({"my": {"clock": 1}}, {"my": {"clock": 2}}, Volatile(["my.*"]))[0] == []


def test_secrets() -> None:
    found, _ = compared({"db_password": "hunter2-old", "other": "x hunter2-old"}, {"db_password": "hunter2-new"})
    assert [each[1] for each in found] == ["db_password", "other"]
    assert "hunter2" not in repr(found)
    found, _ = compared({"db": {"password": {"a": "one"}}}, {"db": {"password": {"a": "two"}}})
    assert found == [("changed", "db.password.a", "MASKED", "MASKED")]


def test_deep_facts_take_no_stack() -> None:
    old: Any = 1
    new: Any = 2
    for _ in range(5000):
        old, new = {"a": old}, {"a": new}
    ((change, path, *_),) = compared(old, new)[0]
    assert (change, path.count(".")) == ("changed", 4999)

"""Values that mean the same in different formats are equal, and no others."""

from __future__ import annotations

from typing import Any

import pytest

from inspector.compare import meaning
from inspector.protocol import rich

BINARY = {"__ptype": "Binary", "__pvalue": "AAEC"}
DEFERRED = {"__ptype": "Deferred", "name": "sprintf", "arguments": ["%s", 1]}

EQUAL: list[tuple[Any, Any]] = [
    (1, 1.0),
    ("a", "a"),
    ({"a": 1, "b": 2}, {"b": 2, "a": 1}),
    ({"a": None}, {}),
    (BINARY, "AAEC"),
    (BINARY, "AAE\nC\n"),
    ({"__ptype": "Sensitive", "__pvalue": "x"}, "x"),
    ({"__ptype": "Sensitive", "__pvalue": BINARY}, "AAEC"),
    ([{"__ptype": "Sensitive", "__pvalue": [1]}], [[1]]),
    ({"__ptype": "SemVer", "__pvalue": "1.2.3"}, "1.2.3"),
    ({"__ptype": "Symbol", "__pvalue": "absent"}, "absent"),
    ({"__ptype": "Default"}, "default"),
    ({"__ptype": "Hash", "__pvalue": [1, "a", True, "b"]}, {"1": "a", "true": "b"}),
    ({"__ptype": "Hash", "__pvalue": [1, "a"]}, {"__ptype": "Hash", "__pvalue": [1, "a"]}),
    (DEFERRED, dict(reversed(DEFERRED.items()))),
    ({"a": [1], "b": {"__ptype": "LocalRef", "__pvalue": "$['a']"}}, {"a": [1], "b": [1]}),
]
DIFFERENT: list[tuple[Any, Any]] = [
    (1, True),
    (0, False),
    (1, "1"),
    (None, ""),
    ([1], 1),
    ([1, 2], [2, 1]),
    ([1], [1, 1]),
    (BINARY, "AAED"),
    (BINARY, ["AAEC"]),
    ({"a": 1}, {"a": 1, "b": 1}),
    ({"a": {"b": [1, True]}}, {"a": {"b": [1, 1]}}),
    (DEFERRED, "Deferred({'name' => 'sprintf', 'arguments' => ['%s', 1]})"),
    ({"__ptype": "SemVer", "__pvalue": "1.2.3"}, {"__ptype": "Regexp", "__pvalue": "1.2.3"}),
    ({"__ptype": "Hash", "__pvalue": [1, "a"]}, {"1": "b"}),
]


@pytest.mark.parametrize(("before", "after"), EQUAL)
def test_equal(before: Any, after: Any) -> None:
    assert meaning.same(rich.read(before), rich.read(after))
    assert meaning.same(rich.read(after), rich.read(before))


@pytest.mark.parametrize(("before", "after"), DIFFERENT)
def test_different(before: Any, after: Any) -> None:
    assert not meaning.same(rich.read(before), rich.read(after))
    assert not meaning.same(rich.read(after), rich.read(before))


def test_keys_that_are_the_same_text_are_two() -> None:
    def made(value: str) -> rich.Rich:
        return rich.Rich("Hash", [[1, value], ["1", "same"]])

    assert meaning.same(made("one"), made("one"))
    assert not meaning.same(made("one"), made("other"))
    assert not meaning.same(rich.Rich("Hash", [1]), rich.Rich("Hash", [2]))


def test_deep_values_are_compared_too() -> None:
    def nested(value: object, depth: int = 5000) -> Any:
        for _ in range(depth):
            value = [value]
        return value

    assert meaning.same(nested(1, 400), nested(1, 400))
    assert not meaning.same(nested(1, 400), nested(2, 400))


def test_plain_values_are_json() -> None:
    value = rich.read({"a": BINARY, "b": DEFERRED, "c": {"__ptype": "Hash", "__pvalue": [1, float("inf")]}})
    assert meaning.plain(value) == {
        "a": {"__ptype": "Binary", "__pvalue": "AAEC"},
        "b": {"__ptype": "Deferred", "__pvalue": {"name": "sprintf", "arguments": ["%s", 1]}},
        "c": {"1": "inf"},
    }

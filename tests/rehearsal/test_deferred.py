"""Deferred values that v4 shows as text: at the top, nested, sensitive."""

from __future__ import annotations

from typing import Any

from inspector.rehearsal import deferred
from tests.support.compared import decoded, file, found

DEFERRED = {"__ptype": "Deferred", "name": "sprintf", "arguments": ["a"]}
TEXT = "Deferred({'name' => 'sprintf', 'arguments' => ['a']})"


def restored(before: Any, after: Any, **marks: Any) -> tuple[int, int]:
    """How many values were restored, and how many differences there are then."""
    recorded = decoded([file("/a", content=before)])
    answer, count = deferred.restored(recorded, decoded([file("/A", content="x"), file("/a", content=after, **marks)]))
    return count, len([each for each in found(recorded, answer).found if each.name == "File[/a]"])


def test_wherever_a_deferred_is() -> None:
    assert restored(DEFERRED, TEXT) == (1, 0)
    assert restored(["x", {"y": DEFERRED}, DEFERRED], ["x", {"y": TEXT}, TEXT]) == (2, 0)
    secret = {"__ptype": "Sensitive", "__pvalue": DEFERRED}
    assert restored(secret, TEXT, sensitive=["content"]) == (1, 0)
    assert restored(secret, {"__ptype": "Sensitive", "__pvalue": TEXT}) == (1, 0)


def test_what_is_different_beside_it_stays() -> None:
    assert restored(["x", DEFERRED], ["y", TEXT]) == (1, 1)
    assert restored(DEFERRED, "other") == (0, 1)
    assert restored([DEFERRED], [TEXT, "more"]) == (0, 1)
    assert restored({"a": DEFERRED, "b": 1}, {"a": TEXT}) == (1, 1)
    assert restored("text", TEXT) == (0, 1)
    assert restored(None, TEXT) == (0, 1)


def test_deep_values_end() -> None:
    before: Any = DEFERRED
    after: Any = TEXT
    for _ in range(500):
        before, after = [before], [after]
    assert restored(before, after)[0] == 0

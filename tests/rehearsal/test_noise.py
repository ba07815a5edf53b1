"""Noise: what may differ once two compiles of the same do."""

from __future__ import annotations

from typing import Any

import pytest

from inspector.compare.differences import Difference, Differences, Section
from inspector.compare.masks import Masks
from inspector.rehearsal import noise
from inspector.rehearsal.noise import Noise, fits


def test_what_fits(subtests: pytest.Subtests) -> None:
    for one, other, third, expected in [
        ("at 1", "at 2", "on Fri 3", True),  # a line is not split
        ("at 1\nworkers 4", "at 2\nworkers 4", "at 0\nworkers 4", True),
        ("at 1\nworkers 4", "at 2\nworkers 4", "at 0\nworkers 8", False),
        ("head\na\ntail", "head\na\nb\ntail", "head\na\nx\ny\ntail", True),
        ("head\na\ntail", "head\na\nb\ntail", "head\na\nb\nend", False),
        ("head\na\ntail", "head\ntail", "tail", False),
        (1, 2, 7, True),
        (1, 2, "x", False),
        (1, 1, 1, True),
        (1, 1, True, False),
        (None, 5, 5, True),
        (None, 5, None, True),
        (5, None, 6, False),
        ([1, 2, 3], [3, 1, 2], [2, 1, 3], True),
        ([1, 2, 3], [3, 1, 2], [2, 1, 4], False),
        (["a", 1], ["a", 2], ["a", 3], True),
        (["a", 1], ["a", 2], ["b", 1], False),
        (["a", 1], ["a", 2], ["a", 1, "more"], False),
        ({"a": 1, "b": 1}, {"a": 1, "b": 2}, {"a": 1, "b": 3}, True),
        ({"a": 1, "b": 1}, {"a": 1, "b": 2}, {"a": 2, "b": 1}, False),
        ({"a": 1, "b": 1}, {"a": 1, "b": 2}, {"a": 1, "b": 1, "c": 1}, False),
    ]:
        with subtests.test(one=one):
            assert fits(one, other, third) is expected
            assert fits(other, one, third) is expected


def difference(name: str, part: str, before: Any, after: Any) -> Difference:
    found = Differences(Masks())
    found.add(Section.CATALOG, name, part, before, after)
    return found.found[0]


def test_both_sides_fit() -> None:
    """Those of the recorded run and of the new master, whichever the two compiles are of."""
    known = Noise()
    known.learn([difference("File[/a]", "content", "1", "2")])
    known.learn([difference("File[/b]", "mode", ["a", 1], ["a", 2])])
    assert known.covers(difference("File[/a]", "content", "0", "1"))
    assert not known.covers(difference("File[/a]", "mode", "0", "1"))
    assert not known.covers(difference("File[/c]", "content", "0", "1"))
    assert known.covers(difference("File[/b]", "mode", ["a", 9], ["a", 7]))
    assert not known.covers(difference("File[/b]", "mode", ["b", 9], ["a", 7]))
    assert not known.covers(difference("File[/b]", "mode", ["a", 9], ["b", 7]))


@pytest.mark.parametrize(
    ("title", "values", "expected"),
    [
        ("built at 9:59", {"loglevel": "info"}, True),
        ("built at 11:07", {"loglevel": "info"}, True),
        ("built at 9:59", {"loglevel": "err"}, False),
        ("made at 9:59", {"loglevel": "info"}, False),
        ("built at 9:59 again", {"loglevel": "info"}, False),
    ],
)
def test_titles(title: str, values: dict[str, Any], expected: bool) -> None:
    known = Noise()
    own = {"loglevel": "info"}
    known.learn(
        [difference("Notify[built at 10:01]", "", own, None), difference("Notify[built at 10:02]", "", None, own)]
    )
    assert known.covers(difference(f"Notify[{title}]", "", values, None)) is expected
    assert known.covers(difference(f"Notify[{title}]", "", None, values)) is expected
    assert not known.covers(difference(f"Exec[{title}]", "", values, None))


def test_a_hostile_catalog_costs_no_more_than_its_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """Any number of differences in one place, and of resources with titles of one kind: what is not compared counts."""
    monkeypatch.setattr(noise, "MOST", 10_000)
    calls: list[object] = []
    compare = noise.fits

    def counted(*values: Any) -> bool:
        calls.append(values)
        return compare(*values)

    monkeypatch.setattr(noise, "fits", counted)
    place = [difference("File[/a]", "content", f"{n}\nx", f"{n + 1}\nx") for n in range(500)]
    titles = [difference(f"Notify[{n}]", "", None if n % 2 else {}, {} if n % 2 else None) for n in range(500)]
    found = Noise()
    found.learn([*place, *titles])
    others = [difference("File[/a]", "content", f"{n}\ny", f"{n + 1}\nz") for n in range(500)]
    others += [difference(f"Notify[{n}]", "", {"a": n}, None) for n in range(500)]
    assert not any(found.covers(each) for each in others)
    assert len(calls) < 1000
    assert not found.covers(place[0]), "nothing is left to compare it"

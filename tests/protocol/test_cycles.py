from __future__ import annotations

from inspector.protocol.cycles import components


def test_what_reaches_each_other_is_one_component() -> None:
    after = {0: [1], 1: [2], 2: [0, 3], 3: [4], 4: [], 5: [5]}
    assert sorted(sorted(group) for group in components(6, after.__getitem__)) == [[0, 1, 2], [3], [4], [5]]


def test_a_long_way_needs_no_recursion() -> None:
    points = 100_000
    (group,) = components(points, lambda point: [(point + 1) % points])
    assert len(group) == points

"""The axes of drawings: short numbers, and labels for which there is room."""

from __future__ import annotations

import pytest

from inspector.report.plots import axes, rounded


@pytest.mark.parametrize(
    ("most", "top"),
    [(0, 1), (0.03, 0.04), (0.5, 0.6), (1, 1), (3, 4), (7, 8), (9, 10), (10, 10), (121, 200), (483, 600)],
)
def test_an_axis_ends_with_a_short_number(most: float, top: float) -> None:
    assert rounded(most) == pytest.approx(top)


def test_numbers_stand_from_the_top_to_the_bottom() -> None:
    found = axes(483, ["a"], lambda value: f"{value:g}")
    assert found.scale == ("600", "300", "0")
    assert found.lines == "M0 0H1000M0 60H1000M0 120H1000"
    assert axes(1, ["a"], lambda value: f"{value:g}", whole=True).scale == ("1", "0"), "there is no half of a run"


@pytest.mark.parametrize(
    ("number", "labelled"),
    [(0, []), (1, [0]), (3, [0, 1, 2]), (7, [*range(7)]), (9, [0, 2, 4, 6, 8]), (40, [*range(0, 40, 6)])],
)
def test_labels_are_at_equal_distances_below_their_columns(number: int, labelled: list[int]) -> None:
    found = axes(1, [str(place) for place in range(number)], str).labels
    assert [int(label.text) for label in found] == labelled
    assert [label.at for label in found] == [
        pytest.approx(100 * (place + 0.4) / number, abs=0.01) for place in labelled
    ]


def test_few_labels_are_left_where_there_is_little_room_and_none_stands_out() -> None:
    found = axes(1, [str(place) for place in range(40)], str).labels
    assert [int(label.text) for label in found if not label.fine] == [0, 18, 36]
    assert [label.anchor for label in found] == ["start", *["middle"] * 5, "end"]
    assert not any(label.fine for label in axes(1, ["a", "b", "c"], str).labels)

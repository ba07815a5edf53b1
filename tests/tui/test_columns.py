"""The widths of columns: no text is cut while another column has room to spare; and what the user wants to see."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.text import Text

from inspector.tui import columns, user_state
from inspector.tui.columns import PADDING, WIDEST, Column, Layout

if TYPE_CHECKING:
    from collections.abc import Sequence


def column(title: str = "x", width: int = 5, grows: int = 0, *, drawn: bool = False, least: int = 0) -> Column[str]:
    return Column(title, lambda item, _: item, width, grows, drawn=drawn, least=least)


@pytest.mark.parametrize(
    ("listed", "needs", "room", "expected"),
    [
        pytest.param([column(width=10), column(width=10, grows=1)], [4, 30], 50, [6, 43], id="short texts give room"),
        pytest.param([column(width=10), column(width=10, grows=1)], [10, 90], 50, [10, 39], id="one takes the rest"),
        pytest.param([column(grows=1), column(grows=3)], [50, 50], 41, [13, 27], id="shares where all are cut"),
        pytest.param([column(grows=1), column(grows=3)], [50, 8], 41, [32, 8], id="what one does not need"),
        pytest.param([column(width=5), column(grows=1)], [20, 5], 41, [22, 18], id="a fixed one is not cut either"),
        pytest.param([column("", 1), column(grows=1)], [1, 5], 41, [1, 39], id="a mark is not spaced"),
        pytest.param([column(), column(grows=1, drawn=True)], [5, 5], 41, [5, 35], id="a picture takes the rest"),
        pytest.param([column(width=9), column(width=9)], [9, 9], 10, [9, 9], id="too narrow: it scrolls"),
        pytest.param([column()], [0], 41, [41], id="a single one has all"),
        pytest.param([], [], 41, [], id="none"),
    ],
)
def test_widths(listed: Sequence[Column[str]], needs: Sequence[int], room: int, expected: list[int]) -> None:
    assert columns.widths(listed, needs, room) == expected


COLUMNS = st.lists(
    st.tuples(
        st.builds(column, st.sampled_from(["", "x"]), st.integers(1, 30), st.integers(0, 5), drawn=st.booleans()),
        st.integers(0, WIDEST),
    ),
    min_size=1,
    max_size=8,
)


@given(COLUMNS, st.integers(1, 300))
def test_all_of_the_room_is_used_and_none_wasted(listed: list[tuple[Column[str], int]], room: int) -> None:
    wanted, needs = [one for one, _ in listed], [need for _, need in listed]
    given_widths = columns.widths(wanted, needs, room)
    least = sum(min(one.width, need) for one, need in listed) + len(listed) - 1
    assert sum(given_widths) + len(listed) - 1 == max(room, least)
    cut = [width < need for width, (one, need) in zip(given_widths, listed, strict=True) if not one.drawn]
    roomy = [width > need for width, (one, need) in zip(given_widths, listed, strict=True) if not one.drawn]
    assert not (any(cut) and any(roomy))


def test_the_titles_and_a_sample_of_the_texts_are_measured() -> None:
    wide = Column[str]("a title", lambda item, _: Text(item), 3)
    assert wide.needs([]) == 7
    assert wide.needs(["漢字漢字漢字"]) == 12
    assert wide.needs(["x" * 1000]) == WIDEST
    calls: list[str] = []
    counted = Column[str]("", lambda item, _: calls.append(item) or item, 3)  # type: ignore[func-returns-value]
    assert counted.needs(["xx"] * 100_000) == 3
    assert len(calls) <= columns.SAMPLE
    assert [*columns.sampled(3)] == [0, 1, 2]


def test_a_picture_is_not_measured() -> None:
    assert Column[str]("bar", lambda _, width: "#" * width, 12, drawn=True).needs(["x"]) == 12


def test_columns_are_hidden_shown_and_sorted_by() -> None:
    narrow, layout = column("narrow", least=100), Layout()
    assert not layout.shows(narrow, 80)
    assert layout.shows(narrow, 100)
    layout = layout.with_column("narrow", shown=True)
    assert layout.shows(narrow, 80)
    layout = layout.with_column("narrow", shown=False)
    assert not layout.shows(narrow, 100)
    assert layout == Layout(hidden=frozenset({"narrow"}))
    orders = [layout := layout.sorted_by("a") for _ in range(3)]
    assert [(order.sort, order.descending) for order in orders] == [("a", False), ("a", True), ("", False)]
    assert orders[0].sorted_by("b").sort == "b"


def test_each_table_has_a_layout_of_its_own_and_the_default_is_forgotten() -> None:
    assert columns.remembered("Runs.runs") is None
    one, other = Layout(sort="a", descending=True), Layout(hidden=frozenset({"x"}), shown=frozenset({"y"}))
    columns.remember("Runs.runs", one)
    columns.remember("Files.items", other)
    assert (columns.remembered("Runs.runs"), columns.remembered("Files.items")) == (one, other)
    columns.remember("Runs.runs", Layout())
    assert columns.remembered("Runs.runs") is None
    assert b"Runs" not in (user_state.folder() / "columns.json").read_bytes()


@pytest.mark.parametrize(
    "data", [b"", b"\xff", b"[]", b'{"Runs.runs": 1}', b'{"Runs.runs": {"sort": 1}}', b"[" * 100_000, b"{" * 9]
)
def test_a_damaged_file_is_none(data: bytes) -> None:
    path = user_state.folder() / "columns.json"
    path.parent.mkdir(parents=True)
    path.write_bytes(data)
    assert columns.remembered("Runs.runs") is None
    columns.remember("Runs.runs", Layout(sort="a"))
    assert columns.remembered("Runs.runs") == Layout(sort="a")


def test_the_space_between_columns_is_small() -> None:
    listed = [column(), column(grows=1)]
    assert columns.widths(listed, [5, 5], 200)[0] == 5 + PADDING

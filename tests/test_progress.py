"""What works long reports how far it is."""

from __future__ import annotations

from inspector.progress import named, number, unwatched, watched


def test_items_are_counted_to_the_end() -> None:
    reported: list[tuple[object, ...]] = []
    assert list(watched("abc", lambda *call: reported.append(call), 3, "reading letter")) == ["a", "b", "c"]
    assert reported == [(done, 3, "reading letter") for done in range(4)]
    assert list(watched("abc", unwatched, 3)) == ["a", "b", "c"]


def test_one_of_several_is_named() -> None:
    reported: list[tuple[object, ...]] = []
    watch = named(lambda *call: reported.append(call), "a.sqlite")
    watch(1, 2)
    watch(3, 4, "copying", str)
    assert reported == [(1, 2, "a.sqlite: reading record", number), (3, 4, "a.sqlite: copying", str)]


def test_numbers_are_for_people() -> None:
    assert number(300_000) == "300,000"

"""Noise: what differs between two compiles of the same facts by the same master, as times and random values do.

A difference is noise if both of its sides differ from those two compiles only where they differ from one another. What
is beside the noise counts: the other lines of a text with a time in it, the other values of a list. A line is not
split: of two times, a moment apart, only the seconds differ, and of that of the recorded run all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from inspector import regex
from inspector.compare import meaning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from inspector.compare.differences import Difference, Section

SAME = 100
"""Differences of one place, and resources of a type with titles that differ, that are looked at."""
MOST = 200_000_000
"""Bytes that are compared for one node; what is not compared is no noise. A hostile catalog could have any number of
differences in one place, each of any size."""
_WORD = regex.compile(r"\d+|[^\W\d]+|\W")


class _Known(NamedTuple):
    """A difference between two compiles of the same."""

    difference: Difference
    size: int
    """In bytes."""


class Noise:
    """The differences of two compiles of the same."""

    def __init__(self) -> None:
        self._places: dict[tuple[Section, str, str], list[_Known]] = {}
        self._titles: dict[tuple[Section, str], tuple[list[_Known], list[_Known]]] = {}
        """By type, the resources that only the first and only the second compile has."""
        self._left = MOST

    def __bool__(self) -> bool:
        return bool(self._places)

    def learn(self, differences: Iterable[Difference]) -> None:
        """Add the differences between two compiles of the same."""
        for each in differences:
            known = _Known(each, len(meaning.encoded((each.name, each.before, each.after))))
            lists = [self._places.setdefault((each.section, name, each.part), []) for name in each.names]
            if not each.part and each.change != "changed":
                sides = self._titles.setdefault((each.section, each.name.partition("[")[0]), ([], []))
                lists.append(sides[each.change == "added"])
            for one in lists:
                if len(one) < SAME:
                    one.append(known)

    def covers(self, difference: Difference) -> bool:
        """Whether a difference is noise."""
        for name in difference.names:
            for known, size in self._places.get((difference.section, name, difference.part), ()):
                both = known.before, known.after
                if self._may(size) and fits(*both, difference.before) and fits(*both, difference.after):
                    return True
        return not difference.part and difference.change != "changed" and self._is_titled(difference)

    def _is_titled(self, difference: Difference) -> bool:
        """Whether a resource of one side has a title, and values, that differ each time."""
        firsts, seconds = self._titles.get((difference.section, difference.name.partition("[")[0]), ((), ()))
        values = difference.after if difference.before is None else difference.before
        return any(
            self._may(size + more)
            and _title_fits(one.name, other.name, difference.name)
            and fits(one.before, other.after, values)
            for (one, size), (other, more) in zip(firsts, seconds, strict=False)
        )

    def _may(self, size: int) -> bool:
        self._left -= size
        return self._left >= 0


def fits(one: Any, other: Any, third: Any) -> bool:
    """Whether a value differs from two others, of JSON, only where they differ from one another."""
    if meaning.encoded(one) == meaning.encoded(other):
        return meaning.encoded(one) == meaning.encoded(third)
    match one, other, third:
        case (None, value, _) | (value, None, _):  # there only at times
            return third is None or meaning.encoded(value) == meaning.encoded(third)
        case str(), str(), str():
            lines = [text.splitlines(keepends=True) for text in (one, other, third)]
            return _in_order(lines[0], lines[1], lines[2], _free_where_unequal)
        case list(), list(), list():
            texts = [sorted(map(meaning.encoded, values)) for values in (one, other, third)]
            if texts[0] == texts[1]:
                return texts[0] == texts[2]
            return _in_order(one, other, third, fits)
        case dict(), dict(), dict():
            return all(fits(one.get(name), other.get(name), third.get(name)) for name in {**one, **other, **third})
    return type(third) in (type(one), type(other))


def _free_where_unequal(one: str, other: str, third: str) -> bool:
    return one != other or one == third


def _title_fits(one: str, other: str, third: str) -> bool:
    """Whether a third title fits two others, word by word; any number fits any other: it may be a time."""

    def word(one: str, other: str, third: str) -> bool:
        return one != other or one == third or (one.isdigit() and third.isdigit())

    return one != other and _in_order(_WORD.findall(one), _WORD.findall(other), _WORD.findall(third), word)


def _in_order[T](one: Sequence[T], other: Sequence[T], third: Sequence[T], fit: Callable[[T, T, T], bool]) -> bool:
    """Whether a third sequence fits two others: item by item if they are equally long, else at both ends."""
    if len(one) == len(other):
        return len(third) == len(one) and all(map(fit, one, other, third))
    shorter = min(len(one), len(other))
    head = next((at for at in range(shorter) if one[at] != other[at]), shorter)
    tail = next((at for at in range(shorter - head) if one[-1 - at] != other[-1 - at]), shorter - head)
    return (
        len(third) >= head + tail
        and third[:head] == one[:head]
        and third[len(third) - tail :] == one[len(one) - tail :]
    )  # fmt: skip

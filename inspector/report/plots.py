"""The axes of drawings that stretch with the page: numbers at the left, dates below, and the lines between."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

WIDTH, HEIGHT = 1000, 120
"""Units of a drawing."""
MOST, FEW = 7, 3
"""Labels below an axis, and how many of them there is room for on a telephone."""
EDGE = 13
"""Percent at both ends of an axis where a label in the middle of its column might stand out."""
_STEPS = (1, 2, 4, 6, 8, 10)
"""Between which numbers an axis may end, times a power of ten: half of each is a short number, too."""


class Label(NamedTuple):
    """A text below an axis."""

    text: str
    at: float
    """Its place, in percent of the axis."""
    anchor: str
    """As SVG has it: start, middle or end."""
    fine: bool
    """It is left out where there is little room."""


class Axes(NamedTuple):
    """The numbers and labels beside a drawing."""

    top: float
    """The number at the top."""
    scale: tuple[str, ...]
    """The numbers in words, from the top to the bottom."""
    lines: str
    """The horizontal lines of these numbers, as an SVG path."""
    labels: tuple[Label, ...]


def axes(most: float, names: Sequence[str], written: Callable[[float], str], *, whole: bool = False) -> Axes:
    """Return the axes for values up to ``most`` in columns with these names; ``whole``: they are whole numbers."""
    top = rounded(most)
    numbers = (top, 0.0) if whole and top < 2 else (top, top / 2, 0.0)
    lines = "".join(f"M0 {HEIGHT - HEIGHT * number / top:g}H{WIDTH}" for number in numbers)
    return Axes(top, tuple(map(written, numbers)), lines, _labels(names))


def rounded(most: float) -> float:
    """Return the short number with which an axis ends: the next one that is not less than this."""
    if most <= 0:
        return 1.0
    unit = 10.0 ** math.floor(math.log10(most))
    return next(step for step in _STEPS if step * unit >= most * (1 - 1e-9)) * unit


def _labels(names: Sequence[str]) -> tuple[Label, ...]:
    number = len(names)
    places = range(0, number, -(-number // MOST) or 1)
    made = []
    for order, place in enumerate(places):
        at = round(100 * (place + 0.4) / number, 2)
        anchor = "start" if at < EDGE else "end" if at > 100 - EDGE else "middle"
        made.append(Label(names[place], at, anchor, len(places) > FEW and order % 3 != 0))
    return tuple(made)

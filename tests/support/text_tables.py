"""Tables as commands print them into a pipe: aligned."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def cells(titles: str, lines: Iterable[str]) -> list[list[str]]:
    """The cells of lines below titles of one word each."""
    begins = [titles.index(f" {title}") + 1 if at else 0 for at, title in enumerate(titles.split())]
    return [[line[begin:end].strip() for begin, end in itertools.pairwise([*begins, None])] for line in lines]

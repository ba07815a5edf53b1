"""Results that are remembered for texts which anybody may have sent."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sized

LONGEST = 1000
"""Characters, or bytes, of what a function is given together if its result is remembered."""


def remembered[**Texts, Result](number: int) -> Callable[[Callable[Texts, Result]], Callable[Texts, Result]]:
    """Remember the last results of a function of texts, as ``lru_cache`` does, but not those of long texts.

    Captured ones may have megabytes, and thousands of them would stay in memory.
    """

    def decorate(function: Callable[Texts, Result]) -> Callable[Texts, Result]:
        cached: Any = functools.lru_cache(maxsize=number)(function)
        plain: Any = function

        @functools.wraps(function)
        def result(text: Sized, *more: Sized) -> Any:
            if more:
                return (cached if len(text) + sum(map(len, more)) <= LONGEST else plain)(text, *more)
            return cached(text) if len(text) <= LONGEST else plain(text)

        return result  # type: ignore[return-value]

    return decorate

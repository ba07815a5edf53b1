"""Values as a table holds them: times in microseconds, texts of limited length."""

from __future__ import annotations

import math
from functools import lru_cache

from inspector.privacy import redact
from inspector.text import beginning

LONGEST = 1000
"""Characters of a text; of longer ones the beginning."""
MESSAGE = 2000
"""Characters of a message."""
_CACHED = 200
"""Characters of a text whose masked form is cached."""
_LATEST = 253_402_300_799
"""The end of the year 9999, in seconds since the epoch."""


def micros(time: float) -> int:
    """A time as a spool holds it: microseconds since the epoch, within the years that a table can hold."""
    return 0 if math.isnan(time) else round(min(max(time, 0.0), _LATEST) * 1e6)


def short(value: str | None) -> str | None:
    """A text as long as a table holds it."""
    return value if value is None or len(value) <= LONGEST else beginning(value, LONGEST)


def message(value: str) -> str:
    """A message as long as a table holds it."""
    return beginning(value, MESSAGE)


def masked(value: str) -> str:
    """A text with masks instead of likely secrets. The same paths and values of facts come again and again."""
    return _masked(value) if len(value) <= _CACHED else redact.text(value)


@lru_cache(maxsize=32_768)
def _masked(value: str) -> str:
    return redact.text(value)

"""The known messages, for the commands that explain one."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from inspector import installation
from inspector.analysis import known_errors

if TYPE_CHECKING:
    from inspector.analysis.known_errors import KnownError


@cache
def known() -> tuple[KnownError, ...]:
    """Return them all; read once."""
    return known_errors.decoded(installation.messages())

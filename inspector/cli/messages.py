"""The known messages, and where messages are printed, for the commands that explain one."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from inspector import installation
from inspector.analysis import known_errors
from inspector.analysis.origins import Origins
from inspector.explain import printed_by

if TYPE_CHECKING:
    from inspector.analysis.known_errors import KnownError


@cache
def known() -> tuple[KnownError, ...]:
    """Return them all; read once."""
    return known_errors.decoded(installation.messages())


def printer(message: str) -> str:
    """Return who prints a message, where and when; empty if that is not known."""
    return printed_by.printed_by(_origins().find(message))


@cache
def _origins() -> Origins:
    return Origins(installation.origins())

"""Endpoint groups, quotations and header values that several rules share."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from inspector import clocks
from inspector.text import ends

if TYPE_CHECKING:
    from inspector.model import Exchange
    from inspector.rules import ExchangeCase

MOST = 200
"""Most characters of captured text that a message quotes."""

YEAR = 365 * clocks.DAY


def brief(text: str) -> str:
    """Return captured text on one line, shortened in the middle: its end names file and line."""
    line = " ".join(text.split())
    return ends(line, MOST)


def major(version: str | None) -> int:
    """Return the first number of a version, 0 if there is none."""
    head = (version or "").partition(".")[0]
    return int(head) if head.isascii() and head.isdigit() and len(head) < 4 else 0


def media_type(case: ExchangeCase) -> str | None:
    """Return the answer's media type without parameters, in lower case; None without the header."""
    response = case.exchange.response
    header = response.header("content-type") if response else None
    return None if header is None else _without_parameters(header)


@lru_cache(maxsize=256)
def _without_parameters(header: str) -> str:
    return header.partition(";")[0].strip().lower()


def waited(exchange: Exchange) -> float:
    """Return the seconds from the complete request to the first byte of the answer, or to the end without an answer."""
    requested = exchange.request.ended or exchange.time
    response = exchange.response
    answered = response.started if response else exchange.failed
    return max(0.0, (answered or requested) - requested)


def retry_after(value: str | None, now: float) -> float | None:
    """Return the seconds to wait by a Retry-After header, a number or a date; None if agents cannot read it."""
    if value is None:
        return None
    if value.strip().isascii() and value.strip().isdigit():
        return min(float(value), YEAR)
    until = clocks.http_date(value)
    return None if until is None else min(max(0.0, until - now), YEAR)

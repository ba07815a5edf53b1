"""What several rules say or ask in the same way."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from inspector import clocks

if TYPE_CHECKING:
    from inspector.model import Exchange
    from inspector.rules import Case

MOST = 200
"""Characters of captured text that a message quotes."""

YEAR = 365 * clocks.DAY

PARSED = ("node", "environment_check", "plugin_list", "catalog", "file_metadata", "file_metadatas")
"""What agents ask for and read by its Content-Type."""
CONTENT = ("file_content", "plugin_file", "static_file_content")
RUN = (*PARSED, *CONTENT, "file_bucket_file", "facts", "report")
"""What a run asks for, the CA's endpoints aside."""
CA = ("ca", "crl", "certificate", "certificate_request", "certificate_request_lookup", "renewal")


def brief(text: str) -> str:
    """Captured text on one line, short enough for a message: its beginning, and its end, which names file and line."""
    line = " ".join(text.split())
    return line if len(line) <= MOST else f"{line[: MOST // 2 - 1]}…{line[-MOST // 2 :]}"


def major(version: str | None) -> int:
    """The first number of a version, 0 if there is none."""
    head = (version or "").partition(".")[0]
    return int(head) if head.isascii() and head.isdigit() and len(head) < 4 else 0


def media_type(case: Case) -> str | None:
    """The answer's media type without its parameters, lower case; None without the header."""
    response = case.exchange.response
    told = response.header("content-type") if response else None
    return None if told is None else _bare(told)


@lru_cache(maxsize=256)
def _bare(told: str) -> str:
    return told.partition(";")[0].strip().lower()


def waited(exchange: Exchange) -> float:
    """Seconds from the whole request to the first byte of the answer, or to the end if none came."""
    asked = exchange.request.ended or exchange.time
    response = exchange.response
    answered = response.started if response else exchange.failed
    return max(0.0, (answered or asked) - asked)


def retry_after(value: str | None, now: float) -> float | None:
    """Seconds that a Retry-After header asks for, a number or a date; None if agents can't read it."""
    if value is None:
        return None
    if value.strip().isascii() and value.strip().isdigit():
        return min(float(value), YEAR)
    until = clocks.http_date(value)
    return None if until is None else min(max(0.0, until - now), YEAR)

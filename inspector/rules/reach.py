"""Why no connection to the master was made, from the error of an exchange.

The texts are those of both proxies and of imported flows: the operating system's, and asyncio's, which say no more than
``[Errno 111] Connect call failed``.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING

from inspector import regex

if TYPE_CHECKING:
    from inspector.model import Exchange
    from inspector.rules.cases import ExchangeCase


class Failure(Enum):
    """What happened instead of a connection."""

    REFUSED = auto()
    UNKNOWN_NAME = auto()
    UNREACHABLE = auto()


# The numbers of errno(3) on Linux, and of getaddrinfo(3). Of several addresses the first that refuses counts.
_TEXTS = (
    (Failure.REFUSED, r"\[errno 111\]|connection refused"),
    (Failure.UNKNOWN_NAME, r"\[errno -[235]\]|name or service not known|name resolution|nodename nor servname"),
    (Failure.UNREACHABLE, r"\[errno 1(?:01|10|13)\]|no route to host|network is unreachable|timed out"),
)
_PATTERNS = tuple((failure, regex.compile(text, regex.IGNORECASE)) for failure, text in _TEXTS)
_TARGETS = tuple(
    regex.compile(text) for text in (r"the master (\S+):(\d+): ", r"Connect call failed \('([^']+)', (\d+)")
)


def failure(exchange: Exchange) -> Failure | None:
    """Return why there was no connection for a request; None if there was one, or if it is not known."""
    error = exchange.error
    if not error or exchange.response is not None or (exchange.master and exchange.master.connected is not None):
        return None
    return next((failure for failure, pattern in _PATTERNS if pattern.search(error)), None)


def target(exchange: Exchange) -> str:
    """Return the address or name that was tried, and the port."""
    for pattern in _TARGETS:
        if found := pattern.search(exchange.error or ""):
            return f"{found[1]}:{found[2]}"
    master = exchange.master
    return f"{master.address}:{master.port}" if master and master.address else "the master"


def since(case: ExchangeCase) -> str:
    """Return what to add if the master had answered in this run."""
    return "; it had answered before in this run" if case.run.answered else ""

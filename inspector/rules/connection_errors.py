"""Why a connection to the master was not made, or did not last, from the words of a record.

The texts are those of both proxies and of imported flows: the operating system's, OpenSSL's, and asyncio's, which
say no more than ``[Errno 111] Connect call failed``.
"""

from __future__ import annotations

from enum import Enum, auto
from typing import TYPE_CHECKING

from inspector import regex, text

if TYPE_CHECKING:
    from inspector.model import Exchange, Leg
    from inspector.rules.cases import ExchangeCase
    from inspector.runs.observations import Unanswered


class Failure(Enum):
    """What happened instead of a connection."""

    SITE_PROXY = auto()
    REFUSED = auto()
    UNKNOWN_NAME = auto()
    UNREACHABLE = auto()


# The numbers of errno(3) on Linux, and of getaddrinfo(3). Of several addresses the first that refuses counts. Why an
# HTTP proxy in between does not connect says nothing about the master.
_TEXTS = (
    (Failure.SITE_PROXY, r"the http proxy \S+ (?:cannot be reached|does not connect with)"),
    (Failure.REFUSED, r"\[errno 111\]|connection refused"),
    (Failure.UNKNOWN_NAME, r"\[errno -[235]\]|name or service not known|name resolution|nodename nor servname"),
    (Failure.UNREACHABLE, r"\[errno 1(?:01|10|13)\]|no route to host|network is unreachable|timed out"),
)
_PATTERNS = tuple((failure, regex.compile(pattern, regex.IGNORECASE)) for failure, pattern in _TEXTS)
NO_HANDSHAKE = "the master did not answer the TLS handshake"
"""What the error of a request begins with for which TCP was connected, and nothing came then."""
_TARGETS = tuple(
    regex.compile(pattern)
    for pattern in (r"the master (\S+):(\d{1,5}): ", r"Connect call failed \('([^']+)', (\d{1,5})")
)
_CLOSED = regex.compile(
    r"(?:peer|server|master) (?:closed|disconnected)|connection (?:closed|was reset|reset)|reset by peer"
    r"|complete message body|end of file|\beof\b",
    regex.IGNORECASE,
)

_OURS = regex.compile(
    r"too many requests without a verified certificate are under way"
    r"|the proxy (?:ended|failed|refused the request: .*|refused the master's answer: .*|closed the connection: .*)",
    regex.DOTALL,
)


def by_proxy(exchange: Exchange) -> bool:
    """Whether the proxy ended the exchange by itself, because of a limit or of what it does not pass on."""
    return ours(exchange.error)


def ours(reason: str | None) -> bool:
    """Whether a request has no answer because the proxy did not pass it on."""
    return bool(reason and _OURS.fullmatch(reason))


def failure(exchange: Exchange) -> Failure | None:
    """Return why there was no connection for a request; None if there was one, or if it is not known."""
    return None if exchange.response is not None else _failure(exchange.error, exchange.master)


def _failure(error: str | None, leg: Leg | None) -> Failure | None:
    if not error or (leg and leg.connected is not None):
        return None
    return next((failure for failure, pattern in _PATTERNS if pattern.search(error)), None)


def unresolved(failed: Unanswered) -> str:
    """Return the name of the master that did not resolve for a request; empty if that is not why, or not known."""
    if _failure(failed.reason, failed.leg) is not Failure.UNKNOWN_NAME:
        return ""
    return _target(failed.reason, failed.leg).rpartition(":")[0]


def closed(reason: str | None) -> bool:
    """Whether a connection to the master ended because the other side closed or reset it."""
    return bool(reason and _CLOSED.search(reason))


def target(exchange: Exchange) -> str:
    """Return the address or name that was tried, and the port."""
    return _target(exchange.error, exchange.master)


def _target(error: str | None, leg: Leg | None) -> str:
    for pattern in _TARGETS:
        if found := pattern.search(error or ""):
            return text.address(found[1].strip("[]"), int(found[2]))
    return place(leg)


def place(leg: Leg | None) -> str:
    """Return the address and port that a connection to the master was for."""
    if leg is None or leg.address is None or leg.port is None:
        return "the master's address"
    return text.address(leg.address, leg.port)


def since(case: ExchangeCase) -> str:
    """Return what to add if the master had answered in this run."""
    return "; it had answered before in this run" if case.run.answered else ""

"""The head of a CONNECT request: what an agent sends to an HTTP proxy before anything else (RFC 9110, 9.3.6)."""

from __future__ import annotations

from dataclasses import dataclass

from inspector import regex
from inspector.errors import InspectorError
from inspector.host.puppetconf import split_address

LONGEST = 8192
"""Bytes of a head; agents send some two hundred."""
ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
_LINE = regex.compile(rb"CONNECT ([!-~]{1,300}) HTTP/1\.[01]\r?\n")
_UNPRINTABLE = regex.compile(r"[^ -~]+")


class Unreadable(InspectorError):
    """It is no CONNECT request."""


@dataclass(frozen=True, slots=True)
class ConnectRequest:
    """What the agent asks for."""

    server: tuple[str, int]
    """The name and port of the server, as the agent calls it."""
    size: int
    """Bytes of the head."""


def read(data: bytes) -> ConnectRequest | None:
    """Read a head at the beginning of what arrived; None as long as it is not complete. Raises Unreadable."""
    end = min((at + len(blank) for blank in (b"\r\n\r\n", b"\n\n") if (at := data.find(blank)) >= 0), default=0)
    if not end and len(data) <= LONGEST:
        return None
    line = _LINE.match(data)
    if line is None or not 0 < end <= LONGEST:
        raise Unreadable("it is no CONNECT request", "Only an agent that uses this as its HTTP proxy can connect.")
    try:
        host, port = split_address(line[1].decode("ascii"), 0)
    except InspectorError as error:
        raise Unreadable(error.message, error.hint) from error
    if not port:
        raise Unreadable(f"{host!r} has no port", "")
    return ConnectRequest((host.lower().rstrip("."), port), end)


def refusal(reason: str, status: int = 502) -> bytes:
    """Return the answer to a request for a server that is not reached; agents print the status and the reason."""
    reason = printable(reason)
    return f"HTTP/1.1 {status} {reason}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".encode("ascii")


def printable(reason: str) -> str:
    """Return a reason as it can stand in the first line of an answer."""
    return _UNPRINTABLE.sub(" ", reason)[:500]

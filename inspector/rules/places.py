"""Places in a record that show a deviation, for ``Statement(at=...)``: which tab, which part, what to look for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from inspector.model import Place
from inspector.protocol import documents as d
from inspector.text import READ, decisive

if TYPE_CHECKING:
    from inspector.model import Message
    from inspector.rules.cases import ExchangeCase

REQUEST_LINE = Place("request", "headers", "HTTP/")
"""Method and URL of a request."""
STATUS = Place("response", "headers", "HTTP/")
"""The status line of an answer."""
NO_ANSWER = Place("meaning", "no answer", "No answer")
"""Why there is no answer."""
REFUSAL = Place("tls", "tls", "failed: ")
"""Why a handshake failed."""
NEEDLE = 120
"""Characters of a text that is looked for."""
SENTENCE = 400
"""The same of an error message, which is marked to its end."""


def request_header(case: ExchangeCase, name: str) -> Place:
    """Return the place of a header of the request; without it, of the request line."""
    return _header(case.exchange.request, name, "request") or REQUEST_LINE


def response_header(case: ExchangeCase, name: str) -> tuple[Place, ...]:
    """Return the place of a header of the answer; without it, of the status line."""
    place = _header(case.exchange.response, name, "response") if case.exchange.response else None
    return (place,) if place else (STATUS, NO_ANSWER)


def _header(message: Message, name: str, side: Literal["request", "response"]) -> Place | None:
    for header, value in message.headers:
        if header.lower() == name:
            # Name and value are two cells of a row; a secret value is not shown.
            return Place(side, "headers", f"{header}  {value[:NEEDLE]}", f"{header}  ")
    return None


def answer(document: d.Document | None) -> tuple[Place, ...]:
    """Return the place of the master's reason for refusing; without one, of the status line."""
    place = error(document.message) if isinstance(document, d.ErrorDocument) else None
    return (place, STATUS, NO_ANSWER) if place and place.needle else (STATUS, NO_ANSWER)


def meaning(needle: str, part: str = "", fallback: str = "") -> Place:
    """Return a place in what the request or the answer means."""
    return Place("meaning", part, needle[:NEEDLE], fallback)


def error(needle: str) -> Place:
    """Return a place in the text of an error that the master answered with."""
    line = needle.strip()[:READ].partition("\n")[0]
    wrong, begin = decisive(line)[:SENTENCE], line[:NEEDLE]
    return Place("meaning", "error", wrong, begin if begin != wrong else "")


def tls(needle: str, fallback: str = "") -> Place:
    """Return a place in what is known of the TLS connections."""
    return Place("tls", "tls", needle[:NEEDLE], fallback)


def timing(row: str) -> Place:
    """Return a row of the times of a record."""
    return Place("timing", "timing", row)


WAITING = (timing("waiting for the master"), timing("waiting (no answer)"), timing("total"))
"""How long the master took, with or without an answer."""


def body(side: Literal["request", "response"], needle: str) -> Place:
    """Return a place in a body."""
    return Place(side, "body", needle[:NEEDLE])


def csr(text: str) -> Place:
    """Return a place in a signing request that the agent sent."""
    return Place("meaning", "signing request", text[:NEEDLE])


def certificate(text: str) -> Place:
    """Return a place in certificates that the master sent."""
    return Place("meaning", "certificates", text[:NEEDLE])


def crl(text: str) -> Place:
    """Return a place in revocation lists that the master sent."""
    return Place("meaning", "crls", text[:NEEDLE])


def keyed(text: str) -> tuple[Place, ...]:
    """Return the places of a text in a signing request, a certificate of the master or a presented certificate."""
    return (csr(text), certificate(text), tls(text))


def header(side: Literal["request", "response"], name: str) -> Place:
    """Return the place of a header in whichever of the records has it."""
    return Place(side, "headers", f"{name}  ")

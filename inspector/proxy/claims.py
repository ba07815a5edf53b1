"""Headers that claim an identity towards a master: never passed on from an agent, in whatever spelling."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from inspector import regex

if TYPE_CHECKING:
    from collections.abc import Sequence

    type Fields = Sequence[tuple[bytes, bytes]]

_CLAIMS = regex.compile(rb"x-client.*|x-ssl.*|ssl(-.*)?|client-cert(-.*)?|(x-)?forwarded-client-cert(-.*)?")
"""Headers that claim an identity towards a master behind a TLS terminator (docs/protocol.md#identity-in-headers; RFC
9440), as ``_canonical`` writes them."""
_FRAMING = frozenset({b"content-length", b"transfer-encoding"})
"""Headers that say where a message ends."""
LONG = 64
"""Bytes of a name that is not remembered: a thousand of the longest ones would be 256 MB."""
_PUNCTUATION = regex.compile(rb"[^0-9A-Za-z]+")
"""Characters of a header's name that gateways (CGI, Rack) treat alike."""


def removed(fields: Fields) -> tuple[tuple[tuple[bytes, bytes], ...], tuple[str, ...]]:
    """Return the headers without those that claim an identity, and the names of the latter, each once."""
    if not (claims := {name for name, _ in fields if _claims(name)}):
        return tuple(fields), ()
    names: dict[bytes, str] = {}
    for name, _ in fields:
        if name in claims:
            names.setdefault(name.lower(), name.decode("latin-1"))
    # All at once: removing them one by one is quadratic.
    return tuple(field for field in fields if field[0] not in claims), tuple(names.values())


def ambiguous(fields: Fields) -> str | None:
    """Return why a gateway may read these headers in another way; None if none may.

    It may read further headers after a line end within a value, another header that says where the message ends, or an
    instruction to remove headers that say who the agent is.
    """
    for name, value in fields:
        if b"\r" in value or b"\n" in value or b"\0" in value:  # RFC 9112, 5.2
            return "a header contains a line end"
        canonical = _canonical(name)
        if canonical in _FRAMING and name.lower() != canonical:
            return "a header resembles the one that says where the message ends"
        if canonical == b"connection" and any(
            _claims(option) or _canonical(option) in _FRAMING for option in value.split(b",")
        ):
            return "the agent asks for the removal of headers that matter"
    return None


def _claims(name: bytes) -> bool:
    return _CLAIMS.fullmatch(_canonical(name)) is not None if len(name) > LONG else _known_claims(name)


def _canonical(name: bytes) -> bytes:
    """Return a header's name as the most tolerant gateway reads it."""
    return _spelled(name) if len(name) > LONG else _known_canonical(name)


def _spelled(name: bytes) -> bytes:
    return _PUNCTUATION.sub(b"-", name).strip(b"-").lower()


@functools.lru_cache(maxsize=1024)
def _known_claims(name: bytes) -> bool:
    return _CLAIMS.fullmatch(_known_canonical(name)) is not None


_known_canonical = functools.lru_cache(maxsize=1024)(_spelled)

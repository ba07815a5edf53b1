"""Values in DER with other texts.

Only what certificates, signing requests and CRLs consist of; no schema. What is not DER stays as it is.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, NamedTuple

from inspector.protocol.der import places

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from inspector.protocol.der import DerValue

_DEPTH = 30
_CONSTRUCTED, _ENDLESS = 0x20, 0x80
_OCTETS = 0x04
_TEXTS = {0x0C: "utf-8", 0x13: "latin-1", 0x14: "latin-1", 0x16: "latin-1", 0x1E: "utf-16-be",
          0x81: "latin-1", 0x82: "latin-1", 0x86: "latin-1"}  # fmt: skip
"""Tags of texts; the last three are those of names in subjectAltName and of places in others."""
_NAMES, _SERIAL = (0x81, 0x82, 0x86), 20
"""In others they are the tags of serial numbers, which have this length at most."""
_ADDRESS = 0x87
_SHORT = 8
"""The longest octets that are no text and no key: flags, numbers."""


def value(tag: int, contents: bytes) -> bytes:
    """Return a value as DER."""
    size = len(contents)
    if size < _ENDLESS:
        return bytes([tag, size]) + contents
    length = size.to_bytes((size.bit_length() + 7) // 8)
    return bytes([tag, _ENDLESS + len(length)]) + length + contents


class Changes(NamedTuple):
    """The functions that replace values."""

    text: Callable[[str], str]
    address: Callable[[bytes], bytes]
    """The one for addresses of 4 or 16 bytes."""
    salt: bytes
    """Makes a digest of octets that are neither text nor the identifier of a key."""
    identifiers: Mapping[bytes, bytes] = {}
    """The new identifiers of keys."""


def rewritten(der: bytes, place: DerValue, changes: Changes, depth: int = 0) -> bytes:
    """Return a value with other texts, addresses, identifiers and octets."""
    whole, tag, begin, end = place
    contents = der[begin:end]
    new = contents
    if contents in changes.identifiers:
        new = changes.identifiers[contents]
    elif tag in _TEXTS:
        old = contents.decode(_TEXTS[tag], "replace")
        number = tag in _NAMES and len(contents) <= _SERIAL and not old.isprintable()
        changed = old if number else changes.text(old)
        new = contents if changed == old else changed.encode(_TEXTS[tag], "replace")
    elif tag == _ADDRESS and len(contents) in (4, 16):
        new = changes.address(contents)
    elif (tag & _CONSTRUCTED or tag == _OCTETS) and depth < _DEPTH:
        inner = places(der, begin, end)
        if inner and inner[-1][3] == end:
            new = b"".join(rewritten(der, item, changes, depth + 1) for item in inner)
        elif tag == _OCTETS and contents.isascii() and contents.decode("ascii").isprintable():
            new = changes.text(contents.decode("ascii")).encode("utf-8", "replace")
        elif tag == _OCTETS and len(contents) > _SHORT:
            new = hashlib.shake_256(changes.salt + contents).digest(len(contents))
    return der[whole:end] if new == contents else value(tag, new)

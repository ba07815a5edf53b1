"""Certificates, signing requests and CRLs that bodies contain as PEM."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING

from inspector import regex
from inspector.privacy import rewrite
from inspector.protocol import bodies

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inspector.model import Message

PEM = regex.compile(
    r"(-----BEGIN ((?:NEW )?CERTIFICATE REQUEST|(?:X509 |TRUSTED )?CERTIFICATE|X509 CRL)-----\s*)([A-Za-z0-9+/=\s]*?)"
    r"(\s*-----END ([A-Z0-9 ]{1,40})-----)"
)
"""A block: what stands before its content, its label, the content, what stands after it, the label at the end."""


def plain(message: Message) -> bytes:
    """Return a body without its Content-Encoding; as it is if that is not correct."""
    return unpacked(message)[0]


def unpacked(message: Message) -> tuple[bytes, bool]:
    """Return a body without its Content-Encoding, and whether that was correct."""
    try:
        return bodies.plain(message), True
    except bodies.Unreadable:
        return message.body, False


def decoded(text: str) -> bytes | None:
    """Return the DER of a block's content; None if it is not base64."""
    try:
        return base64.b64decode(text)
    except (binascii.Error, ValueError):
        return None


def ders(message: Message) -> Iterator[bytes]:
    """Yield the DER of what a body contains as PEM."""
    body = plain(message)
    if b"-----BEGIN " not in body:
        return
    for leaf in rewrite.leaves(rewrite.anything(body, rewrite.media(message)).top):
        for found in PEM.finditer(leaf.value) if isinstance(leaf.value, str) else ():
            if (der := decoded(found[3])) is not None:
                yield der

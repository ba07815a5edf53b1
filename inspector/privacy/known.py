"""The secrets of a whole capture, found again wherever they occur and however they are encoded.

A value that one record marks as secret is secret in all of them: in the text of an error, in a title, in the base64 of
a file.
"""

from __future__ import annotations

import base64
import binascii
import bisect
import html
import itertools
import json
import zlib
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus, unquote

from inspector import regex
from inspector.privacy.names import MASK

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

SHORTEST = 5
"""Characters of the shortest value that is searched: a shorter one may occur anywhere."""
_PIECE = 64
"""Longer secrets are searched in pieces, so that the time does not depend on their length."""
_CUT = 1000
"""Characters before or after a cut that are looked at."""
_LINE = 12
"""The shortest line of a secret that is one by itself."""
_PACKED = regex.compile(r"[A-Za-z0-9+/_-]{24,}")
_ESCAPE = regex.compile(r"\\{1,4}u([0-9A-Fa-f]{4})")
_DEPTH = 3
"""Encodings within each other."""
_UNPACKED = 8 * 2**20
"""Bytes of compressed data in one text that are looked at."""
_STARTS = (b"\x1f\x8b\x08", b"x\x9c", b"x\x01", b"x\xda", b"x\x5e")
"""How gzip and zlib begin."""
_START = regex.compile("\x1f\x8b\x08|x\x9c|x\xda")
_STREAMS = 32
"""Places in one text where compressed data may begin."""


class KnownSecrets:
    """Values that must not leave, in any form."""

    def __init__(self, secrets: Iterable[str] = (), learned: Callable[[], None] = lambda: None) -> None:
        """``learned`` is called with each new one: a text may have another result now."""
        self._learned = learned
        self._secrets: set[str] = set()
        self._forms: dict[str, dict[int, set[str]]] = {}
        """By their first characters and their length."""
        for secret in secrets:
            self.add(secret)

    def add(self, secret: str) -> None:
        """Learn a secret."""
        if len(secret) < SHORTEST or secret in self._secrets:
            return
        self._learned()
        self._secrets.add(secret)
        lines = [line.strip() for line in secret.splitlines()]
        for text in (secret, *(line for line in lines if len(line) >= _LINE)):
            for piece in _pieces(text):
                for form in _forms(piece):
                    if len(form) >= SHORTEST:
                        self._forms.setdefault(form[:SHORTEST], {}).setdefault(len(form), set()).add(form)

    def masked(self, text: str) -> str:
        """Return a text with a mask instead of each of them; only the mask if one is in an unusual
        encoding."""
        if not self._forms or len(text) < SHORTEST:
            return text
        text = self.replaced(text)
        return MASK if self._hidden(text, _Budget(_UNPACKED), _DEPTH) else text

    def _hidden(self, text: str, budget: _Budget, depth: int) -> bool:
        """Whether a secret is in what a text means in other encodings, also in two of them, one in the other."""
        return (
            any(
                self.replaced(view) != view or (depth > 1 and self._hidden(view, budget, depth - 1))
                for view in _views(text, budget)
            )
            or budget.exceeded
        )

    def replaced(self, text: str) -> str:
        """Return a text with a mask instead of each of them, as far as they are written in a usual way: much faster."""
        return replaced(text, self._forms)


class QuotedSecrets:
    """Secrets of a record, looked for in many texts that may quote them: the time for a text hardly depends on how many
    there are, nor on how they begin."""

    def __init__(self, secrets: Iterable[str]) -> None:
        self._starts: dict[str, dict[int, set[str]]] = {}
        """Their pieces, by their first characters and their length."""
        self._ordered = sorted({secret for secret in secrets if len(secret) >= SHORTEST})
        self._turned: list[str] | None = None
        """The same, each from its end."""
        for secret in self._ordered:
            for piece in _pieces(secret):
                self._starts.setdefault(piece[:SHORTEST], {}).setdefault(len(piece), set()).add(piece)

    def masked(self, text: str) -> str:
        """Return a text with a mask instead of each of them, also of those of which ``…`` has cut off the beginning or
        the end."""
        if not self._ordered:
            return text
        pieces = text.split("…")
        if len(pieces) > 1 and self._turned is None:
            self._turned = sorted(secret[::-1] for secret in self._ordered)
        for at in range(1, len(pieces)):
            pieces[at - 1] = _without(pieces[at - 1], self._ordered)
            pieces[at] = _without(pieces[at][::-1], self._turned or [], MASK[::-1])[::-1]
        return replaced("…".join(pieces), self._starts)


def _without(piece: str, ordered: list[str], mask: str = MASK) -> str:
    """Return a piece of text without the longest beginning of a secret at its end."""
    for begin in range(max(0, len(piece) - _CUT), len(piece) - SHORTEST + 1):
        place = bisect.bisect_left(ordered, piece[begin:])
        if place < len(ordered) and ordered[place].startswith(piece[begin:]):
            return piece[:begin] + mask
    return piece


def _pieces(text: str) -> Iterator[str]:
    for begin in range(0, len(text), _PIECE):
        # The last piece is a whole one too: it begins earlier.
        yield text[max(0, min(begin, len(text) - _PIECE)) :][:_PIECE]


def replaced(text: str, forms: Mapping[str, Mapping[int, Collection[str]]]) -> str:
    """Return a text with a mask instead of each of the texts, which are by their first characters and their length.
    Those that overlap or follow each other have one mask: the pieces of a long one do."""
    parts: list[str] = []
    end, masked = 0, False
    for position in range(len(text) - SHORTEST + 1):
        lengths = forms.get(text[position : position + SHORTEST])
        if lengths is None:
            continue
        size = max((size for size, same in lengths.items() if text[position : position + size] in same), default=0)
        if not size:
            continue
        if not masked or position > end:
            parts += [text[end:position], MASK]
        end, masked = max(end, position + size), True
    return "".join([*parts, text[end:]]) if masked else text


def _forms(secret: str) -> set[str]:
    """Return the ways in which a text may be written."""
    as_json = {json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]}
    plain = {secret, html.escape(secret), *as_json, *(form.replace("/", "\\/") for form in as_json)}
    plain |= {
        quoted for form in (quote(secret, safe=""), quote(secret), quote_plus(secret)) for quoted in (form, quote(form))
    }
    raw = {secret.encode("utf-8", "replace"), secret.encode("latin-1", "replace")}
    wide = {secret.encode("utf-16-le", "replace"), secret.encode("utf-16-be", "replace")}
    made = plain | {data.decode("latin-1") for data in raw | wide}
    for data in raw | wide:
        made |= {data.hex(), data.hex().upper(), *_base64(data)}
    return made


def _base64(data: bytes) -> Iterator[str]:
    """Yield the base64 of data that stands anywhere in longer data: what depends on neither side."""
    for before in range(3):
        encoded = base64.b64encode(b"\0" * before + data)
        inner = encoded[(before * 8 + 5) // 6 : (before + len(data)) * 8 // 6].decode()
        yield inner
        yield inner.replace("+", "-").replace("/", "_")


class _Budget:
    """Bytes that may still be unpacked. If there are more, nobody knows what is in them."""

    def __init__(self, size: int) -> None:
        self._left = size
        self.exceeded = False

    def unpacked(self, data: bytes) -> str:
        """Return what compressed data contains, up to the first error."""
        try:
            made = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32).decompress(data, self._left + 1)
        except zlib.error:
            return ""
        self._left -= len(made)
        if self._left < 0:
            self._left, self.exceeded = 0, True
        return made.decode("latin-1")


def _views(text: str, budget: _Budget) -> Iterator[str]:
    """Yield what a text means in other encodings."""
    if "%" in text and (plain := unquote(text)) != text:
        yield plain
    if "\\" in text:
        plain = _ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)
        if plain != text:
            yield plain
    if "\0" in text:
        yield text.replace("\0", "")
    if "&" in text and (plain := html.unescape(text)) != text:
        yield plain
    if "\n" in text[:-1] and len(text) >= _LINE:
        yield "".join(text.split())
    for found in itertools.islice(_START.finditer(text), _STREAMS):
        if unpacked := budget.unpacked(text[found.start() :].encode("latin-1", "replace")):
            yield unpacked
    for run in _PACKED.finditer(text):
        data = _decoded(run[0])
        if data.startswith(_STARTS) and (unpacked := budget.unpacked(data)):
            yield unpacked


def _decoded(run: str) -> bytes:
    run = run.replace("-", "+").replace("_", "/")
    try:
        return base64.b64decode(run[: len(run) // 4 * 4])
    except (binascii.Error, ValueError):
        return b""

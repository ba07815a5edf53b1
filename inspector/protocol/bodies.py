"""Decode a message's bytes to a structure: Content-Encoding, notation, escapes; all within limits.

Raises Unreadable, which ``decode`` turns into ``Undecodable``.
"""

from __future__ import annotations

import base64
import binascii
import zlib
from array import array
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any

import msgspec

from inspector import regex
from inspector.protocol import ruby_yaml

if TYPE_CHECKING:
    from inspector.model import Message

MAX_PLAIN = 64 * 2**20
"""Maximum bytes of a body without its Content-Encoding. A catalog of 2,000 resources has 1 MB."""
MAX_PACKED = 16 * 2**20
"""The same limit for msgpack, whose values may be one byte each."""
MAX_ENCODINGS = 4
MAX_DEPTH = 500
"""Maximum nesting; views and JSON writers recurse."""
MAX_VALUES = 3_000_000
"""Maximum number of values in a JSON body; a list or mapping counts twice. A value takes about 100 bytes of memory;
a catalog of 10 MB has 400,000."""
MAX_CONTAINERS = 1_000_000
"""The same limit for lists and mappings in msgpack."""
MAX_FIELDS = 10_000
"""Maximum number of fields in a form."""
MAX_FIELD = 2**16
"""Maximum bytes of a form's field other than the facts."""
MAX_STRAYS = 10_000
"""Maximum number of percent signs in a form that are not escapes: clients escape them."""

WRONG = (msgspec.MsgspecError, ValueError, TypeError, RecursionError, OverflowError, ruby_yaml.Refused)
HTML = "an HTML page, nothing of Puppet's: something in between answered, or the bare web server"
YAML = frozenset({"text/yaml", "application/x-yaml", "application/yaml"})
PACKED = frozenset({"application/x-msgpack", "application/msgpack", "application/vnd.puppet.rich+msgpack"})


class Unreadable(Exception):
    """The body is malformed; the text is the reason."""


# -- encodings ------------------------------------------------------------------------------------


_SMALL = 2**18
"""Bytes of a body, packed and unpacked, that is kept until two others were unpacked."""
_recent: list[tuple[bytes, str, bytes]] = [(b"", "", b""), (b"", "", b"")]
"""The bodies that were unpacked last, of a request and its response: several parts of the program look at each."""


def plain(message: Message) -> bytes:
    """Return the body without its Content-Encoding. Raises Unreadable."""
    body = message.body
    if not body:
        return body
    if len(body) > MAX_PLAIN:
        raise Unreadable(f"the body has {len(body)} bytes, more than {MAX_PLAIN} are not read")
    declared = (message.header("content-encoding") or "").lower()
    if not declared:
        return body
    for source, encoding, unpacked in _recent:
        if source is body and encoding == declared:
            return unpacked
    encodings = [part.strip() for part in declared.split(",")]
    if len(encodings) > MAX_ENCODINGS:
        raise Unreadable(f"{len(encodings)} content encodings")
    for encoding in reversed(encodings):
        match encoding:
            case "" | "identity":
                pass
            case "gzip" | "x-gzip":
                body = inflate(body, zlib.MAX_WBITS | 16, "gzip")
            case "deflate":
                # RFC 9110 means zlib; some senders mean raw deflate.
                raw = body[:1] and (body[0] & 0x0F) != 8
                body = inflate(body, -zlib.MAX_WBITS if raw else zlib.MAX_WBITS, "deflate")
            case other:
                raise Unreadable(f"unknown content encoding {other[:40]!r}")
    if len(message.body) + len(body) <= _SMALL:
        _recent[:] = [(message.body, declared, body), _recent[0]]
    return body


def inflate(data: bytes, wbits: int, name: str) -> bytes:
    if not data:
        return b""
    inflater = zlib.decompressobj(wbits)
    try:
        body = inflater.decompress(data, MAX_PLAIN)
    except zlib.error as error:
        raise Unreadable(f"the body says it is {name}, but: {error}") from error
    if inflater.unconsumed_tail:
        raise Unreadable(f"the {name} body unpacks to more than {MAX_PLAIN} bytes")
    if not inflater.eof:
        raise Unreadable(f"the {name} body is cut off")
    if inflater.unused_data.strip(b"\0"):
        # gzip may have several parts; neither masters nor agents send them.
        raise Unreadable(f"the {name} body goes on after its end")
    return body


def content_type(message: Message) -> str:
    """Return the media type without parameters, in lower case; empty if there is none."""
    return (message.header("content-type") or "").partition(";")[0].strip().lower()


# -- notations ------------------------------------------------------------------------------------


def utf8(body: bytes) -> bytes:
    """Decode PSON. Its strings are raw bytes: what is not UTF-8 is read as Latin-1, so that nothing is lost."""
    try:
        body.decode()
    except UnicodeDecodeError:
        return body.decode("latin-1").encode()
    return body


def structure[T](body: bytes, media: str, kind: type[T]) -> T:
    """Decode a JSON, PSON, msgpack or YAML body as ``kind``. Raises Unreadable."""
    if not body:
        raise Unreadable("the body is empty")
    try:
        if media in PACKED:
            return _packed(body, kind)
        if media in YAML or (media in ("", "text/plain") and body[:4] == b"--- "):
            return msgspec.convert(ruby_yaml.load(utf8(body)), kind, strict=False)
        if is_html(media, body):
            raise Unreadable(HTML)
        if media == "text/dot":
            raise Unreadable("a picture in dot, which holds names and edges but no values")
        if media == "text/pson":
            body = utf8(body)
            shallow(body)
            return _pson(body, kind)
        shallow(body)
        return msgspec.json.decode(body, type=kind)
    except WRONG as error:
        reason = str(error) or type(error).__name__
        other = None if media in YAML or media in PACKED else looks_like(body)
        raise Unreadable(f"{reason}: it looks like {other}" if other else reason) from error


def is_html(media: str, body: bytes) -> bool:
    start = body[:64].lstrip().lower()
    return media in ("text/html", "application/xhtml+xml") or start.startswith((b"<!doctype html", b"<html"))


def looks_like(body: bytes) -> str | None:
    """The real type of a body with a wrong Content-Type, if its first bytes show it."""
    signs = {b"\x1f\x8b": "gzip", b"--- ": "YAML", b"---\n": "YAML", b"-----BEGIN ": "PEM", b"<": "HTML or XML"}
    if found := next((name for sign, name in signs.items() if body.startswith(sign)), None):
        return found
    return "msgpack" if body[:1] and (0x81 <= body[0] <= 0x9F or body[0] in (0xDC, 0xDD, 0xDE, 0xDF)) else None


_KEPT = b'"[]{},'
_DROPPED = bytes(byte for byte in range(256) if byte not in _KEPT)
_STEPS = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")


def shallow(body: bytes) -> None:
    """Refuse JSON that is nested too deeply or has too many values, without parsing it. Raises Unreadable."""
    if body.count(b"[") + body.count(b"{") <= MAX_DEPTH and len(body) < MAX_VALUES:
        return
    if b"\\" in body:
        body = body.replace(rb"\\", b"").replace(rb"\"", b"")
    # Two adjacent quotes do not change which text is inside a string.
    marks = body.translate(None, _DROPPED).replace(b'""', b"")
    if marks.count(b'"') > MAX_VALUES:
        raise Unreadable(f"more than {MAX_VALUES} values")
    marks = b"".join(marks.split(b'"')[::2])  # what is outside of strings
    if len(marks) > MAX_VALUES:
        raise Unreadable(f"more than {MAX_VALUES} values")
    brackets = marks.translate(None, b",")
    if max(accumulate(array("b", brackets.translate(_STEPS))), default=0) > MAX_DEPTH:
        raise Unreadable(f"nested deeper than {MAX_DEPTH} levels")


def _packed[T](body: bytes, kind: type[T]) -> T:
    if len(body) > MAX_PACKED:
        raise Unreadable(f"{len(body)} bytes of msgpack, more than {MAX_PACKED} are not read")
    containers = len(body) - len(body.translate(None, bytes(range(0x80, 0xA0)) + b"\xdc\xdd\xde\xdf"))
    if containers > MAX_CONTAINERS:
        raise Unreadable(f"more than {MAX_CONTAINERS} lists and mappings")
    value = msgspec.msgpack.decode(body)
    level, depth = [value], 0
    while level := [
        item
        for part in level
        if isinstance(part, list | dict)
        for item in (part if isinstance(part, list) else part.values())
    ]:
        depth += 1
        if depth > MAX_DEPTH:
            raise Unreadable(f"nested deeper than {MAX_DEPTH} levels")
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError:
        # Ruby sends text as bytes if its encoding is not UTF-8.
        return msgspec.convert(texts(value), kind)


def texts(value: Any) -> Any:
    """Return a structure of msgpack with the bytes in it as text."""
    if isinstance(value, bytes):
        return utf8(value).decode()
    if isinstance(value, list):
        return [texts(item) for item in value]
    if isinstance(value, dict):
        return {texts(key): texts(item) for key, item in value.items()}
    return value


class _Envelope(msgspec.Struct):
    """Remove the wrapper that 2.7 and 3.x put around an object in PSON (docs/protocol.md#pson)."""

    data: msgspec.Raw = msgspec.Raw()
    document_type: str | None = None


def _pson[T](body: bytes, kind: type[T]) -> T:
    if body.lstrip()[:1] == b"[":
        items = msgspec.json.decode(body, type=list[msgspec.Raw])
        return msgspec.json.decode(b"[" + b",".join(_unwrap(bytes(item)) for item in items) + b"]", type=kind)
    return msgspec.json.decode(_unwrap(body), type=kind)


def _unwrap(body: bytes) -> bytes:
    if body.lstrip()[:1] == b"{":
        envelope = msgspec.json.decode(body, type=_Envelope)
        if envelope.document_type is not None and bytes(envelope.data):
            return bytes(envelope.data)
    return body


# -- forms ----------------------------------------------------------------------------------------


def form(body: bytes) -> dict[bytes, bytes]:
    """Return a form's or a query's fields, unescaped once; of a repeated field the last. Raises Unreadable."""
    if body.count(b"&") > MAX_FIELDS:
        raise Unreadable(f"more than {MAX_FIELDS} fields")
    pairs = (part.partition(b"=") for part in body.split(b"&") if part)
    return {unescape(name): unescape(value) for name, _, value in pairs}


_SPACES = bytes.maketrans(b"+", b" ")
_STRAY = regex.compile(rb"(?P<it>%)(?:[^0-9A-Fa-f]|[0-9A-Fa-f][^0-9A-Fa-f]|[0-9A-Fa-f]?$)", regex.DOTALL)


def unescape(value: bytes) -> bytes:
    """Remove one layer of form escapes; takes at most a second for the largest body. Raises Unreadable."""
    if b"%" not in value:
        return value.translate(_SPACES)
    pieces, at, strays = [], 0, 0
    while at < len(value):
        end = at + 2**20
        # An escape must not be split.
        cut = value.rfind(b"%", end - 2, end)
        end = cut if cut > at and end < len(value) else end
        piece = value[at:end].translate(_SPACES)
        if _STRAY.search(piece) is not None:
            strays += sum(1 for _ in islice(_STRAY.finditer(piece), MAX_STRAYS + 1))
            if strays > MAX_STRAYS:
                raise Unreadable(f"more than {MAX_STRAYS} percent signs that escape nothing")
            piece = _STRAY.sub(b"%25", piece)
        # Quoted-printable differs only in the escape sign; the library decodes it 20 times as fast.
        pieces.append(binascii.a2b_qp(piece.replace(b"=", b"=3D").replace(b"%", b"=")))
        at = end
    return b"".join(pieces)


def facts_of_form[T](value: bytes, notation: str, kind: type[T]) -> T:
    """A form's facts: escaped by the fact handler and by the form, or only once (docs/protocol.md#facts-in-a-form)."""
    head = value[:64].lstrip()
    if notation == "b64_zlib_yaml":
        packed = unescape(value) if b"%" in value else value
        try:
            data = inflate(base64.b64decode(packed.replace(b" ", b"+")), zlib.MAX_WBITS, "zlib")
        except binascii.Error as error:
            raise Unreadable(str(error)) from error
        return structure(data, "text/yaml", kind)
    if notation == "yaml":
        return structure(unescape(value) if b"%" in head or b"+" in head[:4] else value, "text/yaml", kind)
    if head[:1] != b"{":
        value = unescape(value)
    if notation in ("pson", "text/pson"):
        return structure(value, "text/pson", kind)
    return structure(value, notation if notation in PACKED else "application/json", kind)

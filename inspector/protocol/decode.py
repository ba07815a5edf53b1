"""Bytes to documents. Nothing here raises on hostile input: what can't be read is ``Undecodable``.

A decoder is a function ``(message) -> Document``; ``ENDPOINTS`` names the one for each side of each
endpoint. Content-Encoding is taken off first, within bounds; then Content-Type says which notation it is.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import zlib
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qsl, unquote_plus

import msgspec

from inspector.model import Message, Request, Response
from inspector.protocol import ruby_yaml, x509
from inspector.protocol.documents import (
    Catalog,
    CatalogRequest,
    Certificates,
    Data,
    Document,
    ErrorDocument,
    Facts,
    FileMetadata,
    FileMetadatas,
    Node,
    Nothing,
    Opaque,
    Report,
    RevocationLists,
    Text,
    Undecodable,
)

type Decoder = Callable[[Message], Document]

MAX_PLAIN = 64 * 2**20
"""Bytes that a body may have once its Content-Encoding is taken off. A catalog of 2,000 resources has 1 MB."""
MAX_TEXT = 4096
"""Characters of an error message that are kept."""

_WRONG = (msgspec.MsgspecError, ValueError, TypeError, RecursionError, OverflowError, ruby_yaml.Refused)


class _Unreadable(Exception):
    """Inside this module only: turned into ``Undecodable`` at its edge."""


# -- encodings ------------------------------------------------------------------------------------


def plain(message: Message) -> bytes:
    """The body without its Content-Encoding. Raises _Unreadable."""
    body = message.body
    if len(body) > MAX_PLAIN:
        raise _Unreadable(f"the body has {len(body)} bytes, more than {MAX_PLAIN} are not read")
    for encoding in reversed((message.header("content-encoding") or "").lower().split(",")):
        match encoding.strip():
            case "" | "identity":
                pass
            case "gzip" | "x-gzip":
                body = _inflate(body, zlib.MAX_WBITS | 16, "gzip")
            case "deflate":
                # RFC 9110 means zlib; some senders mean raw deflate.
                raw = body[:1] and (body[0] & 0x0F) != 8
                body = _inflate(body, -zlib.MAX_WBITS if raw else zlib.MAX_WBITS, "deflate")
            case other:
                raise _Unreadable(f"unknown content encoding {other!r}")
    return body


def _inflate(data: bytes, wbits: int, name: str) -> bytes:
    if not data:
        return b""
    inflater = zlib.decompressobj(wbits)
    try:
        body = inflater.decompress(data, MAX_PLAIN)
    except zlib.error as error:
        raise _Unreadable(f"the body says it is {name}, but: {error}") from error
    if inflater.unconsumed_tail:
        raise _Unreadable(f"the {name} body unpacks to more than {MAX_PLAIN} bytes")
    if not inflater.eof:
        raise _Unreadable(f"the {name} body is cut off")
    return body


def content_type(message: Message) -> str:
    """The media type without parameters, lower case; empty if there is none."""
    return (message.header("content-type") or "").partition(";")[0].strip().lower()


# -- notations ------------------------------------------------------------------------------------


def _utf8(body: bytes) -> bytes:
    """PSON's strings are raw bytes: what is not UTF-8 is read as Latin-1, so that nothing is lost."""
    try:
        body.decode()
    except UnicodeDecodeError:
        return body.decode("latin-1").encode()
    return body


def _structure[T](body: bytes, media: str, kind: type[T]) -> T:
    """A JSON, PSON, msgpack or YAML body as ``kind``. Raises _Unreadable."""
    if not body:
        raise _Unreadable("the body is empty")
    try:
        match media:
            case "application/x-msgpack" | "application/vnd.puppet.rich+msgpack":
                return msgspec.msgpack.decode(body, type=kind)
            case "text/yaml" | "application/x-yaml" | "application/yaml":
                return msgspec.convert(ruby_yaml.load(_utf8(body)), kind, strict=False)
            case "text/html":
                raise _Unreadable("an HTML page, which no master sends: something in between answered")
            case "text/pson":
                return _pson(_utf8(body), kind)
            case _:
                if body[:4] == b"--- ":
                    return msgspec.convert(ruby_yaml.load(_utf8(body)), kind, strict=False)
                return msgspec.json.decode(body, type=kind)
    except _WRONG as error:
        raise _Unreadable(str(error) or type(error).__name__) from error


class _Envelope(msgspec.Struct):
    """What 2.7 and 3.x wrap around an object in PSON (protocol 3.0)."""

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


# -- decoders -------------------------------------------------------------------------------------


def _decoder(read: Callable[[Message, bytes], Document]) -> Decoder:
    def decode(message: Message) -> Document:
        try:
            body = plain(message)
            if isinstance(message, Response) and message.status >= 400:
                return _error(message, body)
            if isinstance(message, Response) and not 200 <= message.status < 300:
                return Nothing()
            return read(message, body)
        except _Unreadable as error:
            return Undecodable(str(error))
        except x509.Malformed as error:
            return Undecodable(str(error))

    return decode


def _error(message: Response, body: bytes) -> Document:
    if not body:
        return Nothing()
    media = content_type(message)
    if media.endswith(("json", "pson")):
        try:
            return msgspec.json.decode(_utf8(body), type=ErrorDocument)
        except _WRONG as error:
            return Undecodable(str(error))
    return ErrorDocument(body.decode("utf-8", "replace")[:MAX_TEXT].strip())


def _typed(kind: type[Any]) -> Decoder:
    return _decoder(lambda message, body: _structure(body, content_type(message), kind))


def _read_metadatas(message: Message, body: bytes) -> Document:
    return FileMetadatas(_structure(body, content_type(message), list[FileMetadata]))


def _read_anything(message: Message, body: bytes) -> Document:
    if not body:
        return Nothing()
    if content_type(message).startswith("text/plain"):
        return Text(body.decode("utf-8", "replace"))
    return Data(_structure(body, content_type(message), Any))


def _read_facts(message: Message, body: bytes) -> Document:
    return _structure(body, content_type(message), Facts)


def _read_catalog_request(message: Message, body: bytes) -> Document:
    assert isinstance(message, Request)  # noqa: S101 - the table gives this decoder to requests only
    text = body.decode("latin-1")
    if content_type(message) not in ("", "application/x-www-form-urlencoded"):
        raise _Unreadable(f"a catalog is asked for with a form, not with {content_type(message)}")
    fields = dict(parse_qsl(message.query, keep_blank_values=True, errors="replace"))
    # Facts may hold bytes that are no UTF-8; nothing else may, it would break whoever prints it.
    raw = dict(pair for pair in parse_qsl(text, keep_blank_values=True, errors="surrogateescape") if pair[0] == "facts")
    fields |= dict(parse_qsl(text, keep_blank_values=True, errors="replace")) | raw
    return CatalogRequest(
        environment=fields.get("environment") or None,
        configured_environment=fields.get("configured_environment") or None,
        check_environment=fields.get("check_environment") == "true",
        transaction_uuid=fields.get("transaction_uuid") or None,
        static_catalog=fields.get("static_catalog") == "true",
        checksum_type=fields.get("checksum_type") or None,
        facts_format=fields.get("facts_format") or None,
        facts=_form_facts(fields["facts"], fields.get("facts_format") or "") if "facts" in fields else None,
    )


def _form_facts(value: str, notation: str) -> Facts | Undecodable:
    """Facts in a form are escaped twice: by the fact handler and by the form (protocol 1.1.3)."""
    if "%" in value[:64] or value[:1] not in ("{", "-", "e"):
        value = unquote_plus(value, errors="surrogateescape")
    raw = value.encode("utf-8", "surrogateescape")
    try:
        if notation == "b64_zlib_yaml":
            raw, media = _inflate(base64.b64decode(raw), zlib.MAX_WBITS, "zlib"), "text/yaml"
        elif notation == "yaml":
            media = "text/yaml"
        elif notation in ("pson", "text/pson"):
            media = "text/pson"
        else:
            media = "application/json"
        return _structure(raw, media, Facts)
    except (_Unreadable, binascii.Error) as error:
        return Undecodable(f"facts: {error}")


nothing: Decoder = _decoder(lambda _message, body: Text(body.decode("utf-8", "replace")) if body else Nothing())
opaque: Decoder = _decoder(
    lambda _message, body: Opaque(len(body), hashlib.sha256(body).hexdigest()) if body else Nothing()
)
text: Decoder = _decoder(lambda _message, body: Text(body.decode("utf-8", "replace")))
anything: Decoder = _decoder(_read_anything)
certificates: Decoder = _decoder(lambda _message, body: Certificates(x509.read_certificates(body)))
csr: Decoder = _decoder(lambda _message, body: x509.read_csr(body))
crls: Decoder = _decoder(lambda _message, body: RevocationLists(x509.read_crls(body)))
node: Decoder = _typed(Node)
catalog: Decoder = _typed(Catalog)
metadata: Decoder = _typed(FileMetadata)
metadatas: Decoder = _decoder(_read_metadatas)
facts: Decoder = _decoder(_read_facts)
report: Decoder = _typed(Report)
catalog_request: Decoder = _decoder(_read_catalog_request)
processors: Decoder = _decoder(_read_anything)

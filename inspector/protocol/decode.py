"""Bytes to documents. Nothing here raises on hostile input: what cannot be read is ``Undecodable``.

A decoder is a function ``(message) -> Document``; ``ENDPOINTS`` names one for each side of each endpoint.
Content-Encoding is removed first, within limits; then Content-Type determines the notation.
"""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec

from inspector import regex
from inspector.lazily import Lazily
from inspector.model import Message, Request, Response
from inspector.protocol import catalog_reading, puppetdb_wire
from inspector.protocol.bodies import (
    MAX_FIELD,
    PACKED,
    WRONG,
    Unreadable,
    content_type,
    facts_of_form,
    form,
    is_html,
    plain,
    shallow,
    structure,
    texts,
    utf8,
)
from inspector.protocol.bodies import (
    MAX_PLAIN as MAX_PLAIN,
)
from inspector.protocol.documents import (
    HTML,
    Catalog,
    CatalogRequest,
    Certificates,
    CertificateStatus,
    CertificateStatuses,
    Command,
    Data,
    DesiredState,
    Document,
    EnvironmentClasses,
    Environments,
    ErrorDocument,
    Facts,
    FileMetadata,
    FileMetadatas,
    MasterStatus,
    Node,
    Nothing,
    Opaque,
    Report,
    RevocationLists,
    Text,
    Undecodable,
)
from inspector.protocol.files import ChecksumResult, bucket_file

if TYPE_CHECKING:
    from inspector.protocol import x509
else:
    x509 = Lazily("inspector.protocol.x509")

type Decoder = Callable[[Message], Document]

MAX_TEXT = 4096
"""Maximum length of a stored error message."""


def content(message: Message) -> bytes | None:
    """A body's bytes without Content-Encoding; None if it cannot be removed."""
    try:
        return plain(message)
    except Unreadable:
        return None


def answer(decoder: Decoder, request: Request, response: Response) -> Document:
    """Decode a response with its endpoint's decoder. Without a body, the response to a GET is an empty file if the
    endpoint serves files; the response to HEAD, PUT or DELETE is ``Nothing``, whatever its headers say."""
    if request.method in ("HEAD", "PUT", "DELETE") and not response.body:
        return Nothing()
    return decoder(response)


def refusal(response: Response, longest: int) -> str:
    """Return the message with which a master refuses, at most so many characters; empty if it gave none."""
    try:
        document = _error(response, plain(response), longest)
    except Unreadable:
        return ""
    return document.message if isinstance(document, ErrorDocument) else ""


def _decoder(read: Callable[[Message, bytes], Document], *, partial: bool = False) -> Decoder:
    """Return a decoder; ``partial``: it also reads a body of which only the beginning was recorded."""

    def decode(message: Message) -> Document:
        try:
            body = plain(message)
            if isinstance(message, Response) and message.status >= 400:
                return _error(message, body)
            if isinstance(message, Response) and not 200 <= message.status < 300:
                return Nothing()
            if message.lost and not partial:
                return Undecodable(_cut(message))
            return read(message, body)
        except (Unreadable, x509.Malformed) as error:
            if message.lost:
                return Undecodable(_cut(message))
            return Undecodable(str(error)[:MAX_TEXT])

    return decode


def _cut(message: Message) -> str:
    return f"only {len(message.body)} of its {message.size} bytes were recorded"


# -- errors ---------------------------------------------------------------------------------------


class _Error(msgspec.Struct):
    """Decode the error documents of Ruby and of the newer Clojure endpoints (docs/protocol.md#error-documents)."""

    message: str | None = None
    issue_kind: str | None = None
    msg: str | None = None
    kind: str | None = None
    error: Any = None
    stacktrace: Any = None


def _error(message: Response, body: bytes, longest: int = MAX_TEXT) -> Document:
    if not body:
        return Nothing()
    media = content_type(message)
    if is_html(media, body):
        return ErrorDocument(f"{HTML}: {_title(body)}")
    if media.endswith(("json", "pson")):
        try:
            body = utf8(body)
            shallow(body)
            found = msgspec.json.decode(body, type=_Error | str)
        except WRONG as error:
            return Undecodable(str(error))
        if isinstance(found, str):
            return ErrorDocument(found[:longest])
        issue, traced = found.issue_kind or found.kind, bool(found.stacktrace)
        texts = (found.message, found.msg, found.error if isinstance(found.error, str) else None)
        if text := next((candidate for candidate in texts if candidate is not None), None):
            return ErrorDocument(text[:longest], issue, traced)
        if issue is None:
            return Undecodable("an error document without a message")
        return ErrorDocument("", issue, traced)
    return ErrorDocument(body[: longest * 4].decode("utf-8", "replace")[:longest].strip())


def _title(body: bytes) -> str:
    """The message of an HTML page: its title, or else its first words."""
    from html import unescape

    page = body[: MAX_TEXT * 4].decode("utf-8", "replace")
    if found := regex.search(r"<(title|h1)\b[^>]{0,200}>([^<]{1,400})", page, regex.IGNORECASE):
        return " ".join(unescape(found[2]).split())
    return " ".join(unescape(regex.sub(r"<[^>]{0,1000}>", " ", page)).split())[:400]


# -- decoders -------------------------------------------------------------------------------------


def _typed(kind: type[Any], wrap: Callable[[Any], Document] | None = None) -> Decoder:
    def read(message: Message, body: bytes) -> Document:
        found: Document = structure(body, content_type(message), kind)
        return wrap(found) if wrap else found

    return _decoder(read)


def _read_submitted(_message: Message, body: bytes) -> Document:
    """A CA's answer to a signing request: empty (4 and later), or the request's new state (2.7 and 3.x)."""
    if not body:
        return Nothing()
    for read in (lambda: Certificates(x509.read_certificates(body)), lambda: x509.read_csr(body)):
        with contextlib.suppress(x509.Malformed):
            return read()
    return Text(body.decode("utf-8", "replace"))


def _or_nothing(kind: type[Any], wrap: Callable[[Any], Document] | None = None) -> Decoder:
    """A response for tools: no body if there is nothing to report; text if the master sends text."""

    def read(message: Message, body: bytes) -> Document:
        if not body:
            return Nothing()
        if content_type(message) == "text/plain" and body[:4] != b"--- ":
            return Text(body.decode("utf-8", "replace"))
        found: Document = structure(body, content_type(message), kind)
        return wrap(found) if wrap else found

    return _decoder(read)


def _read_text(_message: Message, body: bytes) -> Document:
    return Text(body.decode("utf-8", "replace"))


def _read_anything(message: Message, body: bytes) -> Document:
    if not body:
        return Nothing()
    if content_type(message) in ("text/plain", "text/dot"):
        return _read_text(message, body)
    return Data(structure(body, content_type(message), Any))


def _read_opaque(message: Message, body: bytes) -> Document:
    if message.lost:
        whole = message.digest and message.header("content-encoding") is None
        return Opaque(message.size, message.digest) if whole else Undecodable(_cut(message))
    if not message.body and (message.header("content-length") or "0").strip() != "0":
        return Nothing()  # the connection broke before the body started: that is not an empty file
    return Opaque(len(body), hashlib.sha256(body).hexdigest())


def _read_catalog(message: Message, body: bytes) -> Document:
    media = content_type(message)
    if media == "text/dot":
        return _read_text(message, body)
    try:
        return structure(body, media, Catalog)
    except Unreadable as error:
        if not isinstance(error.__cause__, msgspec.ValidationError):
            raise
        value = structure(body, media, Any)
        return catalog_reading.read(texts(value) if media in PACKED else value)


class _Contents(msgspec.Struct):
    """A filebucket's file in PSON, as 2.7 sends it."""

    contents: str = ""


def _read_bucket(message: Message, body: bytes) -> Document:
    if isinstance(message, Request) and message.method in ("GET", "HEAD", "DELETE") and not body:
        return Nothing()
    if content_type(message) == "text/pson":
        contents = structure(body, "text/pson", _Contents).contents
        # Bytes that are not UTF-8 were read as Latin-1.
        body = contents.encode("latin-1" if utf8(body) is not body else "utf-8", "replace")
    found = bucket_file(message.target if isinstance(message, Request) else "", body)
    if message.lost:
        unread = ChecksumResult.UNCHECKABLE
        return msgspec.structs.replace(found, size=message.size, sha256=message.digest, verdict=unread)
    return found


def _read_catalog_request(message: Message, body: bytes) -> Document:
    query = message.query.encode("latin-1", "replace") if isinstance(message, Request) else b""
    if content_type(message) not in ("", "application/x-www-form-urlencoded"):
        raise Unreadable(f"a catalog is asked for with a form, not with {content_type(message)[:100]}")
    raw = form(query) | form(body)
    sent = raw.pop(b"facts", None)
    if long := [name[:40] for name, value in raw.items() if len(name) + len(value) > MAX_FIELD]:
        raise Unreadable(f"the field {long[0]!r} is longer than {MAX_FIELD} bytes")
    # Facts may contain bytes that are not UTF-8; other text may not, because printing it would fail.
    fields = {name.decode("utf-8", "replace"): value.decode("utf-8", "replace") for name, value in raw.items()}
    facts: Facts | Undecodable | None = None
    if sent not in (None, b"null"):  # which `puppet catalog download` sends up to 8
        try:
            facts = facts_of_form(sent, fields.get("facts_format") or "", Facts)
        except Unreadable as error:
            facts = Undecodable(f"facts: {error}"[:MAX_TEXT])
    return CatalogRequest(
        environment=fields.get("environment") or None,
        configured_environment=fields.get("configured_environment") or None,
        check_environment=fields.get("check_environment") == "true",
        transaction_uuid=fields.get("transaction_uuid") or None,
        static_catalog=fields.get("static_catalog") == "true",
        checksum_type=fields.get("checksum_type") or None,
        facts_format=fields.get("facts_format") or None,
        facts=facts,
        job_uuid=fields.get("job_uuid") or None,
    )


def _read_command(message: Message, body: bytes) -> Document:
    query = message.query.encode("latin-1", "replace") if isinstance(message, Request) else b""
    given = {name.decode("utf-8", "replace"): value.decode("utf-8", "replace") for name, value in form(query).items()}
    name, version = given.get("command", "").replace("_", " ")[:MAX_FIELD], given.get("version")
    wire = puppetdb_wire.WIRE.get((name, version or ""))
    payload: Facts | Catalog | Report | Data | Undecodable
    transaction = None
    try:
        read: Any = structure(body, content_type(message), wire or Any)
        payload = read.document() if wire else Data(read)
        transaction = getattr(read, "transaction_uuid", None)
    except Unreadable as error:
        payload = Undecodable(str(error)[:MAX_TEXT])
    return Command(name, version, given.get("certname"), given.get("producer-timestamp"), transaction, payload)


nothing: Decoder = _decoder(lambda message, body: _read_text(message, body) if body else Nothing(), partial=True)
opaque: Decoder = _decoder(_read_opaque, partial=True)
text: Decoder = _decoder(_read_text, partial=True)
anything: Decoder = _decoder(_read_anything, partial=True)
certificates: Decoder = _decoder(lambda _message, body: Certificates(x509.read_certificates(body)))
submitted: Decoder = _decoder(_read_submitted)
csr: Decoder = _decoder(lambda _message, body: x509.read_csr(body))
crls: Decoder = _decoder(lambda _message, body: RevocationLists(x509.read_crls(body)))
node: Decoder = _typed(Node)
catalog: Decoder = _decoder(_read_catalog)
metadata: Decoder = _typed(FileMetadata)
metadatas: Decoder = _typed(list[FileMetadata], FileMetadatas)
facts: Decoder = _typed(Facts)
report: Decoder = _typed(Report)
catalog_request: Decoder = _decoder(_read_catalog_request)
command: Decoder = _decoder(_read_command)
processors: Decoder = _decoder(_read_anything)
bucket: Decoder = _decoder(_read_bucket, partial=True)
"""A filebucket's PUT: compares the body's digest with the one in the URL."""
environments: Decoder = _or_nothing(Environments)
environment_classes: Decoder = _or_nothing(EnvironmentClasses)
master_status: Decoder = _or_nothing(MasterStatus)
certificate_status: Decoder = _or_nothing(CertificateStatus)
certificate_statuses: Decoder = _or_nothing(list[CertificateStatus], CertificateStatuses)
desired_state: Decoder = _or_nothing(DesiredState)

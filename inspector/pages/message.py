"""A request or a response: its head as a table, its body as text that is easy to read, as it came, or as bytes."""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import unquote

import msgspec

from inspector import regex
from inspector.model import Exchange, Request, Response
from inspector.pages import languages
from inspector.pages.content import Content
from inspector.pages.highlight import Colours
from inspector.pages.model import Cell, Field, Table
from inspector.privacy import hiding, names, redact, secrets
from inspector.privacy.secrets import MASK
from inspector.protocol import bodies, decode
from inspector.protocol.kinds import CONTENT, Kind
from inspector.text import as_json, size

if TYPE_CHECKING:
    from collections.abc import Collection

    from inspector.analysis.analyzer import Step
    from inspector.pages.languages import Language
    from inspector.protocol.documents import Document

type Mode = Literal["pretty", "raw", "hex"]
MODES: tuple[Mode, ...] = ("pretty", "raw", "hex")
COVERED = f"{MASK} contains a secret; press x to show it"
FORM = "application/x-www-form-urlencoded"
_NAMES = {"pson": "json", "json": "json", "yaml": "yaml", "msgpack": "msgpack", "html": "html", FORM: "form"}
PROBE = 4096
"""Bytes read to decide whether a body is text."""


def head(message: Request | Response, stripped: tuple[str, ...] = ()) -> Table:
    """The start line and every header, in order."""
    if isinstance(message, Request):
        start: tuple[Cell, ...] = ("request line", _request_line(message), "")
    else:
        start = ("status line", f"{message.http_version} {message.status} {message.reason}".rstrip(), "")
    removed = {name.lower() for name in stripped}
    rows: list[tuple[Cell, ...]] = [start]
    for name, value in message.headers:
        note = "removed before the master" if isinstance(message, Request) and name.lower() in removed else ""
        rows.append((name, hiding.header(name, value), note))
    return Table((Field("header", 18, 1), Field("value", 30, 4), Field("", 10, 1, least=90)), rows, 1)


def _request_line(request: Request) -> str | secrets.Secret:
    line = f"{request.method} {{}} {request.http_version}"
    target = hiding.target(request)
    if isinstance(target, secrets.Secret):
        return secrets.Secret(line.format(target.value), line.format(target.shown))
    return line.format(target)


class Body:
    """A body and its display modes. Secrets are masked until ``shown``."""

    def __init__(
        self,
        message: Request | Response,
        document: Document | None,
        name: str,
        source: str | None = None,
        *,
        code: bool = False,
    ) -> None:
        """``name`` is the start of the suggested file name, ``source`` the name of the file that the body contains,
        ``code`` whether that is a plugin's."""
        self.message, self.document, self.source, self.code = message, document, source, code
        self.media = bodies.content_type(message)
        self.plain = decode.content(message)
        self.known: Collection[str] = ()
        """The secrets of its record."""
        self.shown = False
        """Whether its secrets are shown."""
        self.masks = False
        """Whether the content made last contains a mask."""
        self._may_hide = secrets.possible(self.plain, self.media, document)
        self.name = f"{name}.{self._kind()}"
        self.mode: Mode = "pretty" if self._textual() else "hex"

    def _kind(self) -> str:
        known = next((name for part, name in _NAMES.items() if part in self.media), None)
        if known:
            return known
        if (self.plain or b"")[:2048].lstrip().startswith(b"-----BEGIN "):
            return "pem"
        return "txt" if self.media.startswith("text/") else "bin"

    def _textual(self) -> bool:
        if self.plain is None:
            return False
        if self.media in bodies.PACKED:
            return True
        try:
            self.plain[:PROBE].decode()
        except UnicodeDecodeError as error:
            # A character may be cut at the end.
            if error.start < min(len(self.plain), PROBE) - 3:
                return self.name_is_text
        return b"\x00" not in self.plain[:PROBE]

    @property
    def name_is_text(self) -> bool:
        """Whether its media type is a text type: PSON may contain any bytes."""
        return "json" in self.media or "pson" in self.media

    def content(self, mode: Mode) -> Content:
        """The content in a mode. May take seconds for tens of megabytes."""
        if not self.shown and (masked := self._masked) is not None:
            return self._hiding(mode, masked)
        data = self._pretty() if mode == "pretty" else self.message.body
        hidden = [] if self.shown or not self._may_hide else secrets.spans(data, self.document)
        self.masks = bool(hidden)
        title = f"{mode}  {self.about}"
        if mode == "hex":
            return Content(title, data, hexed=True, hidden=hidden)
        if hidden == [(0, len(data))] and data:
            return Content(title, COVERED.encode())
        shown = secrets.covered(data, hidden)
        return Content(title, shown, colours=Colours(shown, self._language(mode)))

    @cached_property
    def _masked(self) -> bytes | None:
        """The decoded body with masks; None if what is marked as secret is all that is to be hidden."""
        marked = secrets.spans(self.decoded, self.document) if self._may_hide else []
        covered = self._with(secrets.covered(self.decoded, marked, names.MASK))
        if self.plain is not None and redact.body(covered, self.known, code=self.code) == covered.body:
            return None
        masked = redact.body(self.message, self.known, code=self.code)
        return None if masked == self.decoded else masked

    def _with(self, body: bytes) -> Request | Response:
        """The message with another body, which is not encoded."""
        headers = tuple(each for each in self.message.headers if each[0].strip().lower() != "content-encoding")
        return dataclasses.replace(self.message, headers=headers, body=body)

    def _hiding(self, mode: Mode, masked: bytes) -> Content:
        """The content in a mode, with masks."""
        self.masks = True
        title = f"{mode}  {self.about}"
        if mode == "hex":
            return Content(title, self.message.body, hexed=True, hidden=[_changed(self.message.body, masked)])
        if not masked.replace(names.MASK.encode(), b""):
            return Content(title, COVERED.encode())
        body = Body(self._with(masked), self.document, self.name, self.source)
        shown = (body._pretty() if mode == "pretty" else masked).replace(names.MASK.encode(), MASK.encode())
        return Content(title, shown, colours=Colours(shown, body._language(mode)))

    def _language(self, mode: Mode) -> Language:
        """The language of the content in a mode."""
        if self.plain is None or (mode == "raw" and self.plain is not self.message.body):
            return languages.PLAIN
        if (mode == "pretty" and (self.media == FORM or self.media in bodies.PACKED)) or self._structured:
            return languages.JSON
        if "yaml" in self.media:
            return languages.YAML
        if "html" in self.media or "xml" in self.media:
            return languages.XML
        if self.source is not None:
            return languages.of_file(self.source, self.plain)
        return languages.PLAIN

    @property
    def _structured(self) -> bool:
        """Whether it is JSON, or begins like that."""
        return self.name_is_text or (self.plain or b"")[:1] in (b"{", b"[")

    @property
    def decoded(self) -> bytes:
        """The body without its Content-Encoding, if that can be decoded; secrets are not masked."""
        return self.message.body if self.plain is None else self.plain

    @property
    def about(self) -> str:
        """Its media type and its size."""
        return f"{self.media or 'no Content-Type'}, {self._size()}"

    def _size(self) -> str:
        sizes = size(len(self.message.body))
        if self.plain is not None and len(self.plain) != len(self.message.body):
            sizes += f", {size(len(self.plain))} after decoding {self.message.header('content-encoding')}"
        return sizes + (f", {size(self.message.lost)} more not recorded" if self.message.lost else "")

    def _pretty(self) -> bytes:
        """Return the body formatted for reading; as it came if that is not possible."""
        if self.plain is None:
            return self.message.body
        try:
            if self.media == FORM:
                return "\n".join(_form(self.plain)).encode("utf-8", "replace")
            if self.media in bodies.PACKED:
                return as_json(_printable(bodies.structure(self.plain, self.media, Any))).encode("utf-8", "replace")
            if self._structured:
                text = bodies.utf8(self.plain)
                bodies.shallow(text)
                return msgspec.json.format(text, indent=2)
        except (bodies.Unreadable, *bodies.WRONG):
            pass
        return self.plain


def _changed(before: bytes, after: bytes) -> tuple[int, int]:
    """Where all the changes between two texts are, in the first one."""
    begin = _common(before, after)
    end = min(_common(before[::-1], after[::-1]), len(before) - begin, len(after) - begin)
    return begin, len(before) - end


def _common(one: bytes, other: bytes) -> int:
    """How many bytes two texts begin with in common."""
    least, most = 0, min(len(one), len(other))
    while least < most:
        middle = (least + most + 1) // 2
        if one[least:middle] == other[least:middle]:
            least = middle
        else:
            most = middle - 1
    return least


def _form(body: bytes) -> list[str]:
    """A form's fields; facts as JSON."""
    lines = []
    fields = bodies.form(body)
    notation = fields.get(b"facts_format", b"").decode("utf-8", "replace")
    for name, value in fields.items():
        label, text = name.decode("utf-8", "replace"), value.decode("utf-8", "replace")
        if name == b"facts":
            try:
                text = as_json(_printable(bodies.facts_of_form(value, notation, dict[str, Any])))
            except (bodies.Unreadable, *bodies.WRONG):
                text = bodies.unescape(value).decode("utf-8", "replace")
            lines += [f"{label} =", text]
        else:
            lines.append(f"{label} = {text}")
    return lines


def _printable(value: Any) -> Any:
    return msgspec.to_builtins(value, enc_hook=str, str_keys=True)


def source(step: Step) -> str | None:
    """The name of the file that a record's bodies contain; None if they contain none."""
    if (
        step.match is None
        or step.match.endpoint.kind not in (*CONTENT, Kind.BACKUP)
        or not isinstance(step.record, Exchange)
    ):
        return None
    return unquote(step.record.request.target.partition("?")[0])


def file_name(step: Step, side: str) -> str:
    """The start of a file name for a body: record number, endpoint, side."""
    what = step.match.endpoint.name if step.match else "body"
    return regex.sub(r"[^A-Za-z0-9._-]+", "_", f"{step.record.seq}-{what}-{side}")

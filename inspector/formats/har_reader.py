"""Records from an HTTP archive (HAR 1.2): from our own archives exactly as they were, from others as far as possible.

Other archives contain no address of an agent and no TLS data; if they name no connections, all requests to one server
are treated as one connection. Their bodies are without Content-Encoding, so that header is dropped, and Content-Length
is adjusted. A missing body is lost, not empty.
"""

from __future__ import annotations

import base64
import hashlib
import json
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode, urlsplit

import msgspec

from inspector import clocks, inputs, regex
from inspector.formats import lossless
from inspector.model import Connection, Exchange, Leg, Request, Response

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from inspector.formats.lossless import CaptureItem
    from inspector.model import Headers, Record

_ENTRIES = regex.compile(r'"entries"\s*:\s*\[')
_BETWEEN = frozenset(" \t\r\n,")
_PORTS = {"https": 443, "http": 80}
PARSED = 0.5
"""The share of the work that is done when the file was parsed."""


class _Pair(msgspec.Struct):
    name: str
    value: str = ""


class _HarBody(msgspec.Struct):
    """``postData`` or ``content``."""

    text: str | None = None
    encoding: str | None = None
    raw: str | None = msgspec.field(default=None, name="_raw")
    size: float = 0
    params: list[_Pair] = []

    def bytes(self) -> bytes | None:
        """Return the body as on the wire; in other archives, without its Content-Encoding. None if it is missing."""
        if self.raw is not None:
            return base64.b64decode(self.raw, validate=True)
        if self.text is None or (not self.text and self.params):
            pairs = [(pair.name, pair.value) for pair in self.params]
            return urlencode(pairs).encode() if pairs else None
        return base64.b64decode(self.text) if self.encoding == "base64" else self.text.encode("utf-8", "replace")


class _Request(msgspec.Struct, rename="camel"):
    method: str
    url: str
    headers: list[_Pair]
    http_version: str = ""
    post_data: _HarBody | None = None


class _Response(msgspec.Struct, rename="camel"):
    status: int
    headers: list[_Pair]
    content: _HarBody
    status_text: str = ""
    http_version: str = ""
    error: str | None = msgspec.field(default=None, name="_error")


class _Timings(msgspec.Struct):
    """Timings in milliseconds; an unknown one is negative, null or missing. ``connect`` includes ``ssl``."""

    blocked: float | None = None
    dns: float | None = None
    connect: float | None = None
    send: float | None = None
    wait: float | None = None
    receive: float | None = None

    def seconds(self, *names: str) -> float:
        return sum(max(0.0, getattr(self, name) or 0.0) for name in names) / 1000


class _Puppet(msgspec.Struct):
    """Further fields of our own archives."""

    exact: dict[str, Any]
    connections: list[dict[str, Any]] = []


class _HarEntry(msgspec.Struct):
    started: str = msgspec.field(name="startedDateTime")
    request: _Request
    response: _Response
    timings: _Timings
    server: str | None = msgspec.field(default=None, name="serverIPAddress")
    connection: str | int | None = None
    puppet: _Puppet | None = msgspec.field(default=None, name="_puppet")


class _Rest(msgspec.Struct):
    """The parts of our own archives that belong to no exchange."""

    records: list[_Puppet] = []
    connections: list[dict[str, Any]] = []


class _Log(msgspec.Struct):
    entries: list[dict[str, Any]]
    puppet: _Rest = msgspec.field(default_factory=_Rest, name="_puppet")


class _Archive(msgspec.Struct):
    log: _Log


def read(path: Path, look: Callable[[float], None] = lambda _: None) -> Iterator[CaptureItem]:
    """Read the records of an archive in their order, and their connections; ``look`` is called with the share of the
    work that is done.

    Raises OSError, and ValueError if it is not an archive; if it is damaged, after the records before the damage.
    """
    data = inputs.read(path)
    mark = hashlib.sha256(data).hexdigest()[:12]  # distinguishes the connections of several archives
    log, broken = _log(data.decode("utf-8-sig"))
    connections: dict[int, list[Connection]] = {}
    records: list[Record] = []
    try:
        for number, fields in enumerate(log.entries, 1):
            look(PARSED * number / len(log.entries))
            try:
                entry = msgspec.convert(fields, _HarEntry)
                if entry.puppet:
                    record = _known(entry, entry.puppet)
                elif urlsplit(entry.request.url).scheme in _PORTS:
                    record = _foreign(entry, mark)
                else:
                    continue  # requests of a browser itself: data:, blob:, chrome-extension:
            except (ValueError, OverflowError, RecursionError) as error:
                raise ValueError(f"cannot read entry {number} ({error})") from error
            records.append(record)
            connected = entry.puppet.connections if entry.puppet else []
            connections[id(record)] = [lossless.connection_of(connection) for connection in connected]
        records += [lossless.record(other.exact) for other in log.puppet.records]
    except ValueError as error:
        broken = error
    ours = all(record.seq for record in records)
    in_order = sorted(records, key=lambda record: record.seq if ours else record.ended)
    for done, record in enumerate(in_order):
        look(PARSED + (1 - PARSED) * done / len(in_order))
        yield from connections.get(id(record), ())
        yield record
    yield from map(lossless.connection_of, log.puppet.connections)
    if broken:
        raise broken


def _log(text: str) -> tuple[_Log, ValueError | None]:
    """Return the contents of an archive; of one with incomplete JSON, the entries before the damage, and an error
    message."""
    try:
        return msgspec.convert(json.loads(text), _Archive).log, None
    except json.JSONDecodeError as error:
        return _Log(list(_whole_entries(text))), error
    except RecursionError as error:
        raise ValueError("it is nested too deeply") from error


def _whole_entries(text: str) -> Iterator[dict[str, Any]]:
    begin = _ENTRIES.search(text)
    decoder, at = json.JSONDecoder(), begin.end() if begin else len(text)
    while at < len(text):
        if text[at] in _BETWEEN:
            at += 1
            continue
        try:
            entry, at = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return
        if not isinstance(entry, dict):
            return
        yield entry


def _known(entry: _HarEntry, puppet: _Puppet) -> Record:
    request, response = entry.request, entry.response
    sent = (request.post_data.bytes() if request.post_data else None) or b""
    return lossless.record(
        puppet.exact,
        (_headers(request.headers), sent),
        (_headers(response.headers), response.content.bytes() or b""),
    )


def _headers(pairs: list[_Pair]) -> Headers:
    return lossless.headers([(pair.name, pair.value) for pair in pairs])


def _foreign(entry: _HarEntry, mark: str) -> Record:
    url, timings = urlsplit(entry.request.url), entry.timings
    port = url.port or _PORTS[url.scheme]
    began = clocks.iso(entry.started)
    sent = began + timings.seconds("blocked", "dns", "connect", "send")
    answered = sent + timings.seconds("wait")
    ended = answered + timings.seconds("receive")
    ident = f"{mark}-{entry.connection or url.netloc}"
    # A connection with a known start but without TLS was in plain text.
    agent = Leg(f"{ident}-agent", "agent", sni=url.hostname, connected=began if url.scheme == "http" else None)
    address = (entry.server or "").strip("[]")
    master = Leg(f"{ident}-master", "master", address, port, sni=url.hostname) if address else None
    target = f"{url.path or '/'}{'?' + url.query if url.query else ''}"
    ((target, _),) = lossless.headers([(target, "")])
    request_content, lost = _message(entry.request.headers, entry.request.post_data)
    request = Request(started=began, ended=sent, http_version=_version(entry.request.http_version), lost=lost,
                      method=entry.request.method, target=target)  # fmt: skip
    answer = entry.response
    if answer.status <= 0:
        failed = Exchange(agent, request, None, master, error=answer.error or "no response", failed=ended)
        return lossless.record(lossless.exact(failed), request_content)
    response_content, lost = _message(answer.headers, answer.content)
    response = Response(started=answered, ended=ended, http_version=_version(answer.http_version), lost=lost,
                        status=answer.status, reason=answer.status_text)  # fmt: skip
    # Through lossless, so that it is checked like one of our own.
    return lossless.record(
        lossless.exact(Exchange(agent, request, response, master, error=answer.error)),
        request_content,
        response_content,
    )


def _message(pairs: list[_Pair], body: _HarBody | None) -> tuple[lossless.MessageContent, int]:
    """Return headers and body, and how many bytes of the body the archive does not have."""
    # HTTP/2's pseudo-headers repeat facts that are elsewhere.
    headers = [header for header in _headers(pairs) if not header[0].startswith(":")]
    data = body.bytes() if body else b""
    if data is None:
        return (tuple(headers), b""), int(max(0, body.size)) if body else 0
    remaining = [(name, value) for name, value in headers if name.lower() != "content-encoding"]
    changed = {"content-length": str(len(data))} if len(remaining) < len(headers) else {}
    return (tuple((name, changed.get(name.lower(), value)) for name, value in remaining), data), 0


def _version(text: str) -> str:
    return text.upper() if text[:5].upper() == "HTTP/" else "HTTP/1.1"

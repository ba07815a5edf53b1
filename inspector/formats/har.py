"""A capture as an HTTP archive (HAR 1.2), a format that browsers and many tools open.

An entry is an exchange, a page is a run. What HAR cannot express is in fields named ``_puppet``, which other tools
ignore: both TLS legs with their certificates, findings, failed handshakes, gaps. From these ``har_reader`` restores
exactly what was exported.

Source: HAR 1.2 (http://www.softwareishard.com/blog/har-12-spec/); its schema is docs/json/har.schema.json.
"""

from __future__ import annotations

import base64
import contextlib
import ipaddress
import json
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, quote

import msgspec

from inspector import __version__
from inspector.analysis.analyzer import outline
from inspector.clocks import finite
from inspector.formats import json_output, lossless
from inspector.model import Connection, Exchange
from inspector.protocol import decode
from inspector.text import clean, utc

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from inspector.formats.lossless import CaptureItem
    from inspector.model import Message, Record, Request, Response
    from inspector.summaries.summary import RunBrief

_COPIED = (
    "seq",
    "run",
    "certname",
    "phase",
    "endpoint",
    "environment",
    "findings",
    "identity",
    "stripped",
    "injected",
    "added",
    "tls",
    "not_analyzed",
)
"""The fields of ``show --json`` that are copied."""
_UNKNOWN = "x-unknown"
"""The media type of a body without one, as browsers write it."""
_URL = "!#$%&'()*+,-./:;=?@[]_~"


def lines(
    items: Iterable[CaptureItem],
    owner: Callable[[int], RunBrief | None] = lambda _: None,
    sentence: Callable[[str], str] | None = None,
    unanalyzed: Mapping[int, str] = MappingProxyType({}),
) -> Iterator[str]:
    """Yield the archive, one line per entry. ``owner`` returns the run of a record number, ``sentence`` a finding's
    sentence as it may leave; without it nothing is withheld. ``unanalyzed`` are the records that were not analyzed, and
    why."""
    creator = {"name": "puppet-inspector", "version": __version__}
    yield f'{{"log":{{"version":"1.2","creator":{_json(creator)},"entries":['
    waiting: list[Connection] = []
    others: list[dict[str, Any]] = []
    runs: dict[int, RunBrief] = {}
    comma = ""
    for item in items:
        if isinstance(item, Connection):
            waiting.append(item)
            continue
        run = owner(item.seq)
        extra = _extra(item, run, sentence or str, unanalyzed.get(item.seq))
        if not isinstance(item, Exchange):
            others.append(extra)
            continue
        if run and run.number:
            runs[run.number] = run
        extra["connections"] = [lossless.connection(connection) for connection in waiting]
        waiting = []
        yield comma + _json(_entry(item, run, extra))
        comma = ","
    rest = {
        "records": others,
        "connections": [lossless.connection(connection) for connection in waiting],
    }
    pages = [_page(runs[number], sentence or str) for number in sorted(runs)]
    comment = _comment(others, closed=sentence is not None)
    yield f'],"pages":{_json(pages)},"comment":{_json(comment)},"_puppet":{_json(rest)}}}}}'


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


def _comment(others: list[dict[str, Any]], *, closed: bool) -> str:
    sentences = ["Secrets are masked, and other values withheld."] if closed else []
    if others:
        sentences.append(
            f"Failed TLS handshakes and gaps ({len(others)}) are in _puppet.records: HAR cannot express them."
        )
    return " ".join(sentences)


def _extra(
    record: Record, run: RunBrief | None, sentence: Callable[[str], str], unanalyzed: str | None
) -> dict[str, Any]:
    """Return the fields of ``_puppet`` for a record."""
    shown: dict[str, Any] = msgspec.to_builtins(json_output.analyzed(outline(record), run))
    shown["not_analyzed"] = unanalyzed or shown["not_analyzed"]
    for finding in shown["findings"]:
        finding["message"] = sentence(finding["message"])
    return {name: shown[name] for name in _COPIED if name in shown} | {"exact": lossless.exact(record)}


def _page(run: RunBrief, sentence: Callable[[str], str]) -> dict[str, Any]:
    name = run.certname or run.address or "an unnamed agent"
    page = {
        "startedDateTime": utc(run.started),
        "id": f"run-{run.number}",
        "title": clean(f"run {run.number} of {name}: {run.ending}"),
        "pageTimings": {"onContentLoad": -1, "onLoad": _ms(run.duration)},
    }
    verdict = run.verdict
    return page | {"comment": f"{sentence(verdict.message)}. Fix: {run.fix}"} if verdict else page


def _entry(exchange: Exchange, run: RunBrief | None, extra: dict[str, Any]) -> dict[str, Any]:
    timings = _timings(exchange)
    entry: dict[str, Any] = {"pageref": f"run-{run.number}"} if run and run.number else {}
    entry |= {
        "startedDateTime": utc(exchange.time),
        "time": round(sum(value for name, value in timings.items() if value > 0 and name != "ssl"), 3),
        "request": _request(exchange),
        "response": _response(exchange),
        "cache": {},
        "timings": timings,
        "connection": exchange.agent.id,
    }
    with contextlib.suppress(ValueError):
        entry["serverIPAddress"] = str(ipaddress.ip_address((exchange.master and exchange.master.address) or ""))
    return entry | {"_puppet": extra}


def _timings(exchange: Exchange) -> dict[str, float]:
    """Return the timings in milliseconds. The proxy connects to the master after it received the request: ``connect``
    is the time for that, including TLS."""
    request, response, master = exchange.request, exchange.response, exchange.master
    whole = _ms(exchange.ended - exchange.time)
    send = min(whole, _between(exchange.time, request.ended))
    receive = min(whole - send, _between(response.started, response.ended)) if response else 0.0
    connect = ssl = -1.0
    if master and master.connecting is not None and master.connecting >= exchange.time:
        connect = min(whole - send - receive, _between(master.connecting, master.secured or master.connected))
        ssl = min(connect, _between(master.connected, master.secured)) if master.secured else -1.0
    wait = whole - send - receive - max(connect, 0)
    durations = {"connect": connect, "ssl": ssl, "send": send, "wait": wait, "receive": receive}
    return {"blocked": -1, "dns": -1} | {name: round(value, 3) for name, value in durations.items()}


def _between(begin: float | None, end: float | None) -> float:
    return _ms(end - begin) if begin is not None and end is not None else 0.0


def _ms(seconds: float) -> float:
    return max(0.0, round(finite(seconds) * 1000, 3))


def _request(exchange: Exchange) -> dict[str, Any]:
    request = exchange.request
    query = parse_qsl(request.query, keep_blank_values=True, errors="replace")
    fields = {
        "method": request.method,
        "url": _url(exchange),
        "httpVersion": request.http_version,
        "cookies": _cookies(request, "cookie"),
        "headers": _pairs(request.headers),
        "queryString": _pairs(query),
        "headersSize": _head(request, f"{request.method} {request.target} {request.http_version}"),
        "bodySize": request.size,
    }
    if request.body:
        content = decode.content(request)
        text = (request.body if content is None else content).decode(errors="replace")
        fields["postData"] = {"mimeType": _media(request), "params": [], "text": text} | _raw(request, text.encode())
    return fields


def _url(exchange: Exchange) -> str:
    agent, master, request = exchange.agent, exchange.master, exchange.request
    if request.target.startswith(("http://", "https://")):
        return quote(request.target, safe=_URL, encoding="latin-1", errors="replace")
    clear = agent.connected is not None and not (agent.secured or agent.tls_version)
    host = request.header("host") or agent.sni or (master and master.sni) or "puppet:8140"
    url = f"{host}/{request.target.removeprefix('/')}"
    return ("http://" if clear else "https://") + quote(url, safe=_URL, encoding="latin-1", errors="replace")


def _response(exchange: Exchange) -> dict[str, Any]:
    response = exchange.response
    if response is None:
        nothing = {"status": 0, "statusText": "", "httpVersion": "", "cookies": [], "headers": [], "redirectURL": ""}
        content = {"size": 0, "mimeType": _UNKNOWN}
        error = exchange.error or "no response"
        return nothing | {"content": content, "headersSize": -1, "bodySize": -1, "_error": error}
    fields = {
        "status": response.status,
        "statusText": response.reason,
        "httpVersion": response.http_version,
        "cookies": _cookies(response, "set-cookie"),
        "headers": _pairs(response.headers),
        "content": _content(response),
        "redirectURL": response.header("location") or "",
        "headersSize": _head(response, f"{response.http_version} {response.status} {response.reason}"),
        "bodySize": response.size,
    }
    return fields | {"_error": exchange.error} if exchange.error else fields


def _content(response: Response) -> dict[str, Any]:
    plain = decode.content(response)
    body = response.body if plain is None else plain
    fields: dict[str, Any] = {"size": len(body), "mimeType": _media(response)}
    if len(body) > len(response.body):
        fields["compression"] = len(body) - len(response.body)
    if response.lost:
        fields["comment"] = f"{response.lost} more bytes were passed on, but not recorded"
    if body:
        try:
            fields["text"] = body.decode()
        except UnicodeDecodeError:
            fields |= {"text": base64.b64encode(body).decode(), "encoding": "base64"}
    return fields | _raw(response, body)


def _raw(message: Message, shown: bytes) -> dict[str, str]:
    """Return the body as on the wire, if the text shown for it differs."""
    return {} if shown == message.body else {"_raw": base64.b64encode(message.body).decode()}


def _media(message: Message) -> str:
    return message.header("content-type") or _UNKNOWN


def _pairs(pairs: Iterable[tuple[str, str]]) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in pairs]


def _cookies(message: Message, header: str) -> list[dict[str, str]]:
    values = [value for name, value in message.headers if name.lower() == header]
    if header == "set-cookie":
        values = [value.partition(";")[0] for value in values]  # the rest are the cookie's attributes
    pairs = [cookie.strip().partition("=") for value in values for cookie in value.split(";")]
    return _pairs((name, value) for name, _, value in pairs if name)


def _head(message: Request | Response, start: str) -> int:
    """Return the size of a head in bytes, with its empty line."""
    return len(start) + sum(len(name) + len(value) + 4 for name, value in message.headers) + 4

"""docs/coverage.md, generated: which agent x endpoint x body format was decoded from a real recording.

What the recordings hold is kept in golden/coverage.json, so that the page can be made without them, and what was read
of living agents in golden/versions.json (``version_matrix``). What was only made up is taken from the decoders' table
of cases and from the rules' examples. A row that is in none, but that the protocol knows, says so.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

import msgspec
import yaml

from inspector.analysis.analyzer import Analyzer
from inspector.model import Exchange, Message, Request, Response
from inspector.protocol import decode
from inspector.protocol import documents as d
from inspector.protocol.endpoints import ENDPOINTS
from inspector.rules import all_rules
from tests.support import material_table, openvox_table, places, version_matrix
from tests.support.bodies import TABLE
from tests.support.recorded import RECORDINGS, SAMPLES, VERSIONS, records_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from inspector.model import Record
    from inspector.protocol.decode import Decoder
    from inspector.protocol.documents import Document
    from inspector.protocol.endpoints import Endpoint
    from tests.support.version_matrix import Matrix

PAGE = places.DOCS / "coverage.md"
REAL = places.GOLDEN / "coverage.json"
TOOL = "tools"
"""The version of whoever says none: curl, `puppetserver ca` and others."""

_FILE = {"path": "/x", "relative_path": None, "type": "file", "mode": 420,
         "checksum": {"type": "sha256", "value": "{sha256}0"}}  # fmt: skip
_INDIRECTED = ("JSON", "PSON", "msgpack", "YAML")
KNOWN: dict[str, tuple[str, ...]] = {
    "nothing": (),
    "opaque": ("bytes",),
    "text": ("text",),
    "certificates": ("PEM",),
    "csr": ("PEM",),
    "crls": ("PEM",),
    "node": _INDIRECTED,
    "metadata": _INDIRECTED,
    "metadatas": _INDIRECTED,
    "facts": _INDIRECTED,
    "report": _INDIRECTED,
    "catalog": (*_INDIRECTED, "rich JSON", "rich msgpack"),
    "catalog_request": ("form, facts in JSON", "form, facts in PSON", "form, facts in YAML",
                        "form, facts in b64_zlib_yaml"),
    "processors": ("JSON", "PSON"),
}  # fmt: skip
"""The formats of a decoder's bodies (docs/protocol.md#formats-and-media-types); JSON for those not named here."""

DOCUMENTS: dict[str, object] = {
    "node": {"name": "a.b", "environment": "production", "parameters": {"x": 1}},
    "metadata": _FILE,
    "metadatas": [_FILE, _FILE],
    "facts": {"name": "a.b", "values": {"puppetversion": "7.23.0", "x": {"y": [1, 2.5, None, True]}}},
    "report": {
        "host": "a.b",
        "status": "changed",
        "report_format": 12,
        "transaction_uuid": "u-1",
        "logs": [{"level": "notice", "message": "hello", "source": "Puppet", "tags": ["notice"]}],
        "resource_statuses": {"File[/x]": {"title": "/x", "resource_type": "File", "failed": False, "changed": True}},
    },
    "catalog": {
        "name": "a.b",
        "environment": "production",
        "version": 7,
        "resources": [{"type": "File", "title": "/x", "exported": False, "parameters": {"mode": "0644"}}],
        "edges": [],
        "classes": ["settings"],
    },
    "processors": ["store", "puppetdb"],
}
"""One document for each decoder that reads several formats."""

_MEDIA = {
    "application/json": "JSON",
    "text/pson": "PSON",
    "text/yaml": "YAML",
    "application/x-yaml": "YAML",
    "application/x-msgpack": "msgpack",
    "application/vnd.puppet.rich+json": "rich JSON",
    "application/vnd.puppet.rich+msgpack": "rich msgpack",
    "application/octet-stream": "bytes",
    "application/x-raw": "bytes",
    "text/html": "HTML",
    "application/x-www-form-urlencoded": "form",
}
_WRITE: dict[str, Callable[[object], bytes]] = {
    "application/json": msgspec.json.encode,
    "text/pson": msgspec.json.encode,
    "text/yaml": lambda value: yaml.safe_dump(value, explicit_start=True).encode(),
    "application/x-msgpack": msgspec.msgpack.encode,
    "application/vnd.puppet.rich+json": msgspec.json.encode,
    "application/vnd.puppet.rich+msgpack": msgspec.msgpack.encode,
}
_FACTS = {"application/json": "JSON", "pson": "PSON", "text/pson": "PSON", "yaml": "YAML"}
_NAMES = {id(function): name for name, function in vars(decode).items() if callable(function)}


class Row(NamedTuple):
    """One line of the page."""

    endpoint: str
    side: str
    """``asked``, ``answered`` or ``refused`` (status 400 and more)."""
    format: str


class Real(NamedTuple):
    """How many bodies of real agents and masters were read, and how many were not."""

    decoded: int = 0
    undecodable: int = 0


# -- bodies ---------------------------------------------------------------------------------------------


def format_of(message: Message, document: Document | None, decoder: Decoder) -> str:
    """The format of a body, in the words of ``KNOWN``."""
    if isinstance(document, d.CatalogRequest) and not _unread(document):
        notation = document.facts_format
        return f"form, facts in {_FACTS.get(notation, notation)}" if notation else "form without facts"
    media = (message.header("content-type") or "").partition(";")[0].strip().lower()
    refused = isinstance(message, Response) and message.status >= 400
    known = KNOWN.get(_NAMES.get(id(decoder), ""), ())
    if media in ("text/plain", "") and not refused:
        if message.body.startswith(b"--- "):
            return "YAML"
        return known[0] if known in (("PEM",), ("bytes",)) else "text"
    return _MEDIA.get(media, "text" if media in ("text/plain", "") else media)


def _bodies(records: Iterable[Record]) -> Iterator[tuple[str, Row, bool]]:
    """Of each body in a capture: the agent's version, the row, and whether it was read."""
    analyzer = Analyzer()
    taken = [analyzer.feed(record) for record in records]
    analyzer.finish()
    for step in taken:
        record, match = step.record, step.match
        if not isinstance(record, Exchange) or match is None:
            continue
        version = (step.run.agent_version if step.run else None) or TOOL
        parts: list[tuple[str, Message, Document | None, Decoder]]
        parts = [("asked", record.request, step.request, match.endpoint.request)]
        if record.response:
            side = "refused" if record.response.status >= 400 else "answered"
            parts.append((side, record.response, step.response, match.endpoint.response))
        for side, message, document, decoder in parts:
            if document is None:  # not even tried: refused with 403
                continue
            # A catalog may also be asked for in the query alone; any other empty body says nothing.
            if message.body or (isinstance(document, d.CatalogRequest) and side == "asked"):
                row = Row(match.endpoint.name, side, format_of(message, document, decoder))
                yield version, row, not _unread(document)


def _unread(document: Document | None) -> bool:
    if isinstance(document, d.CatalogRequest):
        return isinstance(document.facts, d.Undecodable)
    return isinstance(document, d.Undecodable)


# -- what is real, what is made --------------------------------------------------------------------------


def recorded(captures: Sequence[Iterable[Record]]) -> dict[str, dict[Row, Real]]:
    """By the agent's version, what was decoded from captures of real ones."""
    found: dict[str, dict[Row, Real]] = defaultdict(lambda: defaultdict(Real))
    for records in captures:
        for version, row, read in _bodies(records):
            one = found[version][row]
            found[version][row] = Real(one.decoded + read, one.undecodable + (not read))
    return {version: dict(rows) for version, rows in found.items()}


def dump(real: dict[str, dict[Row, Real]]) -> str:
    """As golden/coverage.json keeps it."""
    lines = [
        json.dumps([version, *row, *real[version][row]])
        for version in sorted(real, key=_order)
        for row in sorted(real[version])
    ]
    return "[\n" + ",\n".join(lines) + "\n]\n"


def load(text: str) -> dict[str, dict[Row, Real]]:
    real: dict[str, dict[Row, Real]] = defaultdict(dict)
    for version, endpoint, side, form, decoded, undecodable in json.loads(text):
        real[version][Row(endpoint, side, form)] = Real(decoded, undecodable)
    return dict(real)


def made() -> Iterator[tuple[str, str, Decoder, Message]]:
    """Each of ``DOCUMENTS`` in every format: the decoder's name, the format, the decoder, the message."""
    for name, document in DOCUMENTS.items():
        for media, write in _WRITE.items():
            if _MEDIA[media] in KNOWN[name]:
                head, body = (("Content-Type", media),), write(document)
                asked = name in ("facts", "report")
                message = Request(head, body) if asked else Response(head, body, status=200)
                yield name, _MEDIA[media], getattr(decode, name), message


def _made() -> set[Row]:
    """What is decoded in the tests of the decoders and in the rules' examples, for all endpoints of a decoder."""
    messages = [(decoder, message) for _, decoder, message, _ in (row[:4] for row in TABLE)]
    messages += [(decoder, message) for _, _, decoder, message in made()]
    bodies: set[tuple[Decoder, str]] = set()
    refusals: set[str] = set()
    for decoder, message in messages:
        document = decoder(message)
        if _unread(document):
            continue
        form = format_of(message, document, decoder)
        if isinstance(message, Response) and message.status >= 400:
            refusals.add(form)  # the same for all: an error is read before the endpoint's own decoder is asked
        else:
            bodies.add((decoder, form))
    for rule in all_rules():
        for talk in (*rule.good(), *rule.bad()):
            for _, (name, side, form), read in _bodies(talk):
                if read and side != "refused":
                    row = next(endpoint for endpoint in ENDPOINTS if endpoint.name == name)
                    bodies.add((row.request if side == "asked" else row.response, form))
    rows = set()
    for endpoint in ENDPOINTS:
        rows |= {Row(endpoint.name, "asked", form) for decoder, form in bodies if decoder == endpoint.request}
        rows |= {Row(endpoint.name, "answered", form) for decoder, form in bodies if decoder == endpoint.response}
        rows |= {Row(endpoint.name, "refused", form) for form in refusals}
    return rows


def _known(endpoint: Endpoint) -> Iterator[Row]:
    """The rows that there must be for an endpoint, decoded or not."""
    for side, decoder in (("asked", endpoint.request), ("answered", endpoint.response)):
        for form in KNOWN.get(_NAMES.get(id(decoder), ""), ("JSON",)):
            yield Row(endpoint.name, side, form)
    yield Row(endpoint.name, "refused", "text")
    yield Row(endpoint.name, "refused", "JSON")


# -- the page --------------------------------------------------------------------------------------------


def page(real: dict[str, dict[Row, Real]], matrix: Matrix) -> str:
    """docs/coverage.md."""
    made = _made()
    live = {version: {Row(*row) for row in rows} for version, rows in matrix.bodies.items()}
    versions = sorted({*real, *live}, key=_order)
    names = list(dict.fromkeys(endpoint.name for endpoint in ENDPOINTS))
    rows = {row for endpoint in ENDPOINTS for row in _known(endpoint)} | {
        row for counts in (*real.values(), *live.values()) for row in counts
    }
    sides = ("asked", "answered", "refused")
    ordered = sorted(rows, key=lambda row: (names.index(row.endpoint), sides.index(row.side), row.format))
    lines = [
        "# Coverage",
        "",
        "Which bodies of which agents have been decoded from recordings of real agents and masters (how many of them),",
        "which only of living ones (`live`: in [the matrix of versions](#the-matrix-of-versions)), and which only from",
        "made ones: those of the tests of the decoders and of the rules. `n!` are real bodies that could not be read:",
        "garbage that was sent on purpose. Made from the tests; `pytest tests/test_coverage.py --update-golden` writes",
        "it anew. A row that no body was ever decoded for says **never**.",
        "",
        "The agents are Puppet's, and OpenVox's from 9 on. The masters of the recordings were Puppet 3.8.7 (2.7.26,",
        "3.8.7), puppetserver 8.7.0 (9.0.0-rc1, and two runs of 8.10.0) and 7.9.5 (all others); those of the living",
        "agents puppetserver 7.9.5 and 8.7.0.",
        f"`{TOOL}` is what names no version: curl, and requests whose run could not be told.",
        "",
        f"| endpoint | | format | {' | '.join(versions)} | evidence |",
        f"|---|---|---|{'---|' * (len(versions) + 1)}",
    ]
    before: tuple[str, str] = ("", "")
    for row in ordered:
        counts = {version: real.get(version, {}).get(row) for version in versions}
        alive = {version for version in versions if row in live.get(version, ())}
        cells = [_cell(counts[version], live=version in alive) for version in versions]
        evidence = _evidence(row, [each for each in counts.values() if each], made, live=bool(alive))
        head = (row.endpoint if row.endpoint != before[0] else "", row.side if row[:2] != before else "")
        lines.append(f"| {' | '.join((*head, row.format, *cells, evidence))} |")
        before = row[:2]
    counted = [line.rsplit("|", 2)[1].strip() for line in lines[-len(ordered) :]]
    numbers = {kind: counted.count(kind) for kind in ("recorded", "live", "made", "**never**")}
    lines += ["", ", ".join(f"{number} rows {kind}" for kind, number in numbers.items()) + "."]
    material = material_table.lines(material_table.load())
    return "\n".join([*lines, "", *version_matrix.table(matrix), "", *openvox_table.lines(), "", *material, ""])


def write_page() -> None:
    """Write docs/coverage.md anew, of what is stored."""
    PAGE.write_text(page(load(REAL.read_text()), version_matrix.load()))


def _cell(real: Real | None, *, live: bool) -> str:
    if real is None:
        return "live" if live else ""
    return " ".join([*([str(real.decoded)] if real.decoded else []), *([f"{real.undecodable}!"] if real[1] else [])])


def _evidence(row: Row, real: Sequence[Real], made: set[Row], *, live: bool) -> str:
    if any(count.decoded for count in real):
        return "recorded"
    if live:
        return "live"
    return "made" if row in made else "**never**"


def _order(version: str) -> tuple[int, ...]:
    return tuple(map(int, re.findall(r"\d+", version))) if version != TOOL else (1000,)


def all_captures() -> list[Iterable[Record]]:
    return [records_of(path) for path in (*SAMPLES, *VERSIONS, *RECORDINGS)]

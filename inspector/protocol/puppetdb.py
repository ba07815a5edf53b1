"""Requests to PuppetDB: what they are about, and what it accepts with 200 and cannot store.

That was observed with PuppetDB 7.12 on PostgreSQL 15, each value by itself
(docs/protocol.md#endpoint-puppetdb_command).
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, NamedTuple

from inspector import regex
from inspector.protocol.documents import Catalog, Data, Facts, Report

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inspector.model import Request
    from inspector.protocol.documents import Document
    from inspector.protocol.endpoints import Match

NODE = regex.compile(r"(?:nodes|factsets|catalogs)/(?P<name>[^/]+)(?:/.*)?")
"""The path of a query about one node."""
NUL = "\0"
NAME = 1024
"""Characters of a fact's name, at most."""
ROW, HEAD = 2704, 24
"""Bytes of a row of an index, at most, and those that are not the text."""
SAVED = 0.75
"""A text is stored compressed if that makes it at least so much smaller."""
SHOWN = 40
"""Characters of a name before and after what is wrong in it."""


def parameter(match: Match, name: str) -> str:
    """Return a parameter of a request's URL; empty without it."""
    return next((value for key, value in match.parameters if key == name), "")


def node(match: Match) -> str:
    """Return the certname of the node that a command or a query is about; empty for a query about others."""
    found = NODE.fullmatch(match.key) if match.key else None
    return found["name"] if found else parameter(match, "certname")


def command(match: Match) -> str:
    """Return the name of a command in words; empty for a query."""
    return parameter(match, "command").replace("_", " ")


def query(match: Match, document: Document | None) -> str:
    """Return a query as it was sent, in PQL or as JSON behind its path; empty for a command."""
    sent = document.value.get("query") if isinstance(document, Data) and isinstance(document.value, dict) else None
    written = sent if isinstance(sent, str) else parameter(match, "query")
    return " ".join(filter(None, [match.key, written]))


def unpacked(request: Request) -> int | None:
    """Return how many bytes a command has without compression; None if the master does not say it."""
    length = request.header("x-uncompressed-length") or ""
    return int(length) if length.isascii() and length.isdecimal() and len(length) < 16 else None


class Obstacle(NamedTuple):
    """One value that PuppetDB cannot store."""

    where: str
    """What it is: ``the title of Notify[...]``."""
    why: str
    text: str
    """The beginning of the value, up to what is wrong in it."""


def obstacles(document: Document | None) -> Iterator[Obstacle]:
    """Yield what keeps PuppetDB from storing a node's facts, catalog or report."""
    match document:
        case Facts():
            yield from _facts(document)
        case Catalog():
            yield from _catalog(document)
        case Report():
            yield from _report(document)


def _facts(facts: Facts) -> Iterator[Obstacle]:
    for name in facts.values:
        if len(name) > NAME:
            yield Obstacle("the name of the fact", f"it has {len(name):,} characters, and {NAME:,} are allowed", name)
    waiting: list[tuple[str, Any]] = [("", facts.values)]
    while waiting:
        path, value = waiting.pop()
        if isinstance(value, list):
            waiting += [(path, item) for item in value if isinstance(item, dict | list)]
        elif isinstance(value, dict):
            for key, item in value.items():
                if NUL in key:
                    yield Obstacle(f"a key of the fact {path}" if path else "the name of the fact", _HAS_NUL, key)
                if isinstance(item, dict | list):
                    waiting.append((path or key, item))


def _catalog(catalog: Catalog) -> Iterator[Obstacle]:
    yield from _without_nul("the version of the catalog", catalog.version)
    for resource in catalog.resources:
        ref = f"{resource.type}[{resource.title}]"
        yield from _without_nul("the title of the resource", ref)
        yield from _in_index("the title of the resource", ref)
        yield from _without_nul(f"the path of the manifest of {_ends(ref)}", resource.file)
        for tag in resource.tags:
            yield from _without_nul(f"a tag of {_ends(ref)}", tag)
        for name in resource.parameters:
            yield from _without_nul(f"the name of a parameter of {_ends(ref)}", name)
            yield from _in_index(f"the name of a parameter of {_ends(ref)}", name)


def _report(report: Report) -> Iterator[Obstacle]:
    yield from _without_nul("the version of the catalog", report.configuration_version)
    for ref, status in report.resource_statuses.items():
        if not status.events:
            continue  # nothing of it is stored where NUL does harm
        yield from _without_nul("the title of the resource", ref)
        yield from _in_index("the title of the resource", ref)
        yield from _without_nul(f"the path of the manifest of {_ends(ref)}", status.file)
        for name in status.containment_path or ():
            yield from _without_nul(f"what contains {_ends(ref)}", name)
        for event in status.events:
            yield from _without_nul(f"the message of an event of {_ends(ref)}", event.message)
            yield from _without_nul(f"the name of an event of {_ends(ref)}", event.name)
            yield from _without_nul(f"the property of an event of {_ends(ref)}", event.property)
            yield from _in_index(f"the property of an event of {_ends(ref)}", event.property or "")


_HAS_NUL = "it has the character NUL"


def _without_nul(where: str, text: object) -> Iterator[Obstacle]:
    if isinstance(text, str) and NUL in text:
        yield Obstacle(where, _HAS_NUL, text)


def _in_index(where: str, text: str) -> Iterator[Obstacle]:
    """PostgreSQL compresses what is long, without Huffman's codes: fixed ones come close to that."""
    if len(text) * 4 + HEAD <= ROW:
        return
    data = text.encode("utf-8", "replace")
    if len(data) + HEAD <= ROW:
        return
    packer = zlib.compressobj(strategy=zlib.Z_FIXED)
    packed = len(packer.compress(data) + packer.flush())
    if (packed if packed <= SAVED * len(data) else len(data)) + HEAD > ROW:
        yield Obstacle(where, f"it has {len(data):,} bytes, too many for a row of an index ({ROW:,})", text)


def _ends(ref: str) -> str:
    return ref if len(ref) <= 2 * SHOWN else f"{ref[:SHOWN]}...{ref[-SHOWN:]}"

"""Where in a record the proof of a finding stands: the tab, and the text to look for in it.

A finding's message quotes what it found: a header, a name, a number, the master's own words. What of it stands in the
record is looked for, the most telling first.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal
from urllib.parse import unquote_plus

from inspector.model import Exchange, Gap, Visible
from inspector.protocol import decode, documents
from inspector.protocol.documents import CatalogRequest, CertificateRequest, Certificates, RevocationLists
from inspector.rules import rule_of

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inspector.analyzer import Step
    from inspector.model import Finding, Message

type Tab = Literal["meaning", "request", "response", "tls", "timing"]
type Part = Literal["", "headers", "body"]


@dataclass(frozen=True, slots=True)
class Place:
    """A tab of a record, the part of it, and what to look for there."""

    tab: Tab
    part: Part = ""
    needle: str = ""


_LEAST = 4
"""Characters of a word that is worth looking for."""
_MOST = 200
"""Characters of a phrase that is looked for."""
_QUOTED = re.compile(r"'([^']{2,200})'|\"([^\"]{2,200})\"")
_UUID = re.compile(r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b")
_REFERENCE = re.compile(r"\b[A-Z][A-Za-z_:]*\[[^\]]{1,150}\]")
_NAMED = re.compile(r"[A-Za-z0-9_./:=-]*[A-Za-z0-9][._/:=-][A-Za-z0-9][A-Za-z0-9_./:=-]*")
"""Hosts, certnames, versions, paths, settings: words with a mark in the middle."""
_NUMBER = re.compile(r"(?<![\w.:-])\d{2,}(?![\w.:%-])")
_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]{3,}")
_WORDS = """
agent agents master after again already although answer answered asked asks because before between bytes cannot catalog
certificate certificates come comes could does each endpoint ever every first from given gives have into itself last
later like more most must never none only other proxy puppet request requests resource resources response same says
second seconds sent several since some than that their them then there they this times took what when where which while
will with without report reports
"""
_PROSE = frozenset(_WORDS.split())
_DATE = re.compile(r"\b\d{4}-\d\d-\d\d(?: \d\d:\d\d)?(?: UTC)?")
_SENT = re.compile(r"\b(?:agent|client) (?:sent|sends|asks|asked)\b|\brequest (?:is by|carries)\b")
_MISSING = re.compile(r"\bwithout ([A-Z][A-Za-z]*(?:-[A-Z][A-Za-z]*)+)")
_LASTED = re.compile(r"\b(?:took|took more than|every|silent for less than) [\d.]+ (?:ms|s|min)\b")
_TLS = re.compile(r"\bTLS 1\.\d\b")


def locate(finding: Finding, step: Step) -> Place:
    """Where to look first for what a finding says of this record."""
    message, record = _DATE.sub(" ", finding.message), step.record
    if not isinstance(record, Exchange) or rule_of(finding.rule).visible is Visible.HANDSHAKE:
        quoted = next((each for each, _ in _needles(message, None)), "")
        return Place("tls" if not isinstance(record, Gap) else "meaning", "", quoted)
    if _missing(message, record):
        return Place("response", "headers", f"{record.response.status}" if record.response else "")
    places = list(_texts(step, record))
    if _SENT.search(message):
        places.sort(key=lambda each: each[0] != "request")
    for needle, whole in _needles(message, record):
        for tab, part, text in places:
            if found := _find(needle, text, whole=whole):
                return Place(tab, part, found)
    if _LASTED.search(message):
        return Place("timing")
    return Place("meaning")


def _missing(message: str, exchange: Exchange) -> bool:
    """Whether it is about a header that the master did not send."""
    found = _MISSING.search(message)
    return bool(found and exchange.response and exchange.response.header(found[1]) is None)


def _texts(step: Step, exchange: Exchange) -> Iterator[tuple[Tab, Part, str]]:
    """What may hold the proof, the shorter before the longer."""
    request, response = exchange.request, exchange.response
    if response:
        line = f"{response.http_version} {response.status} {response.reason}"
        yield "response", "headers", "\n".join([line, *_lines(response)])
    yield "request", "headers", "\n".join([f"{request.method} {request.target}", *_lines(request)])
    for document in (step.response, step.request):
        if isinstance(document, Certificates | CertificateRequest | RevocationLists):
            yield "meaning", "", str(documents.plain(document))
    if response and (body := _body(response)):
        yield "response", "body", body
    if body := _body(request):
        yield "request", "body", unquote_plus(unquote_plus(body)) if isinstance(step.request, CatalogRequest) else body
    yield "tls", "", "\n".join(_handshakes(exchange))


def _handshakes(exchange: Exchange) -> Iterator[str]:
    for leg in (exchange.agent, exchange.master):
        if leg:
            yield from (each for each in (leg.address, leg.tls_version, leg.cipher, leg.sni) if each)
    yield from exchange.stripped


def _lines(message: Message) -> Iterator[str]:
    return (f"{name}: {value}" for name, value in message.headers)


def _body(message: Message) -> str:
    return (decode.content(message) or b"").decode("utf-8", "replace")


def _needles(message: str, exchange: Exchange | None) -> Iterator[tuple[str, bool]]:
    """What a message may have from the record, the most telling first; with it whether it must stand there as a word
    of its own."""
    for found in _QUOTED.finditer(message):
        yield found[1] or found[2], False
    yield from ((each, False) for each in _UUID.findall(message))
    yield from ((each, False) for each in _REFERENCE.findall(message))
    tail = message.partition(": ")[2]
    while tail:
        # The master's words, or a list: as a whole, without its end, its first.
        yield tail.rstrip("…. ")[:_MOST], True
        yield re.split(r"[;,(]| and \d+ more", tail)[0].strip("…. ")[:_MOST], True
        tail = tail.partition(": ")[2]
    if exchange and exchange.response and (status := str(exchange.response.status)) in _NUMBER.findall(message):
        yield status, True
    if exchange:
        names = {name for each in (exchange.request, exchange.response) if each for name, _ in each.headers}
        yield from ((name, True) for name in sorted(names, key=len, reverse=True) if _has(message, name))
        if _TLS.search(message) and exchange.agent.tls_version:
            yield exchange.agent.tls_version, True
    named = _NAMED.findall(message)
    yield from ((each.strip("./:=-"), True) for each in named)
    yield from ((each, True) for each in _NUMBER.findall(message))
    words = [each for each in _WORD.findall(_NAMED.sub(" ", message)) if each.lower() not in _PROSE]
    yield from ((each, True) for each in sorted(words, key=len, reverse=True) if "_" in each or not each.islower())
    yield from ((each, True) for each in sorted(words, key=len, reverse=True))


def _has(message: str, name: str) -> bool:
    return "-" in name and name.lower() in message.lower()


def _find(needle: str, text: str, *, whole: bool) -> str:
    """How a text is written there; empty if it is not."""
    if len(needle) < (2 if needle.isdigit() else _LEAST):
        return ""
    for each in dict.fromkeys((needle, json.dumps(needle, ensure_ascii=False)[1:-1])):
        word = re.escape(each)
        found = re.search(rf"(?<!\w){word}(?!\w)" if whole else word, text, re.IGNORECASE)
        if found:
            return found[0]
    return ""

"""Where in a record the proof of a finding stands: the tab, and the text to look for in it.

A finding's message quotes what it found: a header, a name, a number, the master's own words. What of it stands in the
record is looked for, the most telling first: in what the record means before its bytes.
"""

from __future__ import annotations

import json
import re
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import unquote_plus

from inspector.model import Exchange, Gap, Place, Visible
from inspector.protocol import decode
from inspector.protocol.documents import CatalogRequest
from inspector.rules import rule_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from inspector.analysis.analyzer import Step
    from inspector.model import Finding, Message, RecordTab


class Page(NamedTuple):
    """A part of the tabs Meaning and TLS; its lines are made when they are asked for."""

    tab: RecordTab
    part: str
    lines: Callable[[], Iterable[str]]


class _Needle(NamedTuple):
    text: str
    whole: bool = True
    """Whether it must stand there as a word of its own."""
    telling: bool = True
    """Whether it proves anything among other words; else only a header or a body is searched for it."""


class _Lines(NamedTuple):
    tab: RecordTab
    part: str
    lines: list[str]
    text: str


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
_LINES = 20_000
"""Lines of a part that are looked through: what is behind them is found in the body."""
_RANKS = {"events": 0, "log": 1}
"""Parts of a report that say what was wrong come before those that say to what."""
_CERTIFICATES = ("certificates", "signing request", "crls")
"""Parts that show those, their requests, or what revokes them."""
_OF_CERTIFICATE = re.compile(r"^(?:the |the CA hands out a |\S+ shows the )certificate\b")
_FIELDS = [
    (re.compile(pattern), field)
    for pattern, field in (
        (r"alternative names?\b", "alternative name: "),
        (r"\bis signed over\b", "signature: "),
        (r"\bnot signed by that CA's key\b", "signed by: "),
        (r"\bhas the number\b", "number: "),
        (r"\b(?:expired|ends|begins) on\b", "validity: "),
        (r"\bis revoked\b", "revoked: "),
        (r"\bshows the certificate\b", "serial: "),
        (r"\bkeys?\b", "key: "),
    )
]
"""Which field of a certificate, a signing request or a revocation list a message is about."""
_TLS = re.compile(r"\bTLS 1\.\d\b")


def locate(finding: Finding, step: Step, pages: Sequence[Page]) -> Place:
    """Where to look first for what a finding says of this record, of which ``pages`` is what it means."""
    message, record = _DATE.sub(" ", finding.message), step.record
    if not isinstance(record, Exchange) or rule_of(finding.rule).visible is Visible.HANDSHAKE:
        quoted = next((each.text for each in _needles(message, None)), "")
        return Place("tls" if not isinstance(record, Gap) else "meaning", "", quoted)
    if _missing(message, record):
        return Place("response", "headers", f"{record.response.status}" if record.response else "")
    needles = list(dict.fromkeys(_needles(message, record)))
    meaning = sorted(_read(pages, "meaning"), key=lambda each: _RANKS.get(each.part, len(_RANKS)))
    for said in (each for each in meaning if each.part == "error"):
        if found := next((found for each in needles if " " in each.text and (found := _find(each, said.text))), ""):
            return Place("meaning", said.part, found)
    if place := _field(finding.message, needles, meaning):
        return place
    if _OF_CERTIFICATE.search(message) and (place := _field(finding.message, needles, _read(pages, "tls"))):
        return place
    places = list(_texts(step, record))
    if _SENT.search(message):
        places.sort(key=lambda each: each[0] != "request")
    heads = _heads(record)
    for needle in needles:
        if needle.telling and needle.text.lower() not in heads:
            for each in meaning:
                if found := _line(needle, needles, each):
                    return Place("meaning", each.part, found)
        for tab, part, text in places:
            if found := _find(needle, text):
                return Place(tab, part, found)
    return Place("timing" if _LASTED.search(message) else "meaning")


def _read(pages: Sequence[Page], tab: RecordTab) -> Iterator[_Lines]:
    for page in pages:
        if page.tab == tab:
            lines = list(islice(page.lines(), _LINES))
            yield _Lines(tab, page.part, lines, "\n".join(lines))


def _field(message: str, needles: list[_Needle], pages: Iterable[_Lines]) -> Place | None:
    """The field of a certificate or its like that a message is about: of the one that it names, if it names one."""
    field = next((field for pattern, field in _FIELDS if pattern.search(message)), None)
    names = [each.text for each in needles if each.telling]
    for page in pages:
        at = [at for at, line in enumerate(page.lines) if field and line.startswith(field)]
        if at and (page.tab == "tls" or page.part in _CERTIFICATES):
            heads = [at for name in names for at, line in enumerate(page.lines) if f"CN={name}" in line or line == name]
            after = [each for each in at if heads and each > heads[0]] or at
            lines = [page.lines[each] for each in after]
            best = max(lines, key=lambda line: sum(len(name) for name in names if name in line))
            return Place(page.tab, page.part, best[:_MOST])
    return None


def _line(needle: _Needle, needles: list[_Needle], page: _Lines) -> str:
    """What leads to the line that has most of what is looked for, of those that have this; empty if none has."""
    found = _find(needle, page.text)
    if not found:
        return ""
    having = [line for line in page.lines if _find(needle, line)]
    if not having:  # it goes on in the next line
        return found
    best = max(having, key=lambda line: sum(len(each.text) for each in needles if each.telling and _find(each, line)))
    for each in (needle, *needles):
        told = _find(each, best)
        if told and next(line for line in page.lines if told.lower() in line.lower()) == best:
            return told
    return found


def _missing(message: str, exchange: Exchange) -> bool:
    """Whether it is about a header that the master did not send."""
    found = _MISSING.search(message)
    return bool(found and exchange.response and exchange.response.header(found[1]) is None)


def _heads(exchange: Exchange) -> set[str]:
    """What only a header can prove, in lower case: status, names and values of headers."""
    found = {str(exchange.response.status)} if exchange.response else set()
    for message in (exchange.request, exchange.response):
        for name, value in message.headers if message else ():
            found |= {each.lower() for each in (name, value, value.partition(";")[0], f"{name}: {value}")}
    return found


def _texts(step: Step, exchange: Exchange) -> Iterator[tuple[RecordTab, str, str]]:
    """What may hold the proof, the shorter before the longer."""
    request, response = exchange.request, exchange.response
    if response:
        line = f"{response.http_version} {response.status} {response.reason}"
        yield "response", "headers", "\n".join([line, *_lines(response)])
    yield "request", "headers", "\n".join([f"{request.method} {request.target}", *_lines(request)])
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


def _needles(message: str, exchange: Exchange | None) -> Iterator[_Needle]:
    """What a message may have from the record, the most telling first."""
    for found in _QUOTED.finditer(message):
        yield _Needle(found[1] or found[2], whole=False)
    yield from (_Needle(each, whole=False) for each in _UUID.findall(message))
    yield from (_Needle(each, whole=False) for each in _REFERENCE.findall(message))
    tail = message.partition(": ")[2]
    while tail:
        # The master's words, or a list: as a whole, without its end, its first.
        yield _Needle(tail.rstrip("…. ")[:_MOST])
        yield _Needle(re.split(r"[;,(]| and \d+ more", tail)[0].strip("…. ")[:_MOST])
        tail = tail.partition(": ")[2]
    if exchange and exchange.response and (status := str(exchange.response.status)) in _NUMBER.findall(message):
        yield _Needle(status)
    if exchange:
        names = {name for each in (exchange.request, exchange.response) if each for name, _ in each.headers}
        yield from (_Needle(name) for name in sorted(names, key=len, reverse=True) if _has(message, name))
        if _TLS.search(message) and exchange.agent.tls_version:
            yield _Needle(exchange.agent.tls_version)
    named = _NAMED.findall(message)
    yield from (_Needle(each.strip("./:=-")) for each in named)
    yield from (_Needle(each, telling=False) for each in _NUMBER.findall(message))
    words = [each for each in _WORD.findall(_NAMED.sub(" ", message)) if each.lower() not in _PROSE]
    marked = [each for each in words if "_" in each or not each.islower()]
    yield from (_Needle(each) for each in sorted(marked, key=len, reverse=True))
    yield from (_Needle(each, telling=False) for each in sorted(words, key=len, reverse=True))


def _has(message: str, name: str) -> bool:
    return "-" in name and name.lower() in message.lower()


def _find(needle: _Needle, text: str) -> str:
    """How a text is written there; empty if it is not."""
    if len(needle.text) < (2 if needle.text.isdigit() else _LEAST):
        return ""
    for each in dict.fromkeys((needle.text, json.dumps(needle.text, ensure_ascii=False)[1:-1])):
        word = re.escape(each)
        found = re.search(rf"(?<!\w){word}(?!\w)" if needle.whole else word, text, re.IGNORECASE)
        if found:
            return found[0]
    return ""

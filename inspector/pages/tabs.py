"""The tabs of a record: which there are, and what stands in them. Made in a thread; no widgets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from typing import TYPE_CHECKING, Literal

from inspector import regex
from inspector.analysis.analyzer import masked
from inspector.model import Exchange, Gap, Handshake
from inspector.pages import catalog, certificates, report
from inspector.pages.certificates import TrustContext
from inspector.pages.content import Content
from inspector.pages.message import Body, file_name, head, source
from inspector.pages.model import WRONG, Item, Table, find, item_of
from inspector.pages.record import explained, timing
from inspector.privacy import hiding, redact
from inspector.privacy.secrets import Secret
from inspector.protocol import documents as d
from inspector.protocol import rich
from inspector.protocol.kinds import Kind
from inspector.summaries import summary, wording
from inspector.text import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from inspector.analysis.analyzer import Step
    from inspector.model import Place
    from inspector.protocol.documents import Document
    from inspector.summaries.summary import RunLike

type Model = Item | Table | Content | Body

RELATED = (Kind.CA_BUNDLE, Kind.CRL, Kind.CERTIFICATE, Kind.CSR, Kind.RENEWAL)
"""Kinds of requests whose bodies a record's certificates are judged by."""
ADDED = "Recorded is the master's own answer, and only that is judged."
INJECTED = "The proxy did this because of puppet_fault or run --fault: neither the agent nor the master is to blame."
MOST_RELATED = 12
"""Of such records of its run before it, so many are read."""


_READ = (d.ErrorDocument, d.Undecodable, d.Text)
"""Documents whose text was made of a body: in it, a secret may no longer be found."""


@dataclass(frozen=True, slots=True)
class TabPart:
    """A part of a tab, made when it is first displayed."""

    title: str
    make: Callable[[], Model]

    def made(self) -> Model:
        """Its content; an error text if it cannot be displayed."""
        try:
            return self.make()
        except WRONG as error:
            return unshown(error)


@dataclass(frozen=True, slots=True)
class Tab:
    """One tab of a record."""

    name: str
    parts: tuple[TabPart, ...]


def unshown(error: Exception) -> Content:
    """The text displayed instead of something that cannot be displayed."""
    return Content("", f"Cannot be shown: {clean(str(error))}".encode("utf-8", "replace"))


def known(step: Step, related: Iterable[Step] = ()) -> TrustContext:
    """The trust by which a record's certificates are checked: its own, and that of other steps of its run."""
    found = TrustContext(step.record.ended)
    for other in (*related, step):
        for document in (other.request, other.response):
            if isinstance(document, d.Certificates):
                bundle = other.match is not None and other.match.endpoint.kind is Kind.CA_BUNDLE
                found = found.also(document.certificates, trusted=document.certificates if bundle else ())
            elif isinstance(document, d.RevocationLists):
                found = found.also(crls=document.crls)
            elif isinstance(document, d.CertificateRequest) and other is not step:
                answer = other.exchange.response if other.exchange else None
                taken = answer is not None and answer.status < 300
                found = found.also(requests=[document], accepted=[document.key] if taken else ())
    record = step.record
    legs = [record.agent, record.master] if isinstance(record, Exchange) else []
    legs = [record.leg] if isinstance(record, Handshake) else legs
    return found.also(certificates.shown(legs))


def tabs(step: Step, by: TrustContext, run: RunLike | None = None) -> list[Tab]:
    """The tabs of a record; of one of a run with a remark where an answer that reports an error is normal."""
    record = step.record
    secrets = cache(lambda: frozenset(redact.known(record)) if isinstance(record, Exchange) else frozenset())

    def hiding_these(part: TabPart) -> TabPart:
        return TabPart(part.title, lambda: _without(part.make(), secrets()))

    return [replace(tab, parts=tuple(map(hiding_these, tab.parts))) for tab in _tabs(step, by, run)]


def _without(model: Model, known: frozenset[str]) -> Model:
    """Hide the secrets of a record wherever they are in a part."""
    match model:
        case Item():
            model.know(known)
        case Table() | Body():
            model.known = known
        case Content():
            text = model.data.decode("utf-8", "replace")
            hidden = str(hiding.without(text, known))
            if hidden != text:
                return replace(model, data=hidden.encode("utf-8", "replace"), unmasked=model.unmasked or model)
    return model


def _tabs(step: Step, by: TrustContext, run: RunLike | None) -> list[Tab]:
    record = step.record
    match record:
        case Gap():
            return [Tab("Meaning", (TabPart("Gap", lambda: _prose(record.reason, _lost(record))),))]
        case Handshake():
            return [
                Tab("Meaning", (TabPart("Handshake", lambda: _handshake(record)),)),
                Tab("TLS", (TabPart("TLS", lambda: certificates.handshakes(record, by)),)),
            ]
    found = [Tab("Meaning", tuple(meaning(step, record, by, run)))]
    found.append(Tab("Request", tuple(_message(step, record, "request"))))
    if record.response:
        found.append(Tab("Response", tuple(_message(step, record, "response"))))
    found.append(Tab("TLS", (TabPart("TLS", lambda: certificates.handshakes(record, by)),)))
    found.append(Tab("Timing", (TabPart("Timing", lambda: timing(record)),)))
    found.append(Tab("Explain", (TabPart("Explain", lambda: explained(step)),)))
    return found


def _message(step: Step, exchange: Exchange, side: str) -> Iterator[TabPart]:
    message = exchange.request if side == "request" else exchange.response
    document = step.request if side == "request" else step.response
    if message is None:
        return
    yield TabPart("Headers", lambda: head(message, exchange.stripped))
    if message.body or message.lost:
        code = side == "response" and step.match is not None and step.match.endpoint.kind is Kind.PLUGIN_CONTENT
        yield TabPart("Body", lambda: Body(message, document, file_name(step, side), source(step), code=code))


def meaning(step: Step, exchange: Exchange, by: TrustContext, run: RunLike | None = None) -> Iterator[TabPart]:
    """The decoded response and request, if they have content; before them a fault that was injected, what the proxy
    added, or why it answered itself."""
    if exchange.withheld:
        yield TabPart("Answered by the proxy", lambda: _prose(f"The master was not asked: {exchange.withheld}."))
    if exchange.injected:
        yield TabPart("Injected", lambda: _prose(f"{wording.injection(exchange.injected)}.", INJECTED))
    if exchange.added:
        yield TabPart("Added", lambda: _prose(f"For the agent, {exchange.added}.", ADDED))
    if exchange.response is None:
        reason = exchange.error or "unknown reason"
        yield TabPart("No answer", lambda: _prose(f"No answer: {reason}"))
    answered = list(_of_side(step, by, "Response"))
    if summary.normal(step, run, by.accepted):
        answered = [TabPart(part.title, lambda part=part: _remarked(part.made())) for part in answered]  # type: ignore[misc]
    parts = [*answered, *_of_side(step, by, "Request")]
    trouble = isinstance(step.response, d.ErrorDocument | d.Undecodable)
    if isinstance(step.request, d.Report | d.Facts | d.Command | d.CertificateRequest) and not trouble:
        parts = [*_of_side(step, by, "Request"), *_of_side(step, by, "Response")]
    yield from parts
    if not parts and exchange.response:
        yield TabPart("Answer", lambda: _prose(_bare(exchange)))


def _remarked(model: Model) -> Model:
    """The text of an answer, and that there is nothing wrong."""
    if not isinstance(model, Content):
        return model
    data = model.data + f"\n\nThis is normal: {wording.SENT_AGAIN}.".encode()
    unmasked = model.unmasked and _remarked(model.unmasked)
    return replace(model, data=data, unmasked=unmasked if isinstance(unmasked, Content) else None)


def _bare(exchange: Exchange) -> str:
    status = exchange.response.status if exchange.response else 0
    meanings = {304: "not modified, the agent keeps its copy", 404: "not found", 403: "refused", 401: "refused"}
    return f"{status}: {meanings.get(status, 'neither request nor response has a body to decode')}"


def _of_side(step: Step, by: TrustContext, side: Literal["Request", "Response"]) -> Iterator[TabPart]:
    """The decoded request or response."""
    document = step.request if side == "Request" else step.response
    if not isinstance(document, _READ):
        yield from _of(document, by, side)
        return
    hidden = masked(step)
    (part,) = _of(document, by, side)
    for other in _of(hidden.request if side == "Request" else hidden.response, by, side):
        yield TabPart(part.title, lambda other=other: _hiding(part.made(), other.made()))  # type: ignore[misc]


def _hiding(whole: Model, hidden: Model) -> Model:
    """What is shown of a text that was read out of a body with masks, and the text itself behind it."""
    if isinstance(whole, Content) and isinstance(hidden, Content) and hidden.data != whole.data:
        data = str(hiding.covered(hidden.data.decode("utf-8", "replace"))).encode("utf-8", "replace")
        return replace(hidden, data=data, unmasked=whole.unmasked or whole)
    return hidden


def _of(document: Document | None, by: TrustContext, side: str) -> Iterator[TabPart]:
    match document:
        case None | d.Nothing():
            return
        case d.Undecodable():
            where = f"The raw bytes are in tab {side}, part Body; v switches between text and hexadecimal."
            yield TabPart(f"{side} unreadable", lambda: _prose(f"Cannot be decoded: {document.reason}", where))
        case d.ErrorDocument():
            yield TabPart("Error", lambda: _error(document))
        case d.Text():
            yield TabPart(f"{side} text", lambda: _prose(document.text))
        case d.CatalogRequest():
            yield from _asked(document, side)
        case d.Facts():
            yield TabPart("Facts", lambda: facts_tree(document))
        case d.Catalog():
            yield TabPart("Catalog", lambda: catalog.contained(document))
            yield TabPart("By type", lambda: catalog.by_type(document))
            yield TabPart("About", lambda: catalog.about(document))
        case d.Report():
            parts = [
                TabPart("Resources", lambda: report.resources(document)),
                TabPart("Events", lambda: report.events(document)),
                TabPart("Log", lambda: report.logs(document)),
                TabPart("Metrics", lambda: report.metrics(document)),
                TabPart("About", lambda: report.about(document)),
            ]
            # Of a run that came to no resources its log tells why.
            yield from parts if document.resource_statuses else sorted(parts, key=lambda part: part.title != "Log")
        case d.Command():
            yield from _of(document.payload, by, side)
            names = [name for name in document.__struct_fields__ if name != "payload"]
            fields = [item_of(name, getattr(document, name)) for name in names]
            yield TabPart("Command", lambda: Item("", inner=lambda: fields))
        case d.FileMetadata():
            yield TabPart("File", lambda: report.files([document]))
            yield TabPart("Fields", lambda: _tree(document))
        case d.FileMetadatas():
            yield TabPart("Files", lambda: report.files(document.files))
        case d.CertificateRequest():
            yield TabPart("Signing request", lambda: Item("", inner=lambda: [certificates.request(document, by)]))
        case d.Certificates():
            chain = document.certificates
            yield TabPart(
                "Certificates", lambda: Item("", inner=lambda: [certificates.certificate(e, by) for e in chain])
            )
        case d.RevocationLists():
            yield TabPart("CRLs", lambda: Item("", inner=lambda: [certificates.crl(crl, by) for crl in document.crls]))
        case d.Opaque():
            yield TabPart("Content", lambda: _tree(document))
        case d.Data():
            yield TabPart(side, lambda: _top(item_of("", rich.read(hiding.masked(document.value), {}))))
        case _:
            yield TabPart(type(document).__name__, lambda: _tree(document))


def _asked(document: d.CatalogRequest, side: str) -> Iterator[TabPart]:
    if isinstance(document.facts, d.Facts):
        facts = document.facts
        yield TabPart("Facts", lambda: facts_tree(facts))
    elif isinstance(document.facts, d.Undecodable):
        yield from _of(document.facts, TrustContext(0.0), side)
    form = [name for name in document.__struct_fields__ if name != "facts"]
    yield TabPart("Form", lambda: Item("", inner=lambda: [item_of(name, getattr(document, name)) for name in form]))


def facts_tree(facts: d.Facts) -> Item:
    def inner() -> Iterator[Item]:
        values = hiding.masked(facts.values)
        yield from (item_of(name, values[name]) for name in sorted(values))
        limits = facts.exceeded()
        about = {"name": facts.name, "timestamp": facts.timestamp, "expiration": facts.expiration,
                 "values": facts.count, "bytes as JSON": facts.size,
                 "limits exceeded": "; ".join(limits) or "none"}  # fmt: skip
        yield Item("(about these facts)", inner=lambda: [item_of(name, value) for name, value in about.items()],
                   note=f"{facts.count:,} values", style="italic")  # fmt: skip

    return Item("facts", inner=inner)


def _tree(document: Document) -> Item:
    """A document shown as its fields."""
    plain = {name: value for name, value in (d.plain(document) or {}).items() if name != "kind"}
    return _top(item_of("", hiding.masked(plain)))


def _top(item: Item) -> Item:
    """A root with children: the root of a tree is not drawn."""
    return item if item.branch else Item("", inner=lambda: [Item("value", item.value)])


def _prose(first: str, *more: str) -> Content:
    found = [hiding.text(each) for each in (first, *more)]
    if any(isinstance(each, Secret) for each in found):
        return replace(_written(list(map(str, found))), unmasked=_written([first, *more]))
    return _written([first, *more])


def _written(texts: list[str]) -> Content:
    text, strong = "\n\n".join(texts), texts[0].encode("utf-8", "replace")
    return Content("", text.encode("utf-8", "replace"), strong=len(strong))


def _error(document: d.ErrorDocument) -> Content:
    message = document.message or "The master gives no reason."
    more = [f"issue kind: {document.issue_kind}"] if document.issue_kind else []
    if document.stacktrace:
        more.append("The response body contains a stack trace of the master's code.")
    return _prose(message, *more)


def _handshake(record: Handshake) -> Content:
    more = [f"problem: {culprit}" for culprit in record.culprits]
    leg = record.leg
    if leg.tunnelled:
        more.append(
            "The proxy passed this connection on unread, as this agent refuses what the server showed the proxy."
        )
    who = f"the agent {leg.address or ''}" if leg.side == "agent" else f"the master {leg.sni or leg.address or ''}"
    if not leg.tunnelled:
        more.append(f"This handshake was between the proxy and {who.strip()}.")
    if record.injected:
        more.append(f"{wording.injection(record.injected)}. {INJECTED}")
    if leg.probed:
        more.append("Verification probe: the agent was presented a certificate that it must refuse.")
    more.append(
        "No request was sent on this connection. The sender of the alert refused the peer's certificate or TLS "
        "parameters; both chains are in tab TLS."
        if record.alert
        else "No alert was recorded: the connection was closed without giving a reason. The chains are in tab TLS."
    )
    return _prose(f"TLS refused: {wording.handshake(record)}", *more)


def _lost(gap: Gap) -> str:
    return f"{gap.lost} records were lost and cannot be recovered." if gap.lost else "No record was lost."


# -- where the evidence of a finding is --------------------------------------------------------------------


def locate(places: Iterable[Place], tabs: Sequence[Tab]) -> Place | None:
    """Return the first place that exists in these tabs, with the title of its part.

    If no needle is found, the first place whose tab exists. None if no tab exists.
    """
    found: Place | None = None
    for place in places:
        for tab in tabs:
            if tab.name.lower() != place.tab:
                continue
            parts = [part for part in tab.parts if place.part in ("", part.title.lower())]
            for part in parts:
                if needle := next((text for text in (place.needle, place.fallback) if contains(part, text)), ""):
                    return replace(place, part=part.title.lower(), needle=needle)
            if found is None:
                found = replace(place, part=parts[0].title.lower() if parts else "", needle="", fallback="")
    return found


def contains(part: TabPart, text: str) -> bool:
    """Whether a part shows a text, as its search would find it; False for the empty text."""
    if not text:
        return False
    model = part.made()
    if isinstance(model, Body):
        model = model.content(model.mode)
    match model:
        case Item():
            return find(model, text) is not None
        case Table():
            columns = range(len(model.fields))
            rows = ("  ".join(model.cell(row, column).plain for column in columns) for row in range(len(model.rows)))
            return any(text.casefold() in row.casefold() for row in rows)
        case Content():
            return bool(regex.search(regex.escape(text.encode("utf-8", "replace")), model.data, regex.IGNORECASE))

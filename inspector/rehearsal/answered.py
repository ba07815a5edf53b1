"""What another master answered, as the documents of a run that can be compared."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import msgspec

from inspector.analysis.analyzer import Analyzer, retrace
from inspector.compare import documents
from inspector.model import Severity
from inspector.protocol import bodies, decode
from inspector.protocol import documents as d
from inspector.protocol.kinds import Kind
from inspector.rehearsal.requests import V4, is_file
from inspector.runs.snapshot import RunSnapshot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inspector.compare.documents import RunDocuments
    from inspector.model import Exchange, Response
    from inspector.rehearsal.requests import Asked

WEB_PAGE = "a web page"


class _Compiled(msgspec.Struct):
    """The answer of v4."""

    catalog: msgspec.Raw = msgspec.Raw(b"null")
    logs: list[Any] = []


def to_agent(of: Asked, exchange: Exchange) -> Exchange:
    """Return an exchange as an agent would have had it: the recorded request, and the catalog alone as the answer."""
    exchange = dataclasses.replace(exchange, agent=of.exchange.agent)
    if exchange.request.target != V4:
        return exchange
    recorded = of.exchange.request
    request = dataclasses.replace(
        exchange.request, headers=recorded.headers, body=recorded.body, method="POST",
        target=f"/puppet/v3/catalog/{quote(of.certname, safe='')}?environment=",
    )  # fmt: skip
    response = exchange.response
    if response and response.status == 200 and (catalog := _catalog(response)) is not None:
        headers = [(name, value) for name, value in response.headers
                   if name.lower() not in ("content-encoding", "content-length")]  # fmt: skip
        response = dataclasses.replace(response, headers=tuple(headers), body=catalog)
    return dataclasses.replace(exchange, request=request, response=response)


def _catalog(response: Response) -> bytes | None:
    body = decode.content(response)
    if body is None:
        return None
    try:
        return bytes(bodies.structure(body, bodies.content_type(response), _Compiled).catalog)
    except (bodies.Unreadable, msgspec.MsgspecError):
        return None


def gathered(of: Asked, exchanges: Sequence[Exchange], label: str) -> RunDocuments:
    """Return what is compared of the answers to one node."""
    exchanges = [to_agent(of, exchange) for exchange in exchanges]
    return documents.gather(retrace(exchanges), RunSnapshot(number=None, certname=of.certname), label)


def catalog_of(exchanges: Sequence[Exchange]) -> Exchange | None:
    """Return the exchange with the catalog: the last that is no request for a file."""
    return next((one for one in reversed(exchanges) if not is_file(one.request)), None)


def failure(of: Asked, exchange: Exchange, documents: RunDocuments) -> str:
    """Return why there is no catalog to compare, with the rule that explains it."""
    if exchange.response is None:
        return exchange.error or "no answer"
    if not documents.catalog_failure:
        return documents.without_catalog
    analyzer = Analyzer()
    step = analyzer.feed(to_agent(of, exchange))
    found = [finding.rule for finding in step.findings if finding.severity is Severity.ERROR]
    return f"{documents.catalog_failure} ({found[0]})" if found else documents.catalog_failure


def is_web_page(of: Asked, exchange: Exchange) -> bool:
    """Whether something answered that is no master."""
    for step in retrace([to_agent(of, exchange)]):
        if isinstance(step.response, d.ErrorDocument) and step.response.html:
            return True
        response = exchange.response
        if response and step.match and step.match.endpoint.kind is Kind.CATALOG:
            return bodies.is_html(bodies.content_type(response), decode.content(response) or b"")
    return False

"""Signs in one record that a removal or a changed default of a newer version concerns its node.

Each returns what the record shows, or an empty text. What a rule finds is not looked for again here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector import regex
from inspector.model import Exchange, Handshake
from inspector.protocol import documents as d
from inspector.protocol import rich
from inspector.protocol.bodies import content_type
from inspector.protocol.kinds import Access, Kind
from inspector.rules.words import cut, some

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from inspector.analysis.analyzer import Step

    type Sign = Callable[[Step], str]

LEAST = 3
"""Legacy facts from which on an agent sends them; a site may have facts of its own with such a name."""
PSON = ("pson", "text/pson")
DEFAULT_SERVER = "puppet"
"""The default of ``server`` up to version 8."""
_STRICT = regex.compile(
    r"Unknown variable: '|was automatically coerced to the numerical value|has no effect\. A value was produced and "
    r"then forgotten|can not end with a value-producing expression|The key '.{0,200}' is declared more than once"
    r"|It will be converted to the String"
)
"""Warnings that are errors with ``strict=error``."""
_CHECKSUM = regex.compile(r"\{(?:md5|sha1|sha224|sha256|sha384|sha512)(?:lite)?\}[0-9a-f]{32,128}")
"""A content that agents up to 8 fetch from the filebucket."""


def legacy_facts(step: Step) -> str:
    """Return which flat facts an agent sends that have structured successors."""
    request = step.request.facts if isinstance(step.request, d.CatalogRequest) else step.request
    names = sorted(request.legacy) if isinstance(request, d.Facts) else []
    return f"{len(names)} legacy facts, including {some(names)}" if len(names) >= LEAST else ""


def pson(step: Step) -> str:
    """Return what is sent as PSON, in either direction."""
    exchange = step.exchange
    if exchange is None or step.match is None:
        return ""
    name = step.match.endpoint.name
    if isinstance(step.request, d.CatalogRequest) and step.request.facts_format in PSON:
        return "the facts are sent as PSON"
    if content_type(exchange.request) == "text/pson":
        return f"{name} is sent as PSON"
    answer = exchange.response
    return f"{name} is answered in PSON" if answer and content_type(answer) == "text/pson" else ""


def legacy_url(step: Step) -> str:
    """Return which request has a URL of Puppet 2.7 and 3."""
    exchange, match = step.exchange, step.match
    if exchange is None or match is None or match.dialect != "legacy":
        return ""
    return f"{exchange.request.method} {match.endpoint.name} below /{cut(match.environment or '', 60)}/"


def ca_tool(step: Step) -> str:
    """Return which request of a tool administers the CA."""
    exchange, match = step.exchange, step.match
    if exchange is None or match is None or match.endpoint.access is not Access.CLI:
        return ""
    return f"{exchange.request.method} {match.endpoint.name}"


def deferred(step: Step) -> str:
    """Return which resources have parameters that the agent computes itself."""
    names = [f"{resource.ref} ({name})" for resource, name in _deferred(step.response)]
    return f"Deferred values in {some(names)}" if names else ""


def _deferred(document: d.Document | None) -> Iterator[tuple[d.Resource, str]]:
    if isinstance(document, d.Catalog):
        for resource in document.resources:
            for name, value in resource.parameters.items():
                if rich.deferred(value):
                    yield resource, name


def strict_warning(step: Step) -> str:
    """Return a warning in a report that is an error with ``strict=error``."""
    if isinstance(step.request, d.Report):
        for line in step.request.logs:
            text = cut(line.message)
            if line.level == "warning" and _STRICT.search(text):
                return text
    return ""


def unchanged_resources(step: Step) -> str:
    """Return how many resources in a report have nothing to report."""
    if not isinstance(step.request, d.Report):
        return ""
    idle = sum(
        not (status.changed or status.failed or status.skipped or status.out_of_sync or status.events)
        for status in step.request.resource_statuses.values()
    )
    return f"{idle} of {len(step.request.resource_statuses)} resources of a report are unchanged" if idle else ""


def default_server(step: Step) -> str:
    """Return whether an agent calls its master by the default name."""
    match step.record:
        case Exchange(agent=leg, request=request):
            name = leg.sni or (request.header("host") or "").partition(":")[0]
        case Handshake(leg=leg) if leg.side == "agent":
            name = leg.sni or ""
        case _:
            return ""
    return f"connects to the name {DEFAULT_SERVER}" if name == DEFAULT_SERVER else ""


def stored_report(step: Step) -> str:
    """Return whether the master stores reports as files."""
    if step.match is None or step.match.endpoint.kind is not Kind.REPORT or not isinstance(step.response, d.Data):
        return ""
    processors = step.response.value
    return "the master stores its reports" if isinstance(processors, list) and "store" in processors else ""


def zones(step: Step) -> str:
    """Return which resources are Solaris zones."""
    catalog = step.response
    names = [resource.ref for resource in catalog.resources if resource.type == "Zone"] if isinstance(
        catalog, d.Catalog) else []  # fmt: skip
    return some(names) if names else ""


def renewed(step: Step) -> str:
    """Return whether the CA renewed a certificate."""
    if step.exchange is None or step.match is None or step.match.endpoint.kind is not Kind.RENEWAL:
        return ""
    answer = step.exchange.response
    return "the CA renews certificates" if answer is not None and answer.status == 200 else ""


def checksum_content(step: Step) -> str:
    """Return which files have a checksum as their content."""
    names = [resource.ref for resource in _resources(step, "File") if _checksum(resource.parameters)]
    return f"a checksum is the content of {some(names)}" if names else ""


def _checksum(parameters: Mapping[str, object]) -> bool:
    content = parameters.get("content")
    return isinstance(content, str) and "source" not in parameters and _CHECKSUM.fullmatch(content) is not None


def filebucket_server(step: Step) -> str:
    """Return which filebuckets name a server."""
    names = [
        f"{resource.ref} ({cut(str(resource.parameters['server']), 60)})"
        for resource in _resources(step, "Filebucket")
        if resource.parameters.get("server") and not resource.parameters.get("path")
    ]
    return f"a server is named by {some(names)}" if names else ""


def other_name(step: Step) -> str:
    """Return whether a catalog has another name than the agent asked for."""
    catalog, match = step.response, step.match
    if not isinstance(catalog, d.Catalog) or match is None or not match.certname or not catalog.name:
        return ""
    if catalog.name == match.certname:
        return ""
    return f"the catalog for {cut(match.certname, 60)} is named {cut(catalog.name, 60)}"


def _resources(step: Step, kind: str) -> Iterator[d.Resource]:
    if isinstance(step.response, d.Catalog):
        yield from (resource for resource in step.response.resources if resource.type == kind)

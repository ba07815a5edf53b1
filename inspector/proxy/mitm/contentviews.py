"""A view for mitmproxy and mitmweb: the bodies of Puppet's requests and responses decoded, as ``puppet-inspector show``
prints them, with secrets masked.

For a body that cannot be decoded it shows the reason. Bodies without a structure (a file's content) are left to
mitmproxy's own views.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from mitmproxy import contentviews, http

from inspector.analysis.analyzer import retrace
from inspector.formats import mitm_flows
from inspector.model import Response
from inspector.pages import plain, tabs
from inspector.protocol import decode, endpoints
from inspector.protocol.documents import Undecodable
from inspector.text import clean

if TYPE_CHECKING:
    from inspector.analysis.analyzer import Step
    from inspector.model import Exchange

LARGE = 2**21
"""Size in bytes above which a body is not decoded: agents wait while mitmproxy makes a view."""
PRIORITY = 2
"""mitmproxy's own views have 1 at most."""
_UNSTRUCTURED = (decode.nothing, decode.opaque)
"""Decoders of bodies without a structure."""


class Puppet(contentviews.Contentview):
    """The view ``puppet``."""

    name = "Puppet"
    syntax_highlight = "none"

    def render_priority(self, data: bytes, metadata: contentviews.Metadata) -> float:
        """Return a priority above all other views for a body that a Puppet endpoint has a decoder for."""
        flow, message = metadata.flow, metadata.http_message
        if not data or len(data) > LARGE or not isinstance(flow, http.HTTPFlow) or message is None:
            return -1
        request = flow.request.data
        match = endpoints.match(request.method.decode("latin-1"), request.path.decode("latin-1"))
        if match is None:
            return -1
        is_response = message is not flow.request
        unstructured = (match.endpoint.response if is_response else match.endpoint.request) in _UNSTRUCTURED
        failed = is_response and flow.response is not None and flow.response.status_code >= 400
        return -1 if unstructured and not failed else PRIORITY

    def prettify(self, data: bytes, metadata: contentviews.Metadata) -> str:
        """Return the document as text, or the reason why there is none. Never raises."""
        flow, message = metadata.flow, metadata.http_message
        if not isinstance(flow, http.HTTPFlow) or message is None:
            return "Not a request or response of Puppet."
        if len(data) > LARGE:
            return f"Larger than {LARGE >> 20} MiB: `puppet-inspector open` shows it."
        exchange = mitm_flows.exchange_of(flow)
        (step,) = retrace([exchange])
        step = _one_side(step, exchange, request=message is flow.request)
        document = step.request or step.response
        if isinstance(document, Undecodable):
            return clean(f"Cannot be decoded: {document.reason}.") + " The view `raw` shows the original bytes."
        meaning = tabs.tabs(step, tabs.known(step))[0]
        lines = [line for part in meaning.parts for line in (part.title, *plain.part_lines(part), "")]
        return "\n".join(clean(line).rstrip() for line in lines)


def _one_side(step: Step, exchange: Exchange, *, request: bool) -> Step:
    """Return a step with only its request, or only its response."""
    if request:
        record = dataclasses.replace(exchange, response=exchange.response or Response())
        return dataclasses.replace(step, record=record, response=None)
    return dataclasses.replace(step, request=None)


def add() -> None:
    """Register the view with mitmproxy."""
    contentviews.add(Puppet)

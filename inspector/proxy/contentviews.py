"""What mitmproxy and mitmweb show of Puppet's bodies: catalogs, facts, reports, certificates and the like decoded, as
``puppet-inspector show`` prints them, with secrets masked.

Of a body that can't be read the reason is shown; for what has no meaning of its own (a file's content) mitmproxy's own
views remain.
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
"""Bytes of a body that is not decoded: mitmproxy's views are made while agents wait for the proxy."""
PRIORITY = 2
"""mitmproxy's own views have 1 at most."""
_BARE = (decode.nothing, decode.opaque)
"""Decoders of bodies that have no meaning of their own."""


class Puppet(contentviews.Contentview):
    """The view ``puppet``."""

    name = "Puppet"
    syntax_highlight = "none"

    def render_priority(self, data: bytes, metadata: contentviews.Metadata) -> float:
        """Above all others for a body that a Puppet endpoint has a document for."""
        flow, message = metadata.flow, metadata.http_message
        if not data or len(data) > LARGE or not isinstance(flow, http.HTTPFlow) or message is None:
            return -1
        found = endpoints.match(*_asked(flow.request))
        if found is None:
            return -1
        answers = message is not flow.request
        bare = (found.endpoint.response if answers else found.endpoint.request) in _BARE
        failed = answers and flow.response is not None and flow.response.status_code >= 400
        return -1 if bare and not failed else PRIORITY

    def prettify(self, data: bytes, metadata: contentviews.Metadata) -> str:
        """The document as text, or why there is none. Never raises."""
        flow, message = metadata.flow, metadata.http_message
        if not isinstance(flow, http.HTTPFlow) or message is None:
            return "It is no request and no answer of Puppet's."
        if len(data) > LARGE:
            return f"It is larger than {LARGE >> 20} MiB: `puppet-inspector open` shows it."
        exchange = mitm_flows.exchange_of(flow)
        (step,) = retrace([exchange])
        step = _one_side(step, exchange, request=message is flow.request)
        document = step.request or step.response
        if isinstance(document, Undecodable):
            return clean(f"It can't be read: {document.reason}.") + " The view `raw` shows it as it came."
        meaning = tabs.tabs(step, tabs.known(step))[0]
        lines = [line for part in meaning.parts for line in (part.title, *plain.part_lines(part), "")]
        return "\n".join(clean(line).rstrip() for line in lines)


def _asked(request: http.Request) -> tuple[str, str]:
    return request.data.method.decode("latin-1"), request.data.path.decode("latin-1")


def _one_side(step: Step, exchange: Exchange, *, request: bool) -> Step:
    """A step as if only its request, or only its response, said anything."""
    if request:
        answered = dataclasses.replace(exchange, response=exchange.response or Response())
        return dataclasses.replace(step, record=answered, response=None)
    return dataclasses.replace(step, request=None)


def add() -> None:
    """Make it known to mitmproxy."""
    contentviews.add(Puppet)

"""Of one record: how long each part of it took, and what its endpoint is for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from inspector.errors import InspectorError
from inspector.explain import reference
from inspector.pages.content import Content
from inspector.pages.model import Cell, Field, Table
from inspector.text import clean, clock, size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inspector.analysis.analyzer import Step
    from inspector.model import Exchange, Message

BAR = 30
"""Cells of a bar."""
NEAR = 5.0
"""Seconds: a connection that was made longer before the request was not made for it."""

_FIRST = ("purpose", "asked by", "phase", "settings", "allowed", "endpoint", "requests", "dialect")
"""What an administrator asks first; what Puppet's own code calls it comes last."""


def timing(exchange: Exchange) -> Table:
    """Each part with its milliseconds, sizes and rates."""
    spans = sorted(_spans(exchange), key=lambda span: span[1:])
    near = [span for span in spans if span[1] >= exchange.time - NEAR]
    first = min((began for _, began, _ in near), default=exchange.time)
    whole = max([ended for _, _, ended in near] + [exchange.ended]) - first
    rows: list[tuple[Cell, ...]] = []
    for name, began, ended in spans:
        bar = _bar(began - first, ended - began, whole) if began >= first else Text("earlier", "dim")
        rows.append((name, clock(began), round((ended - began) * 1000, 3), bar))
    rows.append(("total", clock(exchange.time), round((exchange.ended - exchange.time) * 1000, 3), ""))
    rows += _rate("request's body", exchange.request)
    if exchange.response:
        rows += _rate("response's body", exchange.response)
    return Table((Field("part", 24, 1), Field("began", 12), Field("ms", 12, right=True), Field("", BAR)), rows, 2)


def _spans(exchange: Exchange) -> Iterator[tuple[str, float, float]]:
    request, response, agent, master = exchange.request, exchange.response, exchange.agent, exchange.master
    moments: list[tuple[str, float | None, float | None]] = [
        ("TLS with the agent", agent.connected, agent.secured),
        ("receiving the request", request.started, request.ended),
    ]
    sent = request.ended
    if master:
        moments.append(("connecting to the master", master.connecting, master.connected))
        moments.append(("TLS with the master", master.connected, master.secured))
        ready = [moment for moment in (request.ended, master.secured or master.connected) if moment is not None]
        sent = max(ready, default=None)
    if response:
        moments.append(("waiting for the master", sent, response.started))
        moments.append(("receiving the response", response.started, response.ended))
    else:
        moments.append(("waiting (no answer)", sent, exchange.failed))
    for name, began, ended in moments:
        if began is not None and ended is not None:
            yield name, began, max(began, ended)


def _bar(before: float, length: float, whole: float) -> Text:
    if whole <= 0:
        return Text("")
    left = min(BAR - 1, int(before / whole * BAR))
    return Text(" " * left + "█" * max(1, min(BAR - left, round(length / whole * BAR))), "#82aaff")


def _rate(name: str, message: Message) -> Iterator[tuple[Cell, ...]]:
    number = message.size
    took = (message.ended or 0.0) - (message.started or 0.0) if message.started and message.ended else 0.0
    rate = f"{size(int(number / took))}/s" if took > 0 and number else ""
    yield (name, size(number), None, rate)


def explained(step: Step) -> Content:
    """The explanation of this endpoint."""
    if step.match is None:
        text = "This URL is not a known Puppet endpoint.\n\nNo known agent or tool requests it."
        return Content("explain", text.encode())
    endpoint = step.match.endpoint
    try:
        facts = reference.explain(endpoint.name)
    except InspectorError as error:
        facts = {"endpoint": f"{endpoint.name}: {error}"}
    facts["settings"] = endpoint.settings
    facts["dialect"] = {"v3": "v3 (4 and later)", "legacy": "legacy (2.7 and 3)"}[step.match.dialect]
    facts = {key: facts[key] for key in (*_FIRST, *facts) if key in facts}
    lines = [f"{key:<11}{clean(value)}" for key, value in facts.items()]
    return Content("explain", "\n\n".join(lines).encode("utf-8", "replace"), strong=len(lines[0].encode()))

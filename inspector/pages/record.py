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

SETTINGS = {
    "ca": "server, ca_server; ca_fingerprint (6 and later); ca_refresh_interval (8.1 and later, 1d)",
    "certificate": "certname; waitforcert (2m; less than 1: the agent exits), maxwaitforcert",
    "certificate_request": "certname, dns_alt_names, csr_attributes.yaml; waitforcert (each poll since 6.4)",
    "certificate_request_lookup": "certname; waitforcert",
    "crl": "certificate_revocation (chain, leaf or false); crl_refresh_interval (8.1 and later 1d; 6 and 7: only if it "
    "is set)",
    "renewal": "hostcert_renewal_interval (30d); on the CA allow-auto-renewal",
    "node": "environment; use_cached_catalog, strict_environment_mode (with either it is left out)",
    "environment_check": "environment; strict_environment_mode",
    "plugin_list": "pluginsync (before 6), ignore_plugin_errors, disable_i18n (locales); digest_algorithm",
    "plugin_file": "pluginsync (before 6), ignore_plugin_errors, disable_i18n (locales)",
    "catalog": "environment, strict_environment_mode; use_cached_catalog, usecacheonfailure (true); http_read_timeout "
    "(6 and later 10m)",
    "static_file_content": "none of the agent's: the catalog's code_id and content_uri decide",
    "file_metadatas": "none: the resource's source, recurse, links, source_permissions; digest_algorithm",
    "file_metadata": "none: the resource's source, links, source_permissions; digest_algorithm",
    "file_content": "none: the resource's source; http_read_timeout (6 and later 10m)",
    "file_bucket_file": "none: the resource's backup, with a remote filebucket",
    "facts": "resubmit_facts",
    "report": "report, report_server",
    "status_simple": "server_list",
}
"""Which of the agent's settings govern a request (docs/protocol.md#default-settings)."""

_FIRST = ("purpose", "asked by", "phase", "settings", "allowed", "endpoint", "requests", "dialect")
"""What an administrator asks first; what Puppet's own code calls it comes last."""


def timing(exchange: Exchange) -> Table:
    """Each part with its milliseconds, sizes and rates."""
    spans = sorted(_spans(exchange), key=lambda each: each[1:])
    near = [each for each in spans if each[1] >= exchange.time - NEAR]
    first = min((began for _, began, _ in near), default=exchange.time)
    whole = max([ended for _, _, ended in near] + [exchange.ended]) - first
    rows: list[tuple[Cell, ...]] = []
    for name, began, ended in spans:
        bar = _bar(began - first, ended - began, whole) if began >= first else Text("earlier", "dim")
        rows.append((name, clock(began), round((ended - began) * 1000, 3), bar))
    rows.append(("all of it", clock(exchange.time), round((exchange.ended - exchange.time) * 1000, 3), ""))
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
        ready = [each for each in (request.ended, master.secured or master.connected) if each is not None]
        sent = max(ready, default=None)
    if response:
        moments.append(("waiting for the master", sent, response.started))
        moments.append(("receiving the response", response.started, response.ended))
    else:
        moments.append(("waiting in vain", sent, exchange.failed))
    for name, began, ended in moments:
        if began is not None and ended is not None:
            yield name, began, max(began, ended)


def _bar(before: float, length: float, whole: float) -> Text:
    if whole <= 0:
        return Text("")
    left = min(BAR - 1, int(before / whole * BAR))
    return Text(" " * left + "█" * max(1, min(BAR - left, round(length / whole * BAR))), "#82aaff")


def _rate(name: str, message: Message) -> Iterator[tuple[Cell, ...]]:
    number = len(message.body) + message.lost
    took = (message.ended or 0.0) - (message.started or 0.0) if message.started and message.ended else 0.0
    rate = f"{size(int(number / took))}/s" if took > 0 and number else ""
    yield (name, size(number), None, rate)


def explained(step: Step) -> Content:
    """What this endpoint is."""
    if step.match is None:
        text = "No endpoint of Puppet's has this URL.\n\nNeither agents nor the tools known here ask for it."
        return Content("explain", text.encode())
    name = step.match.endpoint.name
    try:
        told = reference.explain(name)
    except InspectorError as error:
        told = {"endpoint": f"{name}: {error}"}
    told["settings"] = SETTINGS.get(name, "none of the agent's")
    told["dialect"] = {"v3": "v3 (4 and later)", "legacy": "legacy (2.7 and 3)"}[step.match.dialect]
    told = {key: told[key] for key in (*_FIRST, *told) if key in told}
    lines = [f"{key:<11}{clean(value)}" for key, value in told.items()]
    return Content("explain", "\n\n".join(lines).encode("utf-8", "replace"), strong=len(lines[0].encode()))

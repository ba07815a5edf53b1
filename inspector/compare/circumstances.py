"""What surrounded two runs: outcome, versions, environment, addresses, certificates, TLS, the server that answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.compare.differences import Section
from inspector.explain.bootstrap import short
from inspector.rules.trust import leaf, serial
from inspector.text import address, utc_day

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inspector.compare.differences import Differences
    from inspector.compare.documents import RunDocuments
    from inspector.model import Finding, Leg

KEY = "key in the signing request"
"""The difference of two runs that is the agent's key, if both asked for a certificate."""


def compare(before: RunDocuments, after: RunDocuments, found: Differences) -> None:
    """Add what is different about two runs as a whole."""
    old, new = dict(_about(before)), dict(_about(after))
    for name in {**old, **new}:
        was, now = old.get(name), new.get(name)
        if was != now:
            found.add(Section.RUN, name, "", was, now, change="changed" if was and now else None)
    if before.requested_key and after.requested_key and before.requested_key != after.requested_key:
        found.add(Section.RUN, KEY, "", short(before.requested_key), short(after.requested_key))
    _findings(before.run.findings, after.run.findings, found)


def _about(documents: RunDocuments) -> Iterator[tuple[str, str | None]]:
    run, report = documents.run, documents.report
    yield "agent", run.certname
    yield "outcome", run.ending
    yield "catalog", ": ".join(filter(None, (documents.without_catalog, documents.catalog_failure))) or "received"
    yield "agent version", run.agent_version
    yield "master version", run.master_version
    yield "CA", run.ca_service
    yield "tool", run.tool
    yield "environment", run.environment
    yield "environment asked for", run.environment_asked
    yield "agent address", run.address
    yield "server name", documents.server
    yield "compiler", run.compiler
    yield "server used", (report.server_used or report.master_used) if report else None
    yield "noop", ("true" if report.noop else "false") if report and report.noop is not None else None
    yield "cached catalog", report.cached_catalog_status if report else None
    if documents.catalog is not None:
        yield "catalog format", documents.catalog_media or None
        yield "static catalog", "true" if documents.catalog.static else "false"
    agent, master = documents.agent, documents.master
    if agent:
        yield "agent certificate", _certificate(agent.peer_chain)
        own = agent.for_one_run
        yield "certificate shown to the agent", "of the proxy's own CA" if own else _certificate(agent.own_chain)
        yield from _tls("agent", agent)
    if master:
        yield "master address", address(master.address, master.port) if master.address and master.port else None
        yield "master certificate", _certificate(master.peer_chain)
        yield from _tls("master", master)


def _tls(side: str, leg: Leg) -> Iterator[tuple[str, str | None]]:
    yield f"TLS version ({side})", leg.tls_version
    yield f"cipher ({side})", leg.cipher


def _certificate(chain: Sequence[bytes]) -> str | None:
    """A certificate in a line: whose it is, its serial number, who issued it, until when it is valid."""
    found = leaf(chain)
    if found is None:
        return None
    until = utc_day(found.not_after)
    return f"{found.common_name or found.subject}, serial {serial(found)}, until {until}, issued by {found.issuer}"


def _findings(before: Sequence[Finding], after: Sequence[Finding], found: Differences) -> None:
    """Add the rules that found something in one run only."""
    old, new = ({finding.rule: finding for finding in reversed(findings)} for findings in (before, after))
    for rule in sorted({*old, *new}):
        if (rule in old) != (rule in new):
            was, now = (f"{side[rule].severity}: {side[rule].message}" if rule in side else None for side in (old, new))
            found.add(Section.FINDINGS, rule, "", was, now, means=rule)

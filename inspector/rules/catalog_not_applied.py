"""P05 and P15: catalogs that were not applied, or not completely."""

from typing import Any

from inspector.protocol import refusals
from inspector.rules.kit import *
from inspector.rules.words import last_error
from inspector.text import ends


@rule(
    "P05",
    Severity.ERROR,
    at=(Kind.REPORT,),
    title="catalog not applied completely",
    fix=(
        on_node("look in the agent's log for what stopped it: a signal (a reboot, somebody, another tool), or "
                "its limit"),
        on_node("see that limit", "puppet config print runtimeout --section agent"),
    ),
    source="docs/protocol.md#report-status",
    explains=("P13",),
    event=True,
    good=lambda: [
        talk(plugins(), catalog(), report(transaction_completed=True)),
        talk(plugins(), report(result="failed", transaction_completed=False)),
    ],
    bad=lambda: [
        talk(
            plugins(), catalog(),
            report(result="failed", transaction_completed=False),
        ),
    ],
)  # fmt: skip
def transaction_incomplete(case: ExchangeCase) -> Iterator[Statement]:
    """The agent received a catalog and started to apply it, but did not finish: some resources were not evaluated. The
    agent was stopped, or exceeded runtimeout (an hour by default)."""
    report = case.step.request
    if isinstance(report, d.Report) and not _not_applied(report):
        cause = reason(report)
        words = "the agent did not apply its catalog completely" + (f": {cause}" if cause else "")
        yield from _incomplete(case, report, words)


_CYCLE = "dependency cycle"
_LONGEST = 400
"""Characters of the reason why a catalog is refused."""


def _notify(title: str, **fields: Any) -> dict[str, Any]:
    relations = {"parameters": {"require": fields.pop("require")}} if "require" in fields else {}
    return {"type": "Notify", "title": title, "file": "/m/site.pp", "line": 1} | relations | fields


def _log(message: str) -> list[dict[str, str]]:
    return [{"level": "err", "source": "Puppet", "message": message}]


@rule(
    "P15",
    Severity.ERROR,
    at=(Kind.CATALOG, Kind.REPORT),
    title="the agent could not apply its catalog",
    fix=(
        advice(
            "correct what the message names: a parameter or provider of a resource, a dependency cycle, or a type in a "
            "module"
        ),
        advice(
            "find out what makes or changes the catalog outside of the master's compiler: a terminus, a cache, a proxy",
            only_if="a title, a tag, an edge or the type of a field is wrong, which no compiler makes so",
        ),
        on_node(
            "see that what the function calls works there (a server of secrets)", only_if="a deferred function failed"
        ),
        on_node("run the agent again", "puppet agent -t"),
    ),
    source="docs/protocol.md#report-status; docs/protocol.md#catalogs",
    explains=("P01", "P13", "R20", "R19"),
    event=True,
    good=lambda: [
        talk(plugins(), catalog(), report(transaction_completed=True)),
        talk(plugins(), catalog(resources=[_notify("a", exported="true", tags="one")]), report()),
    ],
    bad=lambda: (
        [
            talk(plugins(), catalog(), report(result="failed", transaction_completed=False, logs=_log(text)))
            for text in (
                "Failed to apply catalog: Found 1 dependency cycle",
                "Failed to apply catalog: vault is sealed",
            )
        ]
        + [
            talk(plugins(), catalog(resources=resources, edges=edges))
            for resources, edges in (
                ([_notify("a"), _notify("a")], []),
                ([_notify("a")], [{"source": "Class[B]", "target": "Notify[a]"}]),
                ([_notify("a", require="Notify[b]")], []),
                ([_notify("a", require="Notify[b]"), _notify("b", require="Notify[a]")], []),
                ([{"type": "Notify"}], []),
            )
        ]
    ),
)
def catalog_not_applied(case: ExchangeCase) -> Iterator[Statement]:
    """The agent received a catalog and applies nothing of it: a resource is not valid, resources depend on each other
    in a circle, a type or a deferred function fails, or the catalog cannot be read. What any agent refuses is found in
    the catalog itself: two resources of one title or name, an edge or a dependency to a resource that is not there, a
    resource without a title, a cycle, an invalid tag. For all else the reason is that of the agent's report."""
    if isinstance(case.step.response, d.Catalog):
        yield from _refused(case, case.step.response)
    report = case.step.request
    if isinstance(report, d.Report) and (cause := _not_applied(report)):
        yield from _incomplete(case, report, _found_before(case, report) or cause)


def _found_before(case: ExchangeCase, report: d.Report) -> str:
    """Return what was found in the catalog itself, if the agent's reason is the same; else empty."""
    reported = " ".join(last_error(report).split())
    for finding in case.run.findings:
        printed = " ".join(finding.printed.split())
        same = printed in reported or (_CYCLE in printed and _CYCLE in reported)
        if finding.rule == "P15" and printed and same:
            return finding.message
    return ""


def _refused(case: ExchangeCase, catalog: d.Catalog) -> Iterator[Statement]:
    found = refusals.refusal(catalog)
    # A catalog for another environment is read, and then requested again.
    if found is None or (found.read and catalog.environment not in (None, case.run.catalogs[-1].requested)):
        return
    reason = ends(" ".join(found.message.split()), _LONGEST)
    place = f" {cut(found.place)}" if found.place else ""
    yield Statement(
        f"no agent can {'apply' if found.read else 'read'} this catalog: {reason}{place}",
        at=places.meaning(found.ref, "catalog") if found.ref else places.STATUS,
        printed=found.message,
    )


def _incomplete(case: ExchangeCase, report: d.Report, words: str) -> Iterator[Statement]:
    """Yield a statement with these words if the agent had a catalog, and did not finish applying it."""
    if report.transaction_completed is not False:
        return
    catalog = case.run.catalogs[-1] if case.run.catalogs else None
    refused = catalog is not None and catalog.environment not in (None, catalog.requested)  # R06, R07
    # Without a catalog there is no transaction to complete.
    if report.resource_statuses or (catalog is not None and catalog.usable and not refused):
        yield Statement(
            words,
            (catalog.seq, case.exchange.seq) if catalog else (),
            at=(places.meaning("transaction_completed", "about"), places.REQUEST_LINE),
            printed=last_error(report),
        )


def _not_applied(report: d.Report) -> str:
    """Return the agent's own reason why it did not apply the catalog (P15); empty without one."""
    # 7 reports so an error whose text is not UTF-8: an answer that it could not unpack.
    own = last_error(report).lstrip().removeprefix('Received a Log attribute with invalid encoding:"')
    return reason(report) if own.startswith(("Failed to apply catalog: ", "Could not retrieve catalog from ")) else ""

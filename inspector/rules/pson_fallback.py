"""S10."""

from collections.abc import Iterator

from inspector.model import Severity, Visible
from inspector.protocol import documents as d
from inspector.rules import SINCE_4, Case, On, rule
from inspector.rules.content_type_unexpected import accepted
from inspector.rules.words import PARSED, brief, major, media_type
from inspector.runs.examples import altered, catalog, plugins, report, talk

BOTH = "application/vnd.puppet.rich+json, application/json, text/pson"


@rule(
    "S10",
    Severity.WARNING,
    On.EXCHANGE,
    at=PARSED,
    generations=SINCE_4,
    visible=Visible.WIRE,
    title="PSON where JSON is preferred",
    remedy="Look for bytes that are no UTF-8 in the catalog's strings: give binary content as `Binary` "
    "(`binary_file()`), or with `source`. A master older than 5 knows no JSON: upgrade it.",
    source="docs/protocol.md#pson; docs/protocol.md#formats-and-media-types",
    good=lambda: [
        talk(
            plugins(), altered(catalog(), headers={"Accept": "text/pson, application/json"},
                               answers={"Content-Type": "text/pson"}), report(), version="5.5.22",
            master_version="5.5.22",
        ),
        talk(plugins(), altered(catalog(), headers={"Accept": BOTH}), report()),
    ],
    bad=lambda: [
        talk(plugins(), altered(catalog(), headers={"Accept": BOTH}, answers={"Content-Type": "text/pson"}), report()),
        talk(plugins(), catalog(form={"facts_format": "pson"}), report(), version="5.5.22", master_version="4.10.9"),
    ],
    also=("S16",),
)  # fmt: skip
def pson_fallback(case: Case) -> Iterator[str]:
    """Agents since 5 prefer JSON. An answer in PSON all the same means that something in it can't be written as
    JSON, mostly binary content in a string, or that the master is older than 5. Agents since 8 read no PSON, and
    then the run fails instead."""
    run = case.run
    if case.status == 200 and media_type(case) == "text/pson" and not (0, 0) < run.major < (5, 0):
        wanted = accepted(case.exchange.request.header("accept") or "")
        if wanted and "json" in wanted[0]:
            yield f"{case.endpoint} was answered in PSON though the agent prefers JSON"
    asked = case.step.request
    pson = isinstance(asked, d.CatalogRequest) and asked.facts_format in ("pson", "text/pson")
    if pson and run.major >= (5, 0) and 0 < major(run.master_version) < 5:
        yield f"the agent went back to PSON: the master's version is {brief(run.master_version or '')}"

from inspector.rules.content_type_unexpected import accepted
from inspector.rules.kit import *

BOTH = "application/vnd.puppet.rich+json, application/json, text/pson"


@rule(
    "S10",
    Severity.WARNING,
    at=PARSED,
    generations=SINCE_4,
    title="PSON where JSON is preferred",
    fix=(
        advice("look for bytes that are not UTF-8 in the catalog's strings: provide binary content as `Binary` "
               "(`binary_file()`), or with `source`"),
        on_master("upgrade it: it does not support JSON", only_if="the master is older than version 5"),
    ),
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
def pson_fallback(case: ExchangeCase) -> Iterator[Statement]:
    """Agents of version 5 and later prefer JSON. If the answer is PSON anyway, something in it cannot be written as
    JSON, usually binary content in a string, or the master is older than version 5. Agents of version 8 and later
    cannot read PSON, so their run fails."""
    run = case.run
    if case.status == 200 and media_type(case) == "text/pson" and not (0, 0) < run.major < (5, 0):
        formats = accepted(case.exchange.request.header("accept") or "")
        if formats and "json" in formats[0]:
            yield Statement(
                f"{case.endpoint} was answered in PSON although the agent prefers JSON",
                at=places.response_header(case, "content-type"),
            )
    request = case.step.request
    pson = isinstance(request, d.CatalogRequest) and request.facts_format in ("pson", "text/pson")
    if pson and run.major >= (5, 0) and 0 < major(run.master_version) < 5:
        yield Statement(
            f"the agent fell back to PSON: the master's version is {brief(run.master_version or '')}",
            at=places.meaning("facts_format", "form"),
        )

"""S09 and S10: answers in a format that the agent does not accept, or does not prefer."""

from functools import lru_cache

from inspector.rules.kit import *

_FORMATS = {
    "s": "text/plain",
    "pson": "text/pson",
    "json": "application/json",
    "yaml": "text/yaml",
    "dot": "text/dot",
    "b64_zlib_yaml": "text/b64_zlib_yaml",
    "msgpack": "application/x-msgpack",
    "raw": "application/x-raw",
    "binary": "application/octet-stream",
}
"""Short names that agents up to version 4 use in Accept (docs/protocol.md#formats-and-media-types)."""


@rule(
    "S09",
    Severity.ERROR,
    at=PARSED,
    title="answer in a format that the agent did not request",
    fix=(
        advice(
            "find out what sets or removes Content-Type between master and agent (a proxy, a load balancer, a cache): "
            "the master itself answers in a format that the agent accepts"
        ),
    ),
    source="docs/protocol.md#formats-and-media-types; puppet 7.23.0 lib/puppet/http/service.rb",
    explains=("P01",),
    without_catalog=NO_CATALOG,
    event=True,
    good=lambda: [
        talk(plugins(), altered(catalog(), answers={"Content-Type": "application/json; charset=utf-8"}), report()),
        talk(plugins(), altered(catalog(), headers={"Accept": "*/*"}), report()),
    ],
    bad=lambda: [
        talk(plugins(), altered(catalog(), answers={"Content-Type": None}), report(result="failed")),
        talk(plugins(), altered(catalog(), answers={"Content-Type": "text/plain"}), report(result="failed")),
    ],
)
def content_type_unexpected(case: ExchangeCase) -> Iterator[Statement]:
    """The answer has no Content-Type, or one that the agent's Accept header does not name. The agent cannot parse it
    ('No content type in http response; cannot parse') and treats the request as failed."""
    if case.status != 200:
        return
    accept = case.exchange.request.header("accept")
    if not accept or "*" in accept:
        return
    media = media_type(case)
    if not media:
        yield Statement(f"{case.endpoint} was answered without Content-Type", at=places.STATUS)
    elif media not in _accepted(accept) and "html" not in media:
        yield Statement(
            f"{case.endpoint} was answered as {brief(media)}, the agent accepts {brief(accept)}",
            at=places.response_header(case, "content-type"),
        )


_BOTH = "application/vnd.puppet.rich+json, application/json, text/pson"


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
    explains=("P16",),
    good=lambda: [
        talk(
            plugins(), altered(catalog(), headers={"Accept": "text/pson, application/json"},
                               answers={"Content-Type": "text/pson"}), report(), version="5.5.22",
            master_version="5.5.22",
        ),
        talk(plugins(), altered(catalog(), headers={"Accept": _BOTH}), report()),
    ],
    bad=lambda: [
        talk(plugins(), altered(catalog(), headers={"Accept": _BOTH}, answers={"Content-Type": "text/pson"}), report()),
        talk(plugins(), catalog(form={"facts_format": "pson"}), report(), version="5.5.22", master_version="4.10.9"),
    ],
)  # fmt: skip
def pson_fallback(case: ExchangeCase) -> Iterator[Statement]:
    """Agents of version 5 and later prefer JSON. If the answer is PSON anyway, something in it cannot be written as
    JSON, usually binary content in a string, or the master is older than version 5. Agents of version 8 and later
    cannot read PSON, so their run fails."""
    run = case.run
    if case.status == 200 and media_type(case) == "text/pson" and not (0, 0) < run.major < (5, 0):
        formats = _accepted(case.exchange.request.header("accept") or "")
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


@lru_cache(maxsize=256)
def _accepted(accept: str) -> tuple[str, ...]:
    """The media types of an Accept header in order of preference."""
    names = (part.partition(";")[0].strip().lower() for part in accept.split(","))
    return tuple(_FORMATS.get(name, name) for name in names if name)

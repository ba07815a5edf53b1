from functools import lru_cache

from inspector.rules.kit import *

FORMATS = {
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


@lru_cache(maxsize=256)
def accepted(accept: str) -> tuple[str, ...]:
    """The media types of an Accept header in order of preference."""
    names = (part.partition(";")[0].strip().lower() for part in accept.split(","))
    return tuple(FORMATS.get(name, name) for name in names if name)


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
    good=lambda: [
        talk(plugins(), altered(catalog(), answers={"Content-Type": "application/json; charset=utf-8"}), report()),
        talk(plugins(), altered(catalog(), headers={"Accept": "*/*"}), report()),
    ],
    bad=lambda: [
        talk(plugins(), altered(catalog(), answers={"Content-Type": None}), report(result="failed")),
        talk(plugins(), altered(catalog(), answers={"Content-Type": "text/plain"}), report(result="failed")),
    ],
    also=("P01",),
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
    elif media not in accepted(accept) and "html" not in media:
        yield Statement(
            f"{case.endpoint} was answered as {brief(media)}, the agent accepts {brief(accept)}",
            at=places.response_header(case, "content-type"),
        )

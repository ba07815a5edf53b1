from inspector.rules.kit import *

KNOWN = ("gzip", "x-gzip", "deflate", "identity", "")


@rule(
    "S13",
    Severity.ERROR,
    at=(*RUN, *BOOTSTRAP),
    title="answer compressed in a way that the agent cannot decode",
    fix=(
        advice(
            "turn compression off on the devices between master and agent, or restrict it to gzip: the master itself "
            "uses nothing else"
        ),
    ),
    source="docs/protocol.md#compression; puppet 4.10.9 lib/puppet/network/http/compression.rb",
    explains=("S09", "P01"),
    without_catalog=NO_CATALOG,
    event=True,
    good=lambda: [talk(plugins(), altered(catalog(), answers={"Content-Encoding": "identity"}), report())],
    bad=lambda: [
        talk(plugins(), altered(catalog(), answers={"Content-Encoding": "br"}), report(result="failed")),
        talk(plugins(), altered(catalog(), answers={"Content-Encoding": "gzip"}), report(result="failed")),
    ],
)
def encoding_unusable(case: ExchangeCase) -> Iterator[Statement]:
    """The Content-Encoding header names a compression that the agent does not support, or the body is not compressed as
    the header says. The agent cannot read the answer, so the request has failed."""
    response = case.exchange.response
    encoding = response.header("content-encoding") if response and response.body else None
    if encoding is None:
        return
    unknown = [name for item in encoding.lower().split(",") if (name := item.strip()) not in KNOWN]
    answer = case.step.response
    if unknown:
        yield Statement(
            f"answered with Content-Encoding {brief(encoding)}; agents support gzip and deflate",
            at=places.response_header(case, "content-encoding"),
        )
    elif isinstance(answer, d.Undecodable) and answer.reason.startswith("the body says it is"):
        yield Statement(
            f"{case.endpoint}: {brief(answer.reason)}", at=places.meaning(answer.reason, "response unreadable")
        )

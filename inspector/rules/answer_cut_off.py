from inspector.rules import connection_errors
from inspector.rules.kit import *

CLOSED = "HTTP/1 protocol error: peer closed connection without sending complete message body"


@rule(
    "S14",
    Severity.ERROR,
    at=(*RUN, *BOOTSTRAP),
    broken=True,
    title="the answer was cut off",
    fix=(
        on_master("read its log of that time: it was restarted or killed"),
        advice("look for a time limit or a size limit on the load balancer and the devices in between"),
    ),
    source="docs/protocol.md#interrupted-answers; puppet 7.23.0 lib/puppet/http/client.rb",
    explains=("T18", "T20", "T22", "T28", "F03", "P01"),
    without_catalog=NO_CATALOG_NO_REPORT,
    event=True,
    good=lambda: [talk(plugins(), catalog(), metadata("modules/demo/a"), content("modules/demo/a"), report())],
    bad=lambda: [
        talk(
            plugins(),
            catalog(),
            metadata("modules/demo/a"),
            altered(content("modules/demo/a", b"con"), answers={"Content-Length": "7"}, error=CLOSED),
            report(result="failed"),
        )
    ],
)
def answer_cut_off(case: ExchangeCase) -> Iterator[Statement]:
    """The connection ended in the middle of the answer: fewer bytes arrived than Content-Length announced, or the last
    chunk is missing. The agent cannot use the incomplete answer, so the request has failed."""
    exchange, response = case.exchange, case.exchange.response
    if response is None or exchange.request.method == "HEAD" or not connection_errors.closed(exchange.error):
        return
    match = case.step.match
    file = match.key if match and case.kind in (*CONTENT, *METADATA) else None
    what = f"{case.endpoint} of {brief(file)}" if file else case.endpoint
    length = (response.header("content-length") or "").strip()
    if length.isascii() and length.isdigit() and len(length) < 16:
        if int(length) > response.size:
            yield Statement(
                f"{what} was cut off before all {int(length)} bytes arrived",
                at=places.response_header(case, "content-length"),
            )
    elif "chunked" in (response.header("transfer-encoding") or "").lower():
        yield Statement(
            f"{what} was cut off before its last chunk", at=places.response_header(case, "transfer-encoding")
        )

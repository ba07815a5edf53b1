from inspector.model import Record
from inspector.rules.connection_not_reused import PHASES
from inspector.rules.kit import *


def _closing(count: int) -> list[Record]:
    parts = [plugins(), catalog(), metadata("modules/demo/a"), report()]
    return talk(
        *(
            altered(
                part,
                leg={"id": f"leg-{number}" if number < count else "leg"},
                answers={"Connection": "close"} if number < count else None,
            )
            for number, part in enumerate(parts)
        )
    )


@rule(
    "T12",
    Severity.WARNING,
    at=RUN,
    opening=True,
    title="the master closes every connection",
    fix=(
        advice(
            "enable keep-alive in the web server or load balancer in front of the master (Apache: `KeepAlive "
            "On`; nginx: "
            "`keepalive_timeout`; HAProxy: no `httpclose`)"
        ),
    ),
    source="docs/protocol.md#reuse-of-connections",
    good=lambda: [_closing(2)],
    bad=lambda: [_closing(4)],
    also=("T11",),
)
def master_closes_connections(case: ExchangeCase, *, times: float = 3) -> Iterator[Statement]:
    """The master, or a device in front of it, closes the connection after each answer, although the agent did not
    request that: every request of the run costs a TLS handshake. Closing after a 503 is normal."""
    exchange, response, run = case.exchange, case.exchange.response, case.run
    if response is None or (response.http_version != "HTTP/1.0" and response.header("connection") is None):
        return
    connection = (response.header("connection") or "").lower()
    closes = connection == "close" or (response.http_version == "HTTP/1.0" and connection != "keep-alive")
    if not closes or response.status in (429, 503) or response.status >= 500 or run.tool or run.major < (3, 7):
        return
    if (exchange.request.header("connection") or "").lower() == "close":
        return  # requested by the agent: T13
    single = sum(1 for use in run.legs.values() if use.requests == 1 and use.phase in PHASES)
    if single >= times:
        yield Statement(
            "the master closes the connection repeatedly after the first answer",
            at=places.response_header(case, "connection"),
        )

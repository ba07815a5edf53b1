from inspector.rules.kit import *


@rule(
    "S06",
    Severity.ERROR,
    at=(*RUN, *BOOTSTRAP),
    refused=True,
    title="503 without Retry-After",
    fix=(
        on_master("see whether it is up", "systemctl status puppetserver"),
        advice("see whether a load balancer answers in its place", only_if="the master is up"),
        on_master(
            "set `max-retry-delay` in puppetserver.conf above 0: agents then retry, but some versions fail (S24)",
            only_if="the master is only busy",
        ),
    ),
    source="docs/protocol.md#retry-after",
    good=lambda: [talk(plugins(), catalog(), report())],
    bad=lambda: [
        talk(plugins(), catalog(status=503, text="The master is starting"), report(result="failed")),
        talk(plugins(), altered(catalog(status=503), answers={"Retry-After": "soon"}), report(result="failed")),
    ],
    also=("R20", "P01"),
)
def master_unavailable(case: ExchangeCase) -> Iterator[Statement]:
    """The master cannot serve the request now and does not say when it can, so the agent does not wait: the request has
    failed, and for a catalog the run. This is the answer of a master that is starting, of a full queue with
    max-retry-delay 0, or of a load balancer without a healthy master behind it."""
    response = case.exchange.response
    if response is None or response.status != 503:
        return
    value = response.header("retry-after")
    if retry_after(value, case.exchange.time) is None:
        header = "without Retry-After" if value is None else f"with an unreadable Retry-After ({brief(value)})"
        yield Statement(
            f"{case.endpoint} was answered 503 {header}: the agent does not try again",
            at=places.response_header(case, "retry-after"),
        )

from inspector.rules.connection_errors import by_proxy
from inspector.rules.kit import *


@rule(
    "T26",
    Severity.ERROR,
    at=(*RUN, *BOOTSTRAP),
    broken=True,
    title="the proxy did not pass a request on",
    fix=(
        on_proxy("let it run on while agents do", only_if="it ended"),
        advice(
            "let fewer hosts without a certificate connect at once: what they share is limited, by no option",
            only_if="there were too many requests",
        ),
        advice(
            "let the client speak HTTP as agents do, or leave the proxy out: it passes nothing on that two parsers may "
            "read in two ways",
            only_if="the proxy refused the request or the answer",
        ),
        on_node("run the agent again", "puppet agent -t"),
    ),
    source="docs/protocol.md#failed-connections",
    explains=("S21", "F03", "P01"),
    without_catalog=NO_CATALOG_NO_REPORT,
    event=True,
    good=lambda: [talk(plugins(), catalog(), report())],
    bad=lambda: [
        talk(unanswered(ca(), "too many requests without a verified certificate are under way"), certificate=False),
        talk(plugins(), unanswered(catalog(), "the proxy ended")),
    ],
)
def not_passed_on(case: ExchangeCase) -> Iterator[Statement]:
    """The proxy itself ended the exchange: it has a limit for what clients without a verified certificate share, it
    ended, or it passes such a request or answer on to nobody. Node and master are not the cause."""
    if by_proxy(case.exchange):
        yield Statement(brief(f"the proxy did not pass {case.endpoint} on: {case.exchange.error}"), at=places.NO_ANSWER)

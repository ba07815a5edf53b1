from inspector.rules.kit import *
from inspector.rules.redirected import to_itself

_ITSELF = altered(catalog(status=302), answers={"Location": f"https://{MASTER}:8140/puppet/v3/catalog/node1.example"})


@rule(
    "S32",
    Severity.WARNING,
    at=(*RUN, *BOOTSTRAP),
    title="the agent is redirected to the URL that it asked for",
    fix=(
        advice("see which device in front of the master answers (its name is often in the header Server or Via of the "
               "redirect), and why: a rule for a login page, for another host name, or from http to https"),
        advice("let it pass the agents' requests on to the master instead"),
    ),
    source="docs/protocol.md#redirects; puppet 7.23.0 lib/puppet/http/redirector.rb",
    good=lambda: [talk(plugins(), catalog(), report())],
    bad=lambda: [
        talk(plugins(), _ITSELF, catalog(), report()),
        talk(plugins(), *(_ITSELF for _ in range(11)), report(result="failed")),
    ],
    also=("R20", "P01"),
)  # fmt: skip
def redirected_to_itself(case: ExchangeCase) -> Iterator[Statement]:
    """Masters do not redirect agents; a load balancer or web server in front of the master does, and sends the agent
    where it is already. The agent asks for the same again, ten times at most."""
    if (response := case.exchange.response) is not None and to_itself(case.exchange):
        yield Statement(
            f"{case.endpoint} was redirected with {response.status} to the URL that the agent had asked for",
            at=places.response_header(case, "location"),
        )

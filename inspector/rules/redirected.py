from inspector.model import Exchange
from inspector.rules.kit import *
from inspector.runs.observations import is_redirect

FOLLOWED = (301, 302, 307)
_TARGET = regex.compile(r"(https?)://(?:[^/?#@]*@)?([^/?#@]{1,200})([^?#]*)", regex.IGNORECASE)

FIX = (
    on_node("give it the master's own address", "puppet config set server <master> --section agent"),
    advice("use 307 with an absolute Location, and no gzip at its target: agents of 6 and 7 do not unpack that",
           only_if="a redirect is unavoidable"),
)  # fmt: skip


@rule(
    "S12",
    Severity.WARNING,
    at=(*RUN, *BOOTSTRAP),
    otherwise="error if agents do not follow it",
    title="the agent is redirected to another address",
    fix=FIX,
    source="docs/protocol.md#redirects; puppet 7.23.0 lib/puppet/http/redirector.rb",
    good=lambda: [
        talk(plugins(), catalog(), report()),
        talk(crl(status=304, refresh=True), plugins(), catalog(), report()),
    ],
    bad=lambda: [
        talk(
            plugins(),
            altered(catalog(status=302), answers={"Location": "https://other.example:8140/puppet/v3/catalog/x"}),
            catalog(),
            report(),
        ),
        talk(
            plugins(), altered(catalog(status=302), answers={"Location": "/puppet/v3/other"}), report(result="failed")
        ),
    ],
    also=("R20", "P01"),
)
def redirected(case: ExchangeCase) -> Iterator[Statement]:
    """Masters do not redirect agents; a load balancer or web server in front of the master does. Agents follow 301, 302
    and 307 to an absolute address only, and agents up to version 3 lose the query when they follow."""
    response = case.exchange.response
    if response is None or not is_redirect(response.status) or to_itself(case.exchange):
        return
    target = _TARGET.match(response.header("location") or "")
    if target is None:
        yield Statement(
            f"{case.endpoint} was redirected with {response.status}, but not to an absolute address",
            severity=Severity.ERROR,
            at=places.STATUS,
        )
    elif response.status not in FOLLOWED:
        yield Statement(
            f"{case.endpoint} was redirected with {response.status}, which agents do not follow",
            severity=Severity.ERROR,
            at=places.STATUS,
        )
    else:
        yield Statement(
            f"{case.endpoint} was redirected with {response.status} to {target[1].lower()}://{target[2]}",
            at=places.response_header(case, "location"),
        )


def to_itself(exchange: Exchange) -> bool:
    """Whether a request was redirected to the URL that the agent asked for, which agents follow (S32)."""
    response, request = exchange.response, exchange.request
    if response is None or response.status not in FOLLOWED:
        return False
    target = _TARGET.match(response.header("location") or "")
    host = request.header("host") or ""
    # The query counts for nothing: agents up to version 3 lose it.
    asked = ("https", host.lower(), request.target.partition("?")[0])
    return target is not None and (target[1].lower(), target[2].lower(), target[3]) == asked

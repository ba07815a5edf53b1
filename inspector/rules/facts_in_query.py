from inspector.rules.kit import *


@rule(
    "R12",
    Severity.WARNING,
    at=(Kind.CATALOG,),
    title="facts in the URL",
    fix=(
        advice("find the tool that sends the request, by its User-Agent"),
        advice("let it send the same fields as a form: POST with Content-Type application/x-www-form-urlencoded"),
        advice("upgrade it: agents do so from 2.7 on", only_if="an agent sends it"),
    ),
    source="docs/protocol.md#get-or-post",
    good=lambda: [talk(plugins(), catalog(), report())],
    bad=lambda: [
        talk(
            plugins(),
            altered(catalog(), request={
                "method": "GET", "body": b"",
                "target": "/puppet/v3/catalog/node1.example?environment=production&transaction_uuid=a-1"
                "&facts_format=application/json&facts=%7B%22name%22%3A%22node1.example%22%2C%22values%22%3A%7B%7D%7D",
            }),
            report(),
        ),
    ],
)  # fmt: skip
def facts_in_query(case: ExchangeCase) -> Iterator[Statement]:
    """A client requests a catalog with GET and puts the facts into the URL. Masters still accept that, but proxies and
    access logs store URLs, so the facts can be read there, and a long URL is cut off or refused."""
    match = case.step.match
    if match and case.exchange.request.method == "GET" and any(name == "facts" for name, _ in match.parameters):
        yield Statement("the facts are part of the URL", at=places.REQUEST_LINE)

from inspector.rules.kit import *

PAGE = (
    b"<html><head><title>Error 400 Invalid SNI</title></head><body><h2>HTTP ERROR 400 Invalid SNI</h2>"
    b"<table><tr><th>MESSAGE:</th><td>Invalid SNI</td></tr></table></body></html>"
)


@rule(
    "S31",
    Severity.ERROR,
    refused=True,
    title="the master's web server refuses the name by which it is called",
    fix=(
        on_master("see the names in its certificate",
                  'openssl x509 -noout -text -in "$(puppet config print hostcert)"'),
        on_node("call the master by one of these names, and by no address",
                "puppet config set server <name> --section agent"),
        advice("do the same there: its own name for the master counts",
               only_if="a proxy or a load balancer is in between"),
        on_master("add the name to the certificate: set dns_alt_names, then make a new certificate",
                  only_if="the agent is to use its name"),
    ),
    source="docs/protocol.md#other-error-answers",
    explains=("S15",),
    without_catalog=("P01", *NO_CATALOG_NO_REPORT),
    good=lambda: [talk(plugins(), asked("catalog/node1.example", status=404, method="POST", text="gone"))],
    bad=lambda: [
        talk(plugins(), asked("catalog/node1.example", PAGE, method="POST", status=400, media="text/html"),
             report(result="failed")),
    ],
)  # fmt: skip
def server_refuses_name(case: ExchangeCase) -> Iterator[Statement]:
    """The web server in the master (Jetty 10 and later) compares the name in the TLS handshake and in the Host header
    with its certificate, and answers 400 "Invalid SNI" before Puppet sees the request. An agent that does not verify
    the name itself, or a proxy in between, called the master by another name or by an address."""
    if case.status != 400 or case.exchange.response is None:
        return
    answer = case.step.response
    message = answer.message if isinstance(answer, d.ErrorDocument) else ""
    if "Invalid SNI" in message or b"Invalid SNI" in case.exchange.response.body[:4096]:
        name = (case.exchange.master and case.exchange.master.sni) or case.exchange.request.header("host") or "no name"
        yield Statement(brief(f"the master answers 400 'Invalid SNI': it was called '{name}'"), at=places.STATUS)

from inspector.rules.kit import *

_BROKEN = {"body": b"-----BEGIN CERTIFICATE REQUEST-----\nMIIC"}
_ANSWER = b"Internal Server Error: java.lang.IndexOutOfBoundsException: Index 0 out of bounds for length 0"


@rule(
    "B44",
    Severity.WARNING,
    at=(Kind.CSR,),
    refused=True,
    title="signing request cannot be parsed",
    fix=(
        advice("compare the request's Content-Length with the size of the body that arrived"),
        advice(
            "find out what cuts it off between {name} and the master: a proxy, an inspection, a size limit",
            only_if="the body is shorter",
        ),
        on_node(
            "make a new request: its copy is damaged",
            "{reset}",
            only_if="the body is complete",
            destroys="its key and its certificate",
        ),
    ),
    source="docs/protocol.md#endpoint-certificate_request",
    good=lambda: [talk(ca(), crl(), csr(), not_issued())],
    bad=lambda: [talk(ca(), crl(), altered(csr(status=500, body=_ANSWER), request=_BROKEN))],
    also=("B01",),
)
def csr_malformed(case: ExchangeCase) -> Iterator[Statement]:
    """The agent's signing request is not a valid request, and the CA failed to process it. Agents send requests that
    they created themselves, so it was cut off or changed in transit, or its file on the node is damaged."""
    request, body = case.step.request, case.exchange.request.size
    if case.exchange.request.lost or not isinstance(request, d.Undecodable) or case.status in (401, 403, 404):
        return
    length = case.exchange.request.header("content-length") or ""
    short = f" of {length[:12]} announced" if length.isdecimal() and int(length[:12]) != body else ""
    yield Statement(
        f"the body ({body} bytes{short}) is not a signing request: {request.reason[:100]}",
        at=places.meaning(request.reason[:60], "request unreadable"),
    )

"""B43 and B44: signing requests that the CA does not take, or cannot read."""

from inspector.rules.kit import *

_EXPLAINED = (
    "does not match requested key",
    "does not match expected certname",
    "must be lower case",
    "wildcard",
    "hostname format is invalid",
    "unprintable or non-ASCII",
    "alternative names",
    "authorization extension",
    "not permitted",
    ALREADY,
    NO_ENVIRONMENT,
)
"""Parts of error messages that other rules explain: names, alternative names, extensions, the environment
(docs/protocol.md#checks-of-a-signing-request)."""


@rule(
    "B43",
    Severity.ERROR,
    at=(Kind.CSR,),
    refused=True,
    title="signing request rejected",
    fix=(
        on_ca("let unauthenticated agents PUT certificate_request in its auth.conf", only_if="the CA answered 403"),
        on_node("set the server that is a CA, as this one is none",
                "puppet config set ca_server <host> --section agent", only_if="the CA answered 404"),
        on_ca("read the server's log", only_if="the CA answered 5xx"),
    ),
    instead=at_openvox_ca(
        advice("wait a minute, or raise `csr_rate_limit` in the CA's configuration, where many nodes share an address",
               only_if="the CA answered 429"),
        on_ca("read its log", "journalctl -u openvox-ca | tail", only_if="it answered something else"),
    ),
    source="docs/protocol.md#submitting-the-signing-request; docs/protocol.md#bootstrap-up-to-5; "
    "puppet 7.23.0 lib/puppet/ssl/state_machine.rb",
    explains=("B39", "B40"),
    good=lambda: [talk(ca(), crl(), csr(), not_issued(), csr(status=400, text=REQUESTED), not_issued())],
    bad=lambda: [
        talk(ca(), crl(), csr(status=404, body=b"Not Found")),
        talk(ca(), crl(), csr(status=500, body=b"Internal Server Error: java.io.IOException: No space left on device")),
        talk(ca(), crl(), csr(status=400, body=b"CSR contains a public key that does not correspond to the signing "
                                               b"key"), not_issued()),
    ],
)  # fmt: skip
def csr_rejected(case: ExchangeCase) -> Iterator[Statement]:
    """The CA did not accept the agent's signing request, for a reason other than a request or certificate that it
    already has for that name. Without a request there is no certificate: the agent stops, or tries again every
    waitforcert seconds."""
    if case.run.tool or any(phrase in case.answer for phrase in _EXPLAINED) or _unreadable(case):
        return
    message = brief(case.answer)
    yield Statement(f"the request for {case.name} was answered {case.status}{f': {message}' if message else ''}")


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
    explains=("B43",),
    good=lambda: [talk(ca(), crl(), csr(), not_issued())],
    bad=lambda: [talk(ca(), crl(), altered(csr(status=500, body=_ANSWER), request=_BROKEN))],
)
def csr_malformed(case: ExchangeCase) -> Iterator[Statement]:
    """The agent's signing request is not a valid request, and the CA failed to process it. Agents send requests that
    they created themselves, so it was cut off or changed in transit, or its file on the node is damaged."""
    request, sent = case.step.request, case.exchange.request
    if not isinstance(request, d.Undecodable) or not _unreadable(case):
        return
    length = sent.header("content-length") or ""
    short = f" of {length[:12]} announced" if length.isdecimal() and int(length[:12]) != sent.size else ""
    yield Statement(
        f"the body ({sent.size} bytes{short}) is not a signing request: {request.reason[:100]}",
        at=places.meaning(request.reason[:60], "request unreadable"),
    )


def _unreadable(case: ExchangeCase) -> bool:
    """Whether a body is no signing request, and the CA tried to read it."""
    unread = case.exchange.request.lost or case.status in (401, 403, 404)
    return isinstance(case.step.request, d.Undecodable) and not unread

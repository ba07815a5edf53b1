from inspector.rules.csr_repeated import WAITS, refused
from inspector.rules.environment_not_found import ABSENT
from inspector.rules.kit import *

EXPLAINED = (
    "does not match requested key",
    "does not match expected certname",
    "must be lower case",
    "wildcard",
    "hostname format is invalid",
    "unprintable or non-ASCII",
    "alternative names",
    "authorization extension",
    "not permitted",
    ABSENT,
)
"""Parts of error messages that other rules explain: names, alternative names, extensions, the environment.

docs/protocol.md#checks-of-a-signing-request
"""


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
    source="docs/protocol.md#submitting-the-signing-request; docs/protocol.md#bootstrap-up-to-5; "
    "puppet 7.23.0 lib/puppet/ssl/state_machine.rb",
    good=lambda: [talk(ca(), crl(), csr(), not_issued(), csr(status=400, text=WAITS), not_issued())],
    bad=lambda: [
        talk(ca(), crl(), csr(status=404, body=b"Not Found")),
        talk(ca(), crl(), csr(status=500, body=b"Internal Server Error: java.io.IOException: No space left on device")),
        talk(ca(), crl(), csr(status=400, body=b"CSR contains a public key that does not correspond to the signing "
                                               b"key"), not_issued()),
    ],
    also=("B01",),
)  # fmt: skip
def csr_rejected(case: ExchangeCase) -> Iterator[Statement]:
    """The CA did not accept the agent's signing request, for a reason other than a request or certificate that it
    already has for that name. Without a request there is no certificate: the agent stops, or tries again every
    waitforcert seconds."""
    if case.run.tool or refused(case) or any(phrase in case.answer for phrase in EXPLAINED):
        return
    unreadable = isinstance(case.step.request, d.Undecodable) and not case.exchange.request.lost
    if unreadable and case.status not in (401, 403, 404):
        return  # no parsable request in the body: B44
    message = " ".join(case.answer.split())
    yield Statement(f"the request for {case.name} was answered {case.status}{': ' + message[:120] if message else ''}")

from inspector.rules.kit import *

WAITS = "already has a requested certificate"


def refused(case: ExchangeCase) -> bool:
    """Whether the CA refused a signing request because it already has a request or certificate for that name.

    docs/protocol.md#checks-of-a-signing-request
    """
    answer = case.step.response
    return isinstance(answer, d.ErrorDocument) and "already has a " in answer.message


@rule(
    "B17",
    Severity.NOTICE,
    at=(Kind.CSR,),
    refused=True,
    otherwise="warning for agents up to 6.3",
    title="the same signing request sent again",
    fix=(group("signing"),),
    source="docs/protocol.md#submitting-the-signing-request; puppet 7.23.0 lib/puppet/ssl/state_machine.rb",
    good=lambda: [talk(ca(), crl(), csr(), issued(), catalog(), report())],
    bad=lambda: [talk(ca(), crl(), csr(), not_issued(), csr(status=400, text=WAITS), not_issued())],
    also=("B01",),
)
def csr_repeated(case: ExchangeCase) -> Iterator[Statement]:
    """The node's signing request is waiting to be signed, and the node sends it again. From 6.4 on every poll does
    that, and it is normal; up to 6.3 an agent checks for a certificate first and does not repeat the request, so its
    local copy was lost."""
    request = case.step.request
    if not isinstance(request, d.CertificateRequest):
        return
    answer = case.step.response
    if not isinstance(answer, d.ErrorDocument) or WAITS not in answer.message:
        return
    earlier = case.ledger.known(case.name).csrs
    if any(entry.taken and key != request.key for key, entry in earlier.items()) and not (
        request.key in earlier and earlier[request.key].taken
    ):  # another key's request waits: B20
        return
    if case.run.old_engine:
        yield Statement(
            "the agent submitted its request again although it is already waiting: the agent's copy was lost",
            severity=Severity.WARNING,
        )
    else:
        yield Statement("the request is waiting to be signed; the agent submits it again with each poll")

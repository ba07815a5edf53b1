from inspector.rules.csr_repeated import refused
from inspector.rules.kit import *

_REFUSAL = (
    b"CSR 'node1.example' contains extra subject alternative names (DNS:puppet.example), which are disallowed. To "
    b"allow subject alternative names, set allow-subject-alt-names to true in your ca.conf file."
)


@rule(
    "B27",
    Severity.WARNING,
    at=(Kind.CSR,),
    otherwise="error if the CA refuses it",
    title="signing request with alternative names",
    fix=(
        on_node("remove dns_alt_names from its puppet.conf", only_if="the node is not a master"),
        group("enrol", only_if="the node is not a master"),
        group("alt_names", only_if="it should have the names"),
    ),
    source="docs/protocol.md#signing-requests; docs/protocol.md#checks-of-a-signing-request",
    good=lambda: [talk(ca(), crl(), csr(), not_issued()), talk(ca(), crl(), csr(alt_names=[NAME]), not_issued())],
    bad=lambda: [
        talk(ca(), crl(), csr(alt_names=["puppet.example"]), not_issued()),
        talk(ca(), crl(), csr(alt_names=["puppet.example"], status=400, body=_REFUSAL), not_issued()),
    ],
    also=("B01",),
)
def csr_with_alt_names(case: ExchangeCase) -> Iterator[Statement]:
    """The request contains more names than the certname. With them a node could impersonate the master, so no CA signs
    such a request automatically, and manually only if that is allowed. A CA that refuses it stores it anyway: it must
    be cleaned before the node can send a new request."""
    request = case.step.request
    if not isinstance(request, d.CertificateRequest) or not request.alt_names:
        return
    own_name = f"DNS:{request.common_name}".lower()
    if not (extra := [name for name in request.alt_names if name.lower() != own_name]):
        return
    if "alternative names" in case.answer:
        yield Statement(
            f"the CA refuses the request for {case.name} because of its alternative names: {some(extra)}",
            severity=Severity.ERROR,
            at=places.csr(f"alternative name: {extra[0]}"),
        )
    elif not (refused(case) and request.key in case.ledger.known(case.name).csrs):  # otherwise already reported
        yield Statement(
            f"the request for {case.name} contains alternative names ({some(extra)}): the CA does not sign it "
            "unless it is configured to",
            at=places.csr(f"alternative name: {extra[0]}"),
        )

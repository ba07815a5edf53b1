from inspector.rules.kit import *


@rule(
    "B24",
    Severity.ERROR,
    at=(Kind.CSR,),
    title="signing request with different names in URL and subject",
    fix=(
        on_node("set one certname for the whole agent", "puppet config set certname {name} --section main"),
        group("enrol"),
    ),
    source="docs/protocol.md#checks-of-a-signing-request; "
    "puppetserver 7.9.5 src/clj/puppetlabs/puppetserver/certificate_authority.clj",
    explains=("B43", "B44", "B39", "B40"),
    good=lambda: [talk(ca(), crl(), csr(), not_issued())],
    bad=lambda: [
        talk(ca(), crl(), csr(path="other.example", status=400,
                              body=b'Instance name "node1.example" does not match requested key "other.example"')),
    ],
)  # fmt: skip
def csr_for_another_name(case: ExchangeCase) -> Iterator[Statement]:
    """The URL names one certname, the subject of the request another. The agent takes both from its setting certname,
    so that setting was changed between creating the request and sending it, or something between agent and master
    rewrites URLs."""
    request = case.step.request
    if isinstance(request, d.CertificateRequest) and request.common_name != case.name:
        subject = request.common_name or "without a common name"
        yield Statement(
            f"the request is sent for {case.name}, but its subject is {subject}",
            at=places.csr(f"CN={request.common_name}" if request.common_name else "fingerprint"),
        )

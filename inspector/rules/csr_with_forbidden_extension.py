from cryptography import x509

from inspector.protocol.oids import AUTHORIZATION, oid_name
from inspector.rules.csr_repeated import refused
from inspector.rules.kit import *

ALLOWED = ("1.3.6.1.4.1.34380.1.1.", "1.3.6.1.4.1.34380.1.2.", AUTHORIZATION)
ALT_NAMES = "2.5.29.17"
OTHER = "1.3.6.1.4.1.99999.1"


@rule(
    "B29",
    Severity.WARNING,
    at=(Kind.CSR,),
    otherwise="error if the CA refuses it",
    title="signing request with an extension that CAs do not sign",
    fix=(
        on_node("see where csr_attributes.yaml is", "puppet config print csr_attributes"),
        on_node("move the value in it to Puppet's own arcs, 1.3.6.1.4.1.34380.1.1 (registered) or .1.2 (private)"),
        group("enrol"),
    ),
    source="docs/protocol.md#checks-of-a-signing-request; "
    "puppetserver 7.9.5 src/clj/puppetlabs/puppetserver/certificate_authority.clj",
    good=lambda: [
        talk(ca(), crl(), csr(made=asking_for({"1.3.6.1.4.1.34380.1.1.13": "web", "1.3.6.1.4.1.34380.1.2.1": "x"})),
             not_issued()),
        talk(ca(), crl(), csr(attributes={OTHER: "an attribute is no extension"}), not_issued()),
    ],
    bad=lambda: [
        talk(ca(), crl(), csr(made=asking_for({OTHER: "x"})), not_issued()),
        talk(ca(), crl(), csr(made=asking_for({OTHER: "x"}), status=400,
                              body=b"Found extensions that are not permitted: 1.3.6.1.4.1.99999.1"), not_issued()),
    ],
    also=("B01",),
)  # fmt: skip
def csr_with_forbidden_extension(case: ExchangeCase) -> Iterator[Statement]:
    """Apart from alternative names, a CA signs only extensions below Puppet's own OID arcs. It may accept this request
    and then fail when someone signs it; a request that it refused stays stored on the CA, so it must be cleaned."""
    request = case.step.request
    if not isinstance(request, d.CertificateRequest) or not request.der:
        return
    oids = [extension.oid.dotted_string for extension in x509.load_der_x509_csr(request.der).extensions]
    if not (strange := [oid_name(oid) for oid in oids if oid != ALT_NAMES and not oid.startswith(ALLOWED)]):
        return
    if "not permitted" in case.answer:
        yield Statement(
            f"the CA refuses the request for {case.name} because of its extensions: {some(strange)}",
            severity=Severity.ERROR,
            at=places.csr(strange[0]),
        )
    elif not (refused(case) and request.key in case.ledger.known(case.name).csrs):  # otherwise already reported
        yield Statement(
            f"the request for {case.name} contains extensions that the CA does not sign: {some(strange)}",
            at=places.csr(strange[0]),
        )

from inspector.rules.kit import *


@rule(
    "B38",
    Severity.ERROR,
    at=(Kind.CERTIFICATE,),
    otherwise="warning if only the alternative names lack the certname",
    title="certificate issued for another name",
    fix=(
        on_ca(
            "see whose certificate it has under this name",
            'openssl x509 -noout -text -in "$(puppet config print signeddir --section master)/{name}.pem"',
        ),
        group("enrol", only_if="the certificate does not belong to that node"),
    ),
    source="docs/protocol.md#issued-certificates",
    explains=("T04", "S02"),
    good=lambda: [
        talk(ca(), crl(), csr(), issued(), catalog(), report()),
        talk(ca(), crl(), issued(made=made(alt_names=("puppet",))), catalog(), report()),
    ],
    bad=lambda: [talk(ca(), crl(), csr(), not_issued(), issued(made=made("node9.example", NAME)))],
)
def certificate_of_another_name(case: ExchangeCase) -> Iterator[Statement]:
    """The certificate that the CA serves for this name was issued for another name: a file was copied or renamed on the
    CA. With it, the master would treat the node as a different node."""
    answer, match = case.step.response, case.step.match
    if not isinstance(answer, d.Certificates) or match is None or match.certname is None:
        return
    certificate, name = answer.certificates[0], match.certname.lower()
    if (certificate.common_name or "").lower() != name:
        yield Statement(
            brief(f"the CA's certificate for {name} is for '{certificate.subject}'"),
            at=places.certificate(certificate.subject),
        )
    elif certificate.alt_names and f"dns:{name}" not in [alt_name.lower() for alt_name in certificate.alt_names]:
        names = some(certificate.alt_names)
        yield Statement(
            brief(f"the CA's certificate for {name} is not for that name, but for {names}"),
            severity=Severity.WARNING,
            at=places.certificate("alternative name"),
        )

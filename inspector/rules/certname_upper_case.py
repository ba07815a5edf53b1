from inspector.rules.kit import *


def names_asked_for(case: ExchangeCase) -> list[str]:
    """The certnames of a signing request: the one in its URL and, if different, the one in its subject."""
    request = case.step.request
    subject = request.common_name if isinstance(request, d.CertificateRequest) else None
    return list(dict.fromkeys(name for name in (case.name, subject) if name))


@rule(
    "B25",
    Severity.ERROR,
    at=(Kind.CSR,),
    otherwise="warning if the CA accepts it",
    title="upper-case certname",
    fix=(
        on_node("set {name} in lower case", "puppet config set certname <in lower case> --section main"),
        on_node("enrol with it", "{reset}", destroys="its key and its certificate"),
    ),
    source="docs/protocol.md#checks-of-a-signing-request; "
    "puppetserver 7.9.5 src/clj/puppetlabs/puppetserver/certificate_authority.clj",
    good=lambda: [talk(ca(), crl(), csr(), not_issued(), certname="node-1.dc2.example")],
    bad=lambda: [
        talk(ca(), crl(), csr(status=400, body=b"Certificate names must be lower case."), certname="Node1.example"),
    ],
    also=("B01",),
)
def certname_upper_case(case: ExchangeCase) -> Iterator[Statement]:
    """A certname must not contain upper-case letters. They usually come from the host name; agents up to version 5
    convert it to lower case themselves."""
    for name in names_asked_for(case):
        if any(letter.isupper() for letter in name):
            if case.status is not None and case.status < 400:
                yield Statement(
                    f"the certname {name} has upper-case letters; this CA accepted it",
                    severity=Severity.WARNING,
                    at=(places.csr(f"CN={name}"), places.REQUEST_LINE),
                )
            else:
                yield Statement(
                    f"the certname {name} has upper-case letters: CAs refuse it",
                    at=(places.csr(f"CN={name}"), places.REQUEST_LINE),
                )

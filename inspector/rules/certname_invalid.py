from inspector.rules.certname_upper_case import names_asked_for
from inspector.rules.kit import *


def _wrong(name: str) -> str:
    if "*" in name:
        return "has a wildcard"
    if characters := sorted(set(regex.sub(r"[A-Za-z0-9._-]", "", name))):
        return "has " + ", ".join("a blank" if character == " " else ascii(character) for character in characters[:5])
    if name.startswith("-") or name.endswith("-"):
        return f"{'begins' if name.startswith('-') else 'ends'} with a hyphen"
    return ""


@rule(
    "B26",
    Severity.ERROR,
    at=(Kind.CSR,),
    otherwise="warning if the CA accepts it",
    title="invalid certname",
    fix=(
        on_node("replace {name} with a certname of letters a to z, digits, dots, hyphens and underscores",
                "puppet config set certname <new name> --section main"),
        on_node("enrol with it", "{reset}", destroys="its key and its certificate"),
    ),
    source="docs/protocol.md#checks-of-a-signing-request; "
    "puppetserver 7.9.5 src/clj/puppetlabs/puppetserver/certificate_authority.clj",
    good=lambda: [talk(ca(), crl(), csr(), not_issued(), certname="web_1.rack-2.example")],
    bad=lambda: [
        talk(ca(), crl(), csr(status=400, body=b"Subject contains a wildcard, which is not allowed: *.example"),
             certname="*.example"),
        talk(ca(), crl(), csr(status=400, body=b"Subject hostname format is invalid"), certname="node1-"),
    ],
    also=("B01",),
)  # fmt: skip
def certname_invalid(case: ExchangeCase) -> Iterator[Statement]:
    """The certname contains characters that a CA refuses, or that cause failures later: it is part of URLs, of file
    names on both ends and of auth.conf's rules. An older CA that accepts it only delays the failure."""
    for name in names_asked_for(case):
        if wrong := _wrong(name):
            if case.status is not None and case.status < 400:
                yield Statement(
                    f"the certname {name} {wrong}; this CA accepted it",
                    severity=Severity.WARNING,
                    at=(places.csr(f"CN={name}"), places.REQUEST_LINE),
                )
            else:
                yield Statement(
                    f"the certname {name} {wrong}: CAs refuse it", at=(places.csr(f"CN={name}"), places.REQUEST_LINE)
                )

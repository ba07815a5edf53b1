"""B25 and B26: certnames with characters that CAs refuse."""

from collections.abc import Callable

from inspector.rules.kit import *


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
    explains=("B26", "B24", "B43", "B44", "B39", "B40"),
    good=lambda: [talk(ca(), crl(), csr(), not_issued(), certname="node-1.dc2.example")],
    bad=lambda: [
        talk(ca(), crl(), csr(status=400, body=b"Certificate names must be lower case."), certname="Node1.example")
    ],
)
def certname_upper_case(case: ExchangeCase) -> Iterator[Statement]:
    """A certname must not contain upper-case letters. They usually come from the host name; agents up to version 5
    convert it to lower case themselves."""
    return _judged(case, _upper_case)


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
    explains=("B24", "B43", "B44", "B39", "B40", "S15"),
    good=lambda: [talk(ca(), crl(), csr(), not_issued(), certname="web_1.rack-2.example")],
    bad=lambda: [
        talk(ca(), crl(), csr(status=400, body=b"Subject contains a wildcard, which is not allowed: *.example"),
             certname="*.example"),
        talk(ca(), crl(), csr(status=400, body=b"Subject hostname format is invalid"), certname="node1-"),
    ],
)  # fmt: skip
def certname_invalid(case: ExchangeCase) -> Iterator[Statement]:
    """The certname contains characters that a CA refuses, or that cause failures later: it is part of URLs, of file
    names on both ends and of auth.conf's rules. An older CA that accepts it only delays the failure."""
    return _judged(case, _invalid)


def _upper_case(name: str) -> str:
    return "has upper-case letters" if any(letter.isupper() for letter in name) else ""


def _invalid(name: str) -> str:
    if "*" in name:
        return "has a wildcard"
    if characters := sorted(set(regex.sub(r"[A-Za-z0-9._-]", "", name))):
        return "has " + ", ".join("a blank" if character == " " else ascii(character) for character in characters[:5])
    if name.startswith("-") or name.endswith("-"):
        return f"{'begins' if name.startswith('-') else 'ends'} with a hyphen"
    return ""


def _judged(case: ExchangeCase, judge: Callable[[str], str]) -> Iterator[Statement]:
    """Yield what is wrong with the certnames of a signing request: the one in its URL and the one in its subject."""
    request = case.step.request
    subject = request.common_name if isinstance(request, d.CertificateRequest) else None
    for name in dict.fromkeys(name for name in (case.name, subject) if name):
        if wrong := judge(name):
            yield Statement(
                f"the certname {name} {wrong}{'; this CA accepted it' if case.accepted else ': CAs refuse it'}",
                severity=Severity.WARNING if case.accepted else None,
                at=(places.csr(f"CN={name}"), places.REQUEST_LINE),
            )

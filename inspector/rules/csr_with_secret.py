"""B30."""

from collections.abc import Iterator

from inspector.model import Severity, Visible
from inspector.protocol import documents as d
from inspector.rules import Case, On, Said, rule
from inspector.runs.examples import asking_for, ca, crl, csr, not_issued, talk

PASSWORD = "1.2.840.113549.1.9.7"  # noqa: S105 - an OID
PRESHARED = "1.3.6.1.4.1.34380.1.1.4"


@rule(
    "B30",
    Severity.WARNING,
    On.EXCHANGE,
    at=("certificate_request",),
    otherwise="notice for agents since 6.4",
    visible=Visible.WIRE,
    title="secret in a signing request",
    remedy="Use a token that is good for one request and a short time, and have the CA's autosign executable spend "
    "it. Agents up to 6.3 send it to whoever answers: upgrade, or bootstrap over a network you trust.",
    source="docs/protocol.md#extensions-and-attributes",
    good=lambda: [
        talk(ca(), crl(), csr(made=asking_for({"1.3.6.1.4.1.34380.1.1.13": "webserver"})), not_issued()),
        talk(ca(), csr(), not_issued(), version="5.5.22"),
    ],
    bad=lambda: [
        talk(ca(), csr(attributes={PASSWORD: "a token"}), not_issued(), version="5.5.22"),
        talk(ca(), crl(), csr(made=asking_for({PRESHARED: "a token"})), not_issued()),
    ],
    also=("B01", "B03"),
)
def csr_with_secret(case: Case) -> Iterator[Said]:
    """The request carries a password or a preshared key with which the CA decides whether to sign. Agents up to 6.3
    do not verify whom they send it to: whoever sits in between can read it and enrol in the node's name. A
    preshared key also stays readable in the certificate ever after."""
    asked = case.step.request
    if not isinstance(asked, d.CertificateRequest):
        return
    carried = {*asked.attributes, *asked.extensions}
    for name in ("challengePassword", "pp_preshared_key"):
        if name not in carried:
            continue
        public = ", and the certificate will show it to anybody" if name in asked.extensions else ""
        if case.run.old_engine:
            yield Said(f"the request carries a {name}{public}; the agent does not verify whom it sends it to")
        else:
            yield Said(f"the request carries a {name}{public}", severity=Severity.NOTICE)

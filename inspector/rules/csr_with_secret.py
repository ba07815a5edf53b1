from inspector.rules.kit import *

_PASSWORD = "1.2.840.113549.1.9.7"  # noqa: S105 - an OID
_PRESHARED = "1.3.6.1.4.1.34380.1.1.4"


@rule(
    "B30",
    Severity.WARNING,
    at=(Kind.CSR,),
    otherwise="notice for agents from 6.4 on",
    title="secret in a signing request",
    fix=(
        advice("use a token that is valid for one request and a short time"),
        on_ca("have its autosign executable invalidate the token after use"),
        advice(
            "upgrade the agent, or bootstrap over a network you trust",
            only_if="it is of version 6.3 or earlier (it sends the secret to an unverified server)",
        ),
    ),
    source="docs/protocol.md#extensions-and-attributes",
    good=lambda: [
        talk(ca(), crl(), csr(made=asking_for({"1.3.6.1.4.1.34380.1.1.13": "webserver"})), not_issued()),
        talk(ca(), csr(), not_issued(), version="5.5.22"),
    ],
    bad=lambda: [
        talk(ca(), csr(attributes={_PASSWORD: "a token"}), not_issued(), version="5.5.22"),
        talk(ca(), crl(), csr(made=asking_for({_PRESHARED: "a token"})), not_issued()),
    ],
)
def csr_with_secret(case: ExchangeCase) -> Iterator[Statement]:
    """The request contains a password or a preshared key, by which the CA decides whether to sign. Agents up to 6.3 do
    not verify the server they send it to: an attacker in between can read it and enrol in the node's name. A preshared
    key also stays readable in the certificate permanently."""
    request = case.step.request
    if not isinstance(request, d.CertificateRequest):
        return
    carried = {*request.attributes, *request.extensions}
    for name in ("challengePassword", "pp_preshared_key"):
        if name not in carried:
            continue
        public = ", and the certificate will make it public" if name in request.extensions else ""
        old = case.run.old_engine
        yield Statement(
            f"the request contains a {name}{public}{'; the agent does not verify the server' if old else ''}",
            severity=None if old else Severity.NOTICE,
            at=places.csr(name),
        )

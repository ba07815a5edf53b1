from inspector.rules.csr_repeated import refused
from inspector.rules.kit import *

AUTO_RENEW = "1.3.6.1.4.1.34380.1.3.2"
ROLE, CLI = "1.3.6.1.4.1.34380.1.3.13", "1.3.6.1.4.1.34380.1.3.39"

_REFUSAL = (
    b"CSR 'node1.example' contains an authorization extension, which is disallowed. To allow authorization "
    b"extensions, set allow-authorization-extensions to true in your ca.conf file."
)


@rule(
    "B28",
    Severity.ERROR,
    at=(Kind.CSR,),
    otherwise="warning if the CA accepts it, except pp_cli_auth",
    title="signing request asks for authorization extensions",
    fix=(
        on_node("see where csr_attributes.yaml is", "puppet config print csr_attributes"),
        on_node("remove the extension from it", only_if="the site does not want it"),
        group("enrol", only_if="the site does not want it"),
        on_ca("allow it: `allow-authorization-extensions: true` in ca.conf", only_if="the site wants it"),
        on_ca("restart it", "systemctl restart puppetserver", only_if="the site wants it"),
        on_ca("sign the request", "{sign}", only_if="the site wants it"),
    ),
    source="docs/protocol.md#checks-of-a-signing-request; "
    "puppetserver 7.9.5 src/clj/puppetlabs/puppetserver/certificate_authority.clj",
    good=lambda: [
        talk(ca(), crl(), csr(attributes={AUTO_RENEW: "true"}), not_issued(),
             version="8.10.0", master_version="8.10.0"),
        talk(ca(), crl(), csr(made=asking_for({"1.3.6.1.4.1.34380.1.1.13": "webserver"})), not_issued()),
    ],
    bad=lambda: [
        talk(ca(), crl(), csr(made=asking_for({ROLE: "admin"}), status=400, body=_REFUSAL), not_issued()),
        talk(ca(), crl(), csr(made=asking_for({CLI: "true"})), not_issued()),
    ],
    also=("B01",),
)  # fmt: skip
def csr_with_authorization(case: ExchangeCase) -> Iterator[Statement]:
    """The request asks for an extension that grants rights: pp_cli_auth lets its owner sign and revoke certificates;
    the meaning of others depends on the site's own rules. CAs refuse them unless they are configured to allow them, and
    store the refused request, so it must be cleaned. (The auto-renewal mark of 8.2 and later is an attribute, not such
    an extension.)"""
    request = case.step.request
    if not isinstance(request, d.CertificateRequest) or not (extensions := sorted(request.authorizations)):
        return
    content = f"authorization extensions: {some(extensions)}"
    if "authorization extension" in case.answer:
        yield Statement(
            f"the CA refuses the request for {case.name} because it contains {content}", at=places.csr(extensions[0])
        )
    elif not (refused(case) and request.key in case.ledger.known(case.name).csrs):  # otherwise already reported
        allowed = "pp_cli_auth" not in extensions and case.status is not None and case.status < 400
        yield Statement(
            f"the request for {case.name} contains {content}",
            severity=Severity.WARNING if allowed else None,
            at=places.csr(extensions[0]),
        )

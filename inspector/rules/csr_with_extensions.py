"""B27, B28 and B29: signing requests with what CAs sign only if they are configured to, or never."""

from inspector.protocol import x509
from inspector.protocol.oids import AUTHORIZATION, oid_name
from inspector.rules.kit import *

_NAMES_REFUSED = (
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
    explains=("B43", "B29", "B39", "B41", "B42"),
    good=lambda: [talk(ca(), crl(), csr(), not_issued()), talk(ca(), crl(), csr(alt_names=[NAME]), not_issued())],
    bad=lambda: [
        talk(ca(), crl(), csr(alt_names=["puppet.example"]), not_issued()),
        talk(ca(), crl(), csr(alt_names=["puppet.example"], status=400, body=_NAMES_REFUSED), not_issued()),
    ],
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
    elif not _reported(case, request):
        yield Statement(
            f"the request for {case.name} contains alternative names ({some(extra)}): {_whose(case)} does not sign it "
            "unless it is configured to",
            at=places.csr(f"alternative name: {extra[0]}"),
        )


_AUTO_RENEW, _ROLE, _CLI = (f"{AUTHORIZATION}{number}" for number in (2, 13, 39))
_RIGHTS_REFUSED = (
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
    explains=("B43", "B29", "B39", "B41", "B42"),
    good=lambda: [
        talk(ca(), crl(), csr(attributes={_AUTO_RENEW: "true"}), not_issued(),
             version="8.10.0", master_version="8.10.0"),
        talk(ca(), crl(), csr(made=asking_for({"1.3.6.1.4.1.34380.1.1.13": "webserver"})), not_issued()),
    ],
    bad=lambda: [
        talk(ca(), crl(), csr(made=asking_for({_ROLE: "admin"}), status=400, body=_RIGHTS_REFUSED), not_issued()),
        talk(ca(), crl(), csr(made=asking_for({_CLI: "true"})), not_issued()),
    ],
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
    elif not _reported(case, request):
        allowed = "pp_cli_auth" not in extensions and case.accepted
        # A CA that does not autosign takes the request, and refuses it when somebody signs it (409).
        yield Statement(
            f"the request for {case.name} contains {content}: {_whose(case)} does not sign it unless it is configured "
            "to",
            severity=Severity.WARNING if allowed else None,
            at=places.csr(extensions[0]),
        )


_ALLOWED = ("1.3.6.1.4.1.34380.1.1.", "1.3.6.1.4.1.34380.1.2.", AUTHORIZATION)
_ALT_NAMES = "2.5.29.17"
_OTHER = "1.3.6.1.4.1.99999.1"


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
    explains=("B43", "B39", "B41", "B42"),
    good=lambda: [
        talk(ca(), crl(), csr(made=asking_for({"1.3.6.1.4.1.34380.1.1.13": "web", "1.3.6.1.4.1.34380.1.2.1": "x"})),
             not_issued()),
        talk(ca(), crl(), csr(attributes={_OTHER: "an attribute is no extension"}), not_issued()),
    ],
    bad=lambda: [
        talk(ca(), crl(), csr(made=asking_for({_OTHER: "x"})), not_issued()),
        talk(ca(), crl(), csr(made=asking_for({_OTHER: "x"}), status=400,
                              body=b"Found extensions that are not permitted: 1.3.6.1.4.1.99999.1"), not_issued()),
    ],
)  # fmt: skip
def csr_with_forbidden_extension(case: ExchangeCase) -> Iterator[Statement]:
    """Apart from alternative names, a CA signs only extensions below Puppet's own OID arcs. It may accept this request
    and then fail when someone signs it; a request that it refused stays stored on the CA, so it must be cleaned."""
    request = case.step.request
    if not isinstance(request, d.CertificateRequest) or not request.der:
        return
    oids = x509.extensions_of_request(request.der)
    if not (strange := [oid_name(oid) for oid in oids if oid != _ALT_NAMES and not oid.startswith(_ALLOWED)]):
        return
    if "not permitted" in case.answer:
        yield Statement(
            f"the CA refuses the request for {case.name} because of its extensions: {some(strange)}",
            severity=Severity.ERROR,
            at=places.csr(strange[0]),
        )
    elif not _reported(case, request):
        yield Statement(
            f"the request for {case.name} contains extensions that {_whose(case)} does not sign: {some(strange)}",
            at=places.csr(strange[0]),
        )


def _whose(case: ExchangeCase) -> str:
    """Return whose behaviour it is: other CAs sign alternative names as requested, and leave extensions out."""
    response = case.exchange.response
    return "the CA" if response and response.header("x-puppet-version") else "a CA of Puppet"


def _reported(case: ExchangeCase, request: d.CertificateRequest) -> bool:
    """Whether the same request was sent before, and reported."""
    return ALREADY in case.answer and request.key in case.ledger.known(case.name).csrs

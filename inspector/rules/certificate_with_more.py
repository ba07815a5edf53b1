from inspector.rules.kit import *


@rule(
    "B48",
    Severity.WARNING,
    at=(Kind.CERTIFICATE,),
    title="the certificate has more than was requested",
    fix=(
        advice("find out who signed it and how: a script, or a CA that is not Puppet's"),
        group("enrol", only_if="the node is no CA and no master"),
    ),
    source="docs/protocol.md#issued-certificates; docs/protocol.md#signing-requests",
    good=lambda: [
        talk(ca(), csr(), issued(made=made(alt_names=(NAME,)))),
    ],
    bad=lambda: [talk(ca(), csr(), not_issued(), issued(made=made(alt_names=(MASTER,))))],
)  # fmt: skip
def certificate_with_more(case: ExchangeCase) -> Iterator[Statement]:
    """The CA issued a certificate with alternative names or authorizations that the node did not ask for. With another
    name a node can pass itself off as that host, a master for example; pp_cli_auth lets it sign and revoke
    certificates."""
    answer = case.step.response
    if not isinstance(answer, d.Certificates):
        return
    certificate = answer.certificates[0]
    request = next((request for request in reversed(case.run.csrs) if request.key == certificate.key), None)
    if request is None or request.requested is None:
        return
    asked_for = {name.lower() for name in request.requested}
    own = f"DNS:{certificate.common_name}".lower()
    granted = [*certificate.alt_names, *certificate.authorizations]
    more = [name for name in granted if name.lower() != own and name.lower() not in asked_for]
    if more:
        yield Statement(
            brief(f"the certificate of {case.name} has {some(more)}, which its request did not ask for"),
            (request.seq, case.exchange.seq),
            at=(places.csr("key: "), places.certificate(more[0].partition(":")[2] or more[0])),
        )

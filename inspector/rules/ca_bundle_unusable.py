from inspector.rules.kit import *
from inspector.runs.examples import authorities, bundle, foreign_ca


@rule(
    "B05",
    Severity.ERROR,
    at=(Kind.CA_BUNDLE,),
    title="CA bundle unusable",
    fix=(
        on_ca("check ca_crt.pem, which must contain every CA up to the root", "{check_ca}"),
        on_ca("restore the file from a backup, or take it from an agent's ca.pem", only_if="a CA is missing"),
        advice("check what is between agent and master", only_if="the answer was a web page"),
    ),
    source="docs/protocol.md#ca-download; puppet 7.23.0 lib/puppet/ssl/state_machine.rb",
    explains=("B13", *NO_TRUST),
    good=lambda: [talk(ca(), crl(), csr(), issued(), catalog(), report()), talk(bundle(foreign_ca()))],
    bad=lambda: [
        talk(bundle(body=b"<html><body>Sign in</body></html>")),
        talk(bundle(authorities()[1].certificate)),
        talk(bundle(made("ca.example"))),
    ],
)
def ca_bundle_unusable(case: ExchangeCase) -> Iterator[Statement]:
    """The answer is not a usable CA bundle: it is not PEM, it contains no CA, or the issuer of a CA is missing. An
    agent stops here, or trusts no master afterwards."""
    if case.status != 200 or case.exchange.response is None or case.exchange.response.lost:
        return
    match case.step.response:
        case d.Certificates(certificates):
            subjects = {certificate.subject for certificate in certificates}
            if not any(certificate.is_ca or certificate.issuer == certificate.subject for certificate in certificates):
                yield Statement(
                    f"the CA bundle contains no CA: {some([certificate.subject for certificate in certificates])}",
                    at=places.certificate("CA: no"),
                )
                return
            for certificate in certificates:
                if certificate.is_ca and certificate.issuer not in subjects:
                    yield Statement(
                        brief(
                            f"the CA bundle does not contain '{certificate.issuer}', "
                            f"which issued the CA '{certificate.subject}'"
                        ),
                        at=places.certificate(f"issuer: {certificate.issuer}"),
                    )
        case d.Undecodable(reason):
            yield Statement(
                brief(f"the CA bundle ({media_type(case) or 'without a type'}) cannot be read: {reason}"),
                at=places.meaning(reason, "response unreadable"),
            )

from inspector.rules.kit import *
from inspector.rules.trust import signed_for_proxy


@rule(
    "B37",
    Severity.ERROR,
    at=(Kind.RENEWAL,),
    title="renewed certificate belongs to another key",
    fix=(
        on_node("print the fingerprint", "{fingerprint}"),
        on_ca("compare it with that of the certificate there", "{list}"),
        advice("find out which server answered: a CA does not do this"),
    ),
    source="docs/protocol.md#renewal",
    good=lambda: [talk(renewal(), catalog(), report(), version="8.10.0", master_version="8.10.0")],
    bad=lambda: [talk(renewal(key="other"), catalog(), report(), version="8.10.0", master_version="8.10.0")],
)
def renewal_with_another_key(case: ExchangeCase) -> Iterator[Statement]:
    """The certificate returned by the renewal belongs to a different key than the agent's. A CA signs the key that the
    client presents; the agent cannot use this certificate. A device in between answered, or presents a different client
    to the CA."""
    answer, client = case.step.response, case.step.client
    if signed_for_proxy(case):
        return  # B49
    if isinstance(answer, d.Certificates) and client and answer.certificates[0].key != client.key:
        certificate = answer.certificates[0]
        yield Statement(
            brief(
                f"the renewed certificate is for the key {certificate.key[:16]}…, "
                f"{client.common_name} has {client.key[:16]}…"
            ),
            at=places.certificate(certificate.key),
        )

from inspector.rules.kit import *
from inspector.rules.trust import bundle_of, forged, made_by
from inspector.runs.examples import forged_crl


@rule(
    "B14",
    Severity.ERROR,
    at=(Kind.CRL,),
    title="CRL with an invalid signature",
    fix=(
        on_ca("look at each CRL for an invalid signature", "{crls}"),
        advice("find out what changed the CRL on its way to the agent", only_if="no signature is invalid"),
        on_ca(
            "take the CRL from there: pass its file to the same command with `--add`",
            only_if="one is invalid, and there is a backup",
        ),
        on_ca(
            "sign the CA's own one anew; certificates that it revoked are accepted again",
            "{write_crls}",
            only_if="one is invalid, and there is no backup",
        ),
        on_node(
            "fetch it, on each that still has the old one",
            "{new_crl_of_agent}",
            only_if="one was invalid",
            destroys="the CRL that it has",
        ),
    ),
    source="docs/protocol.md#verification-by-agents; puppet 7.23.0 lib/puppet/ssl/ssl_provider.rb",
    explains=NO_TRUST,
    good=lambda: [talk(ca(), crl(), csr(), issued(), catalog(), report())],
    bad=lambda: [talk(ca(), crl(body=forged_crl()))],
)
def crl_forged(case: ExchangeCase) -> Iterator[Statement]:
    """The CRL names a CA of the bundle as its issuer, but was not signed by that CA's key: it is left over from a CA of
    the same name that was recreated, or was changed in transit. Agents that have it trust no master."""
    answer = case.step.response
    if not isinstance(answer, d.RevocationLists):
        return
    bundle = case.ledger.bundle(case.exchange)
    authorities = bundle_of(case.run) or (list(bundle.certificates) if bundle else [])
    for entry in answer.crls:
        if forged(entry, authorities):
            key = made_by(entry, authorities)[0].key
            yield Statement(
                brief(f"the CRL issued by '{entry.issuer}' is not signed by that CA's key (SHA-256 {key[:16]}…)"),
                at=places.crl(f"CRL of {entry.issuer}"),
            )

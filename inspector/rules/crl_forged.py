"""B14."""

from collections.abc import Iterator

from inspector.model import Severity, Visible
from inspector.protocol import documents as d
from inspector.protocol.kinds import Kind
from inspector.rules import On, places, rule
from inspector.rules.cases import ExchangeCase, Statement
from inspector.rules.trust import bundle_of, forged, made_by
from inspector.rules.words import brief
from inspector.runs.examples import ca, catalog, crl, csr, forged_crl, issued, report, talk


@rule(
    "B14",
    Severity.ERROR,
    On.EXCHANGE,
    at=(Kind.CRL,),
    visible=Visible.WIRE,
    title="CRL with an invalid signature",
    remedy="On the CA look at each CRL for an invalid signature: {crls}. Take that CRL from a backup: pass the file "
    "with --add. Without a backup, sign the CA's own one anew: {write_crls}; certificates that it revoked are "
    'accepted again. Then on each agent that still has the old one run `rm -f "$(puppet config print '
    'hostcrl)"; puppet agent -t`. If no signature is invalid on the CA, find out what changed the CRL on its '
    "way to the agent.",
    source="docs/protocol.md#verification-by-agents; puppet 7.23.0 lib/puppet/ssl/ssl_provider.rb",
    good=lambda: [talk(ca(), crl(), csr(), issued(), catalog(), report())],
    bad=lambda: [talk(ca(), crl(body=forged_crl()))],
    also=("B01",),
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

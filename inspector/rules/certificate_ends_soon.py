from inspector.model import Record
from inspector.rules.kit import *
from inspector.rules.trust import presented_in_run


def _near(*, version: str, days: float, renew: bool = False) -> list[Record]:
    leg = {"peer_chain": carried(made(starts=-1000 * DAY, ends=days * DAY))}
    parts = [renewal()] if renew else []
    return talk(
        *(altered(part, leg=leg) for part in (*parts, catalog(), report())), version=version, master_version="8.10.0"
    )


@rule(
    "B34",
    Severity.WARNING,
    title="certificate expires soon",
    fix=(
        group("renew", only_if="the node's own certificate expires"),
        on_ca(
            "let agents of 8.2 and later renew it by themselves: `allow-auto-renewal: true` in ca.conf",
            only_if="the node's own certificate expires",
        ),
        on_ca("renew the CA's certificate", only_if="that of the CA expires"),
        on_node(
            "fetch the new one, on every node, before the old one expires",
            "{trust_anew}",
            only_if="that of the CA expires",
            destroys="the CA and the CRL that it has",
        ),
    ),
    source="docs/protocol.md#renewal; docs/protocol.md#issued-certificates",
    good=lambda: [
        _near(version="7.23.0", days=91),
        _near(version="8.10.0", days=31),
        _near(version="8.10.0", days=29, renew=True),
    ],
    bad=lambda: [_near(version="7.23.0", days=89), _near(version="8.10.0", days=29)],
)
def certificate_ends_soon(case: RunCase, *, days: float = 90, renewing_days: float = 30) -> Iterator[Statement]:
    """A certificate used in this run expires soon: the node's own, or its CA's. When a node's certificate expires, that
    node stops working; when the CA's does, all nodes stop. An agent of 8.2 or later that renews its certificate by
    itself is reported only when the renewal is overdue."""
    run = case.run
    presented, renewed = presented_in_run(case), case.ledger.known(run.certname).renewed
    if presented and not (renewed and run.seqs and renewed.seq >= run.seqs[0]):
        certificate, within = presented.certificate, renewing_days if run.major >= (8, 2) else days
        if (
            0
            <= certificate.not_after - presented.last_time
            < _limit(within, certificate.not_before, certificate.not_after)
        ):
            yield Statement(
                brief(f"the certificate of {certificate.common_name} expires on {utc(certificate.not_after)}"),
                (presented.last_seq,),
                at=places.tls(utc(certificate.not_after)),
            )
    for bundle in run.cas[-1:]:
        for item in bundle.items or []:
            remaining = item.not_after - bundle.time
            if item.is_ca and 0 <= remaining < _limit(days, item.not_before, item.not_after):
                yield Statement(
                    brief(f"the CA '{item.subject}' expires on {utc(item.not_after)}"),
                    (bundle.seq,),
                    at=places.certificate(utc(item.not_after)),
                )


def _limit(days: float, begins: float, ends: float) -> float:
    """Seconds before its end at which a certificate is reported: for a short-lived one, a third of its lifetime."""
    return min(days * DAY, (ends - begins) / 3)

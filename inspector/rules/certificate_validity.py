"""B33, B34 and B35: certificates outside of their validity, or near its end."""

from collections.abc import Callable

from inspector.protocol.certificates import Certificate
from inspector.rules.clock_skew import clocks_first
from inspector.rules.kit import *
from inspector.rules.trust import agent_certificate, presented_in_run


@rule(
    "B33",
    Severity.ERROR,
    title="certificate expired",
    fix=(
        on_proxy("compare its clock with those of the node, the master and the CA", "date -u"),
        group("enrol", only_if="the clocks are right, and the node's own certificate expired"),
        on_ca("renew the CA's certificate", only_if="the clocks are right, and that of the CA expired"),
        on_node(
            "fetch the new one, on every node",
            "{trust_anew}",
            only_if="the clocks are right, and that of the CA expired",
            destroys="the CA and the CRL that it has",
        ),
    ),
    instead=clocks_first,
    source="docs/protocol.md#verification-by-agents; puppet 7.23.0 lib/puppet/ssl/ssl_provider.rb",
    explains=NO_TRUST,
    good=lambda: [talk(ca(), crl(), csr(), issued(), catalog(), report())],
    bad=lambda: [
        talk(refused("certificate_expired", by="proxy", leg={"peer_chain": carried(made(ends=-60))})),
        talk(*(altered(part, leg={"peer_chain": carried(made(ends=-60))}) for part in (catalog(), report()))),
        talk(ca(), crl(), csr(), not_issued(), issued(made=made(ends=-60))),
    ],
)
def certificate_expired(case: RunCase) -> Iterator[Statement]:
    """A certificate was used, or served, after its expiry date. Every peer that verifies it refuses it: an agent with
    an expired certificate cannot run, and if the CA's certificate has expired, no agent can. If the date is right,
    check the clocks instead."""
    return _outside(case, lambda certificate: certificate.not_after, lambda end, time: end < time, "expired on")


@rule(
    "B35",
    Severity.ERROR,
    title="certificate not yet valid",
    fix=(
        on_ca("see whether its clock is right and set by NTP; the same on the master and the node", "timedatectl"),
        advice("set the clock that is wrong by NTP", only_if="one is wrong"),
        group("enrol", only_if="the CA's clock was ahead when it signed"),
    ),
    instead=clocks_first,
    source="docs/protocol.md#clocks; puppet 7.23.0 lib/puppet/ssl/ssl_provider.rb",
    explains=NO_TRUST,
    good=lambda: [talk(ca(), crl(), csr(), issued(made=made(starts=-60)), catalog(), report())],
    bad=lambda: [
        talk(refused("bad_certificate", by="proxy", leg={"peer_chain": carried(made(starts=3600))})),
        talk(ca(), crl(), csr(), not_issued(), issued(made=made(starts=3600))),
        talk(*(altered(part, leg={"peer_chain": carried(made(starts=3600))}) for part in (catalog(), report()))),
    ],
)
def certificate_not_yet_valid(case: RunCase) -> Iterator[Statement]:
    """The certificate's validity begins in the future. CAs backdate certificates by a day, so the clock of the CA that
    signed it is more than a day ahead of this proxy's, or this proxy's clock is behind. Every peer that verifies the
    certificate refuses it."""
    return _outside(
        case, lambda certificate: certificate.not_before, lambda start, time: start > time, "is not valid before"
    )


def _outside(
    case: RunCase, date: Callable[[Certificate], float], wrong: Callable[[float, float], bool], words: str
) -> Iterator[Statement]:
    """Yield what is wrong with each certificate of a run whose date is, at the time when it was used or served."""
    run, evidence = case.run, dict[tuple[str, float], list[int]]()

    def look(name: str, certificate: Certificate, time: float, seq: int) -> None:
        if wrong(date(certificate), time):
            text = f"{name} {words} {utc(date(certificate))}"
            evidence.setdefault((text, date(certificate)), []).append(seq)

    for handshake in run.handshakes:
        if agent := agent_certificate(handshake):
            look(f"the certificate of {agent.common_name}", agent, handshake.time, handshake.seq)
    if presented := presented_in_run(case):
        client = presented.certificate
        look(f"the certificate of {client.common_name}", client, presented.last_time, presented.last_seq)
    for answer in run.certificates:
        if issued := answer.certificate:
            look(f"the CA issued a certificate of {issued.common_name} that", issued, answer.time, answer.seq)
    for bundle in run.cas:
        for item in bundle.items or []:
            if item.is_ca:
                look(f"the CA '{item.subject}'", item, bundle.time, bundle.seq)
    for (text, moment), seqs in evidence.items():
        yield Statement(brief(text), tuple(seqs), at=(places.certificate(utc(moment)), places.tls(utc(moment))))


def _near(*, version: str, days: float, renew: bool = False) -> list[Record]:
    leg = {"peer_chain": carried(made(starts=-1000 * DAY, ends=days * DAY))}
    parts = [renewal()] if renew else []
    return talk(
        *(altered(part, leg=leg) for part in (*parts, catalog(), report())), version=version, master_version="8.10.0"
    )


_RENEW = group("renew", only_if="the node's own certificate expires")
_RENEW_CA = (
    on_ca("renew the CA's certificate", only_if="that of the CA expires"),
    on_node(
        "fetch the new one, on every node, before the old one expires",
        "{trust_anew}",
        only_if="that of the CA expires",
        destroys="the CA and the CRL that it has",
    ),
)
_at_openvox_ca = at_openvox_ca(_RENEW, *_RENEW_CA)
"""It renews without being told."""


@rule(
    "B34",
    Severity.WARNING,
    title="certificate expires soon",
    fix=(
        _RENEW,
        on_ca(
            "let agents of 8.2 and later renew it by themselves: `allow-auto-renewal: true` in ca.conf",
            only_if="the node's own certificate expires",
        ),
        *_RENEW_CA,
    ),
    instead=lambda run: clocks_first(run) or _at_openvox_ca(run),
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

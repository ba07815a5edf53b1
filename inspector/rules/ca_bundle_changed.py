"""B04."""

from collections.abc import Iterator

from inspector.model import Severity, Visible
from inspector.protocol import documents as d
from inspector.protocol.kinds import Kind
from inspector.rules import ExchangeCase, On, Statement, places, rule
from inspector.rules.words import brief, some, utc
from inspector.runs.examples import (
    authorities,
    bundle,
    ca,
    catalog,
    crl,
    csr,
    foreign_ca,
    issued,
    report,
    talk,
    together,
)
from inspector.runs.history import master_name


@rule(
    "B04",
    Severity.ERROR,
    On.EXCHANGE,
    at=(Kind.CA_BUNDLE,),
    otherwise="notice if CAs were only added, or renewed with the same key",
    visible=Visible.WIRE,
    title="CA bundle changed",
    remedy="On the CA host compare: `openssl x509 -noout -fingerprint -sha256 -in ca_crt.pem` in the cadir. If the CA "
    "was recreated, every node must enrol again: {enrol_ca}. If the CA kept its key, on a node that refuses it run "
    "only {trust_anew}. If nobody changed the CA, find out which machine answered.",
    source="docs/protocol.md#ca-download",
    good=lambda: [
        together(
            talk(ca(), crl(), csr(), issued(), catalog(), report()),
            talk(
                ca(),
                crl(),
                csr(),
                issued(),
                catalog(),
                report(),
                certname="node2.example",
                address="192.0.2.8",
                after=60,
            ),
        ),
        together(
            talk(ca(), crl(), csr(), issued(), catalog(), report()),
            talk(
                bundle(*(each.certificate for each in authorities())),
                crl(),
                csr(),
                issued(),
                catalog(),
                report(),
                certname="node2.example",
                address="192.0.2.8",
                after=60,
            ),
        ),
    ],
    bad=lambda: [
        together(talk(ca(), crl()), talk(bundle(foreign_ca()), address="192.0.2.8", after=60)),
    ],
    also=("B01",),
)
def ca_bundle_changed(case: ExchangeCase) -> Iterator[Statement]:
    """The master serves a different CA than before. If the CA was recreated, nodes with the old CA refuse it until
    their ssldir is emptied. If nobody recreated it, another machine may be answering in the master's place: this
    download is not verified. A CA that was only added, or renewed with the same key, breaks nothing."""
    given, before = case.step.response, case.ledger.bundle(case.exchange)
    if not isinstance(given, d.Certificates) or before is None:
        return
    now = {each.der: each for each in given.certificates}
    gone = [each for each in before.certificates if each.der not in now]
    new = [each for each in given.certificates if each.der not in {old.der for old in before.certificates}]
    if not gone and not new:
        return
    name, proof = brief(master_name(case.exchange)), (before.seq, case.exchange.seq)
    names = some([f"{each.subject} (SHA-256 {each.fingerprint})" for each in new or gone], 1)
    if not gone:
        yield Statement(
            f"the CA bundle of {name} grew since {utc(before.time)}: {names}",
            proof,
            severity=Severity.NOTICE,
            at=tuple(places.certificate(each.fingerprint) for each in (*new[:3], *gone[:3])),
        )
    elif all(any(each.key == old.key for each in given.certificates) for old in gone):
        yield Statement(
            f"the CA of {name} was renewed since {utc(before.time)}: {names}",
            proof,
            severity=Severity.NOTICE,
            at=tuple(places.certificate(each.fingerprint) for each in (*new[:3], *gone[:3])),
        )
    elif not new:
        yield Statement(
            f"the CA bundle of {name} has changed since {utc(before.time)}: it no longer contains {names}",
            proof,
            at=tuple(places.certificate(each.fingerprint) for each in (*new[:3], *gone[:3])),
        )
    else:
        old = some([f"{each.subject} (SHA-256 {each.fingerprint})" for each in gone], 1)
        yield Statement(
            f"the CA bundle of {name} changed since {utc(before.time)}: it was {old}, it is {names}",
            proof,
            at=tuple(places.certificate(each.fingerprint) for each in (*new[:3], *gone[:3])),
        )

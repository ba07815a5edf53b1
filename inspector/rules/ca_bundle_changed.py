from inspector.rules.kit import *
from inspector.runs.examples import authorities, bundle, foreign_ca
from inspector.runs.history import master_name


@rule(
    "B04",
    Severity.ERROR,
    at=(Kind.CA_BUNDLE,),
    otherwise="notice if CAs were only added, or renewed with the same key",
    title="CA bundle changed",
    fix=(
        on_ca("compare its CA with the one that was served",
              'openssl x509 -noout -fingerprint -sha256 -in "$(puppet config print cacert --section master)"'),
        advice("find out which machine answered", only_if="nobody changed the CA"),
        on_node("fetch the CA anew, where a node refuses it", "{trust_anew}", only_if="the CA kept its key",
                destroys="the CA and the CRL that it has"),
        advice("do what follows for every node", only_if="the CA was recreated"),
        group("enrol_ca", only_if="the CA was recreated"),
    ),
    source="docs/protocol.md#ca-download",
    explains=NO_TRUST,
    good=lambda: [
        together(talk(ca(), crl(), csr(), issued(), catalog(), report()),
                 talk(ca(), crl(), csr(), issued(), catalog(), report(), certname="node2.example",
                      address="192.0.2.8", after=60)),
        together(talk(ca(), crl(), csr(), issued(), catalog(), report()),
                 talk(bundle(*(authority.certificate for authority in authorities())), crl(), csr(), issued(),
                      catalog(), report(), certname="node2.example", address="192.0.2.8", after=60)),
    ],
    bad=lambda: [
        together(talk(ca(), crl()), talk(bundle(foreign_ca()), address="192.0.2.8", after=60)),
    ],
)  # fmt: skip
def ca_bundle_changed(case: ExchangeCase) -> Iterator[Statement]:
    """The master serves a different CA than before. If the CA was recreated, nodes with the old CA refuse it until
    their ssldir is emptied. If nobody recreated it, another machine may be answering in the master's place: this
    download is not verified. A CA that was only added, or renewed with the same key, breaks nothing."""
    bundle, previous = case.step.response, case.ledger.bundle(case.exchange)
    if not isinstance(bundle, d.Certificates) or previous is None:
        return
    current = {certificate.der: certificate for certificate in bundle.certificates}
    removed = [certificate for certificate in previous.certificates if certificate.der not in current]
    added = [
        certificate
        for certificate in bundle.certificates
        if certificate.der not in {old.der for old in previous.certificates}
    ]
    if not removed and not added:
        return
    name, since, severity = brief(master_name(case.exchange)), utc(previous.time), None
    names = _named(added or removed)
    if not removed:
        words, severity = f"the CA bundle of {name} grew since {since}: {names}", Severity.NOTICE
    elif all(any(certificate.key == old.key for certificate in bundle.certificates) for old in removed):
        words, severity = f"the CA of {name} was renewed since {since}: {names}", Severity.NOTICE
    elif not added:
        words = f"the CA bundle of {name} has changed since {since}: it no longer contains {names}"
    else:
        words = f"the CA bundle of {name} changed since {since}: it was {_named(removed)}, it is {names}"
    yield Statement(
        words,
        (previous.seq, case.exchange.seq),
        severity=severity,
        at=tuple(places.certificate(certificate.fingerprint) for certificate in (*added[:3], *removed[:3])),
    )


def _named(certificates: list[d.Certificate]) -> str:
    return some([f"{certificate.subject} (SHA-256 {certificate.fingerprint})" for certificate in certificates], 1)

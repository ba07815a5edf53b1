"""B17 to B20 and B22: signing requests for a name of which the CA has a request or a certificate."""

from inspector.rules.kit import *


@rule(
    "B17",
    Severity.NOTICE,
    at=(Kind.CSR,),
    refused=True,
    otherwise="warning for agents up to 6.3",
    title="the same signing request sent again",
    fix=(group("signing"),),
    source="docs/protocol.md#submitting-the-signing-request; puppet 7.23.0 lib/puppet/ssl/state_machine.rb",
    explains=("B39", "B41"),
    good=lambda: [talk(ca(), crl(), csr(), issued(), catalog(), report())],
    bad=lambda: [talk(ca(), crl(), csr(), not_issued(), csr(status=400, text=REQUESTED), not_issued())],
)
def csr_repeated(case: ExchangeCase) -> Iterator[Statement]:
    """The node's signing request is waiting to be signed, and the node sends it again. From 6.4 on every poll does
    that, and it is normal; up to 6.3 an agent checks for a certificate first and does not repeat the request, so its
    local copy was lost."""
    request = case.step.request
    if not isinstance(request, d.CertificateRequest) or REQUESTED not in case.answer:
        return
    earlier = case.ledger.known(case.name).csrs
    if any(entry.taken and key != request.key for key, entry in earlier.items()):  # another key's request waits: B20
        return
    if case.run.old_engine:
        yield Statement(
            "the agent submitted its request again although it is already waiting: the agent's copy was lost",
            severity=Severity.WARNING,
        )
    else:
        yield Statement("the request was already waiting to be signed; the agent submits it again with each poll")


@rule(
    "B18",
    Severity.ERROR,
    title="signing request for a name that has a certificate",
    fix=(
        group("enrol", only_if="the node was reinstalled or lost its ssldir"),
        advice("give that host a certname of its own", only_if="another host uses this certname"),
    ),
    source="docs/protocol.md#checks-of-a-signing-request; "
    "puppetserver 7.9.5 src/clj/puppetlabs/puppetserver/certificate_authority.clj",
    explains=("B20", "B22", "B23", "B02", "B43", "B39"),
    good=lambda: [
        talk(ca(), crl(), csr(), not_issued(), csr(status=400, text=SIGNED), issued(), catalog(), report()),
        talk(ca(), crl(), csr(), not_issued(), csr(status=400, text=SIGNED)),
    ],
    bad=lambda: [talk(ca(), crl(), csr(status=400, text=SIGNED), issued(key="other"))],
)
def csr_for_signed_name(case: RunCase) -> Iterator[Statement]:
    """The CA already has a certificate for this name and refuses the request. If it was signed a moment ago for this
    same key, the download that follows succeeds and nothing is wrong. Otherwise the node's key differs from the key in
    the certificate: the node lost its key, or two hosts use the name."""
    run = case.run
    for submission in run.csrs:
        if SIGNED not in submission.text or run.signed_meanwhile(submission):
            continue
        answers = [answer for answer in run.certificates if answer.seq > submission.seq and answer.certificate]
        what = ", made for another key than the agent's" if answers else " and refuses the agent's request"
        yield Statement(
            f"the CA has a certificate for this name{what}",
            (submission.seq, *(answer.seq for answer in answers[:1])),
            at=(places.csr("key: "), places.certificate("key: ")),
        )


@rule(
    "B19",
    Severity.ERROR,
    at=(Kind.CSR,),
    refused=True,
    title="signing request for a name whose certificate was revoked",
    fix=(
        group("enrol", only_if="the node is meant to come back"),
        on_node("stop its agent", only_if="it was revoked permanently"),
    ),
    source="docs/protocol.md#checks-of-a-signing-request; "
    "puppetserver 7.9.5 src/clj/puppetlabs/puppetserver/certificate_authority.clj",
    explains=("B43", "B20", "B22", "B39"),
    good=lambda: [talk(ca(), crl(), csr(), not_issued(), csr(status=400, text=SIGNED), issued(), catalog(), report())],
    bad=lambda: [talk(ca(), crl(), csr(status=400, text=REVOKED), not_issued())],
)
def csr_for_revoked_name(case: ExchangeCase) -> Iterator[Statement]:
    """The node's certificate was revoked and is still stored on the CA: until it is cleaned, the CA accepts no new
    request for this name. Revoking alone is not enough, the certificate must be cleaned. If the node is not meant to
    come back, the revocation works as intended."""
    if REVOKED in case.answer:
        yield Statement(
            f"the certificate of {case.name} was revoked but is still on the CA, which refuses a new request"
        )


@rule(
    "B20",
    Severity.ERROR,
    at=(Kind.CSR,),
    otherwise="notice if the CA accepts the request",
    title="signing request with another key for the same name",
    fix=(
        group("compare"),
        group(
            "resubmit",
            only_if="the node lost the key of its first request (it was reinstalled, or its ssldir was deleted)",
        ),
        advice("give one of them its own", only_if="two hosts share the name"),
    ),
    source="docs/protocol.md#keys; docs/protocol.md#checks-of-a-signing-request",
    explains=("B17", "B39", "B41", "B23", "B02"),
    good=lambda: [
        talk(ca(), crl(), csr(), not_issued(), csr(status=400, text=REQUESTED), issued(), catalog(), report())
    ],
    bad=lambda: [
        talk(ca(), crl(), csr(), not_issued(), ca(), crl(), csr(key="other", status=400, text=REQUESTED), not_issued())
    ],
)
def csr_with_another_key(case: ExchangeCase) -> Iterator[Statement]:
    """Two requests for one certname contain different public keys. The node lost its key while its first request was
    waiting, two hosts use one name, or someone is trying to get a certificate in another host's name."""
    request, match = case.step.request, case.step.match
    if not isinstance(request, d.CertificateRequest) or not match:
        return
    history = case.ledger.known(case.name)
    others = [entry for key, entry in history.csrs.items() if key != request.key]
    if not others or (history.issued and ALREADY not in case.answer):
        return
    if ALREADY in case.answer and request.key in history.csrs and history.csrs[request.key].taken:
        return  # what the CA has already is the request with this key
    seqs = (others[-1].last_seq, case.exchange.seq)
    if ALREADY in case.answer:
        yield Statement(f"two keys request a certificate for {match.certname}", seqs, at=places.csr("key: "))
    elif case.accepted:
        # The first request was cleaned from the CA, or the CA allows duplicates.
        yield Statement(
            f"{match.certname} requests a certificate with another key than before, and the CA accepts it",
            seqs,
            severity=Severity.NOTICE,
            at=places.csr("key: "),
        )


@rule(
    "B22",
    Severity.ERROR,
    at=(Kind.CSR,),
    otherwise="notice if the CA accepts the request",
    title="signing request after the certificate was issued",
    fix=(
        group("enrol", only_if="the node was reinstalled or lost its ssldir"),
        advice("give that host a certname of its own", only_if="another host uses this certname"),
    ),
    source="docs/protocol.md#submitting-the-signing-request",
    explains=("B20", "B02"),
    good=lambda: [
        talk(ca(), crl(), csr(), not_issued(), csr(status=400, text=SIGNED), issued(), catalog(), report()),
    ],
    bad=lambda: [
        talk(ca(), crl(), csr(), issued(), catalog(), report(),
             ca(), crl(), csr(key="other", status=400, text=SIGNED), issued()),
    ],
    also=("B45",),
)  # fmt: skip
def csr_after_certificate(case: ExchangeCase) -> Iterator[Statement]:
    """A certificate for this name was downloaded before, and now a signing request for the same name arrives: the node
    lost its disk, or two hosts share the name. If the CA accepts the request, the old certificate was cleaned on the
    CA, and the node is enrolling again."""
    request, match, run = case.step.request, case.step.match, case.run
    if not isinstance(request, d.CertificateRequest) or not match:
        return
    history = case.ledger.known(case.name)
    issued_before = history.issued
    if issued_before is None or (
        not run.certificate and any(certificate.seq == issued_before.seq for certificate in run.certificates)
    ):
        return  # in the same bootstrap: the old certificate does not match the key (B18)
    seq, key = issued_before.seq, issued_before.certificate.key
    used = history.presented is not None and history.presented.certificate.key == key
    if not used and key not in history.csrs:
        return  # nobody is known to have its key: perhaps this agent received it, and discarded it (B18)
    received = any(answer.certificate and answer.certificate.key == request.key for answer in run.certificates)
    if key == request.key and not received:
        return
    if case.accepted and case.exchange.response and case.exchange.response.header("x-puppet-version") is None:
        what = "requests a certificate again"  # an openvox-ca may have ignored it
    elif case.accepted:
        what = "enrols again: the CA accepts a request for a name that had a certificate"
    elif ALREADY in case.answer:
        what = "requests a certificate although one was issued before"
    else:
        return
    yield Statement(
        f"{match.certname} {what}",
        (seq, case.exchange.seq),
        severity=Severity.NOTICE if case.accepted else None,
        at=(places.csr("key: "), places.certificate("key: ")),
    )

"""B33."""

from collections.abc import Iterator

from inspector.model import Severity, Visible
from inspector.rules import On, RunCase, Statement, places, rule
from inspector.rules.trust import agent_certificate, presented_in_run
from inspector.rules.words import brief, utc
from inspector.runs.examples import (
    altered,
    ca,
    carried,
    catalog,
    crl,
    csr,
    issued,
    made,
    not_issued,
    refused,
    report,
    talk,
)


@rule(
    "B33",
    Severity.ERROR,
    On.RUN_END,
    visible=Visible.WIRE,
    title="certificate expired",
    remedy="The node's: {enrol}. The CA's: renew it on the CA, then on every node run {trust_anew}.",
    source="docs/protocol.md#verification-by-agents; puppet 7.23.0 lib/puppet/ssl/ssl_provider.rb",
    good=lambda: [
        talk(ca(), crl(), csr(), issued(), catalog(), report()),
    ],
    bad=lambda: [
        talk(refused("certificate_expired", by="proxy", leg={"peer_chain": carried(made(ends=-60))})),
        talk(*(altered(each, leg={"peer_chain": carried(made(ends=-60))}) for each in (catalog(), report()))),
        talk(ca(), crl(), csr(), not_issued(), issued(made=made(ends=-60))),
    ],
    also=("B01",),
)
def certificate_expired(case: RunCase) -> Iterator[Statement]:
    """A certificate was used, or served, after its expiry date. Every peer that verifies it refuses it: an agent with
    an expired certificate cannot run, and if the CA's certificate has expired, no agent can. If the date is right,
    check the clocks instead."""
    run, found = case.run, dict[tuple[str, float], list[int]]()
    for handshake in run.handshakes:
        agent = agent_certificate(handshake)
        if agent and agent.not_after < handshake.time:
            found.setdefault(
                (f"the certificate of {agent.common_name} expired on {utc(agent.not_after)}", agent.not_after), []
            ).append(handshake.seq)
    presented = presented_in_run(case)
    if presented and presented.certificate.not_after < presented.last_time:
        mine = presented.certificate
        found.setdefault(
            (f"the certificate of {mine.common_name} expired on {utc(mine.not_after)}", mine.not_after), []
        ).append(presented.last_seq)
    for answer in run.certificates:
        given = answer.certificate
        if given and given.not_after < answer.time:
            words = f"the CA issued a certificate of {given.common_name} that expired on {utc(given.not_after)}"
            found.setdefault((words, given.not_after), []).append(answer.seq)
    for bundle in run.cas:
        for each in bundle.items or []:
            if each.is_ca and each.not_after < bundle.time:
                found.setdefault(
                    (f"the CA '{each.subject}' expired on {utc(each.not_after)}", each.not_after), []
                ).append(bundle.seq)
    for (words, date), seqs in found.items():
        yield Statement(brief(words), tuple(seqs), at=(places.certificate(utc(date)), places.tls(utc(date))))

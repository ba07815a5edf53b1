"""B33."""

from inspector.rules.kit import *
from inspector.rules.trust import agent_certificate, presented_in_run
from inspector.runs.examples import refused


@rule(
    "B33",
    Severity.ERROR,
    On.RUN_END,
    visible=Visible.WIRE,
    title="certificate expired",
    fix=(
        on_proxy("check its clock: what follows holds if it is right", "date -u"),
        group("enrol", only_if="the node's own certificate expired"),
        on_ca("renew the CA's certificate", only_if="that of the CA expired"),
        on_node(
            "fetch the new one, on every node",
            "{trust_anew}",
            only_if="that of the CA expired",
            destroys="the CA and the CRL that it has",
        ),
    ),
    source="docs/protocol.md#verification-by-agents; puppet 7.23.0 lib/puppet/ssl/ssl_provider.rb",
    good=lambda: [
        talk(ca(), crl(), csr(), issued(), catalog(), report()),
    ],
    bad=lambda: [
        talk(refused("certificate_expired", by="proxy", leg={"peer_chain": carried(made(ends=-60))})),
        talk(*(altered(part, leg={"peer_chain": carried(made(ends=-60))}) for part in (catalog(), report()))),
        talk(ca(), crl(), csr(), not_issued(), issued(made=made(ends=-60))),
    ],
    also=("B01",),
)
def certificate_expired(case: RunCase) -> Iterator[Statement]:
    """A certificate was used, or served, after its expiry date. Every peer that verifies it refuses it: an agent with
    an expired certificate cannot run, and if the CA's certificate has expired, no agent can. If the date is right,
    check the clocks instead."""
    run, evidence = case.run, dict[tuple[str, float], list[int]]()
    for handshake in run.handshakes:
        agent = agent_certificate(handshake)
        if agent and agent.not_after < handshake.time:
            evidence.setdefault(
                (f"the certificate of {agent.common_name} expired on {utc(agent.not_after)}", agent.not_after), []
            ).append(handshake.seq)
    presented = presented_in_run(case)
    if presented and presented.certificate.not_after < presented.last_time:
        client = presented.certificate
        evidence.setdefault(
            (f"the certificate of {client.common_name} expired on {utc(client.not_after)}", client.not_after), []
        ).append(presented.last_seq)
    for answer in run.certificates:
        issued = answer.certificate
        if issued and issued.not_after < answer.time:
            words = f"the CA issued a certificate of {issued.common_name} that expired on {utc(issued.not_after)}"
            evidence.setdefault((words, issued.not_after), []).append(answer.seq)
    for bundle in run.cas:
        for item in bundle.items or []:
            if item.is_ca and item.not_after < bundle.time:
                evidence.setdefault(
                    (f"the CA '{item.subject}' expired on {utc(item.not_after)}", item.not_after), []
                ).append(bundle.seq)
    for (words, date), seqs in evidence.items():
        yield Statement(brief(words), tuple(seqs), at=(places.certificate(utc(date)), places.tls(utc(date))))

"""B35."""

from inspector.rules.kit import *
from inspector.rules.trust import agent_certificate, presented_in_run
from inspector.runs.examples import refused


@rule(
    "B35",
    Severity.ERROR,
    On.RUN_END,
    visible=Visible.WIRE,
    title="certificate not yet valid",
    fix=(
        on_ca("see whether its clock is right and set by NTP; the same on the master and the node", "timedatectl"),
        advice("set the clock that is wrong by NTP", only_if="one is wrong"),
        group("enrol", only_if="the CA's clock was ahead when it signed"),
    ),
    source="docs/protocol.md#clocks; puppet 7.23.0 lib/puppet/ssl/ssl_provider.rb",
    good=lambda: [
        talk(ca(), crl(), csr(), issued(made=made(starts=-60)), catalog(), report()),
    ],
    bad=lambda: [
        talk(refused("bad_certificate", by="proxy", leg={"peer_chain": carried(made(starts=3600))})),
        talk(ca(), crl(), csr(), not_issued(), issued(made=made(starts=3600))),
        talk(*(altered(part, leg={"peer_chain": carried(made(starts=3600))}) for part in (catalog(), report()))),
    ],
    also=("B01",),
)
def certificate_not_yet_valid(case: RunCase) -> Iterator[Statement]:
    """The certificate's validity begins in the future. CAs backdate certificates by a day, so the clock of the CA that
    signed it is more than a day ahead of this proxy's, or this proxy's clock is behind. Every peer that verifies the
    certificate refuses it."""
    run, evidence = case.run, dict[tuple[str, float], list[int]]()
    for handshake in run.handshakes:
        agent = agent_certificate(handshake)
        if agent and agent.not_before > handshake.time:
            words = f"the certificate of {agent.common_name} is not valid before {utc(agent.not_before)}"
            evidence.setdefault((words, agent.not_before), []).append(handshake.seq)
    presented = presented_in_run(case)
    if presented and presented.certificate.not_before > presented.last_time:
        client = presented.certificate
        words = f"the certificate of {client.common_name} is not valid before {utc(client.not_before)}"
        evidence.setdefault((words, client.not_before), []).append(presented.last_seq)
    for answer in run.certificates:
        issued = answer.certificate
        if issued and issued.not_before > answer.time:
            words = (
                f"the CA issued a certificate of {issued.common_name} that is not valid before {utc(issued.not_before)}"
            )
            evidence.setdefault((words, issued.not_before), []).append(answer.seq)
    for bundle in run.cas:
        for item in bundle.items or []:
            if item.is_ca and item.not_before > bundle.time:
                evidence.setdefault(
                    (f"the CA '{item.subject}' is not valid before {utc(item.not_before)}", item.not_before), []
                ).append(bundle.seq)
    for (words, date), seqs in evidence.items():
        yield Statement(brief(words), tuple(seqs), at=(places.certificate(utc(date)), places.tls(utc(date))))

from inspector.protocol.certificates import printed_serial
from inspector.rules.kit import *
from inspector.rules.trust import agent_certificate, leaf, presented_in_run, serial

GENERAL_ALERTS = ("certificate_unknown", "bad_certificate", None)
"""Alerts that a master in Java sends for any certificate that it refuses."""


def _with(serial: int) -> list[ExamplePart]:
    leg = {"peer_chain": carried(made(serial=serial))}
    return [altered(part, leg=leg) for part in (catalog(), report())]


@rule(
    "T05",
    Severity.ERROR,
    visible=Visible.HANDSHAKE,
    title="revoked certificate in use",
    fix=(
        group("enrol", only_if="the node should continue to work"),
        on_node("stop its agent", only_if="the node was retired"),
        on_master("see where its CRL is", "puppet config print cacrl hostcrl --section master",
                  only_if="the master still accepts the certificate"),
        on_master("copy the CA's ca_crl.pem there", only_if="the master still accepts the certificate"),
        on_master("restart it, if it is older than 5.1", only_if="the master still accepts the certificate"),
    ),
    source="docs/protocol.md#client-certificates-at-the-master; docs/protocol.md#crls",
    explains=("T06", "T08", "T09", "S02"),
    without_catalog=NO_CATALOG_NO_REPORT,
    good=lambda: [
        together(talk(ca(), crl(revoked=[4711]), address="192.0.2.8"), talk(*_with(4712), after=60)),
    ],
    bad=lambda: [
        talk(refused("certificate_revoked", by="proxy", certificate=True,
                     culprits=("Certificate 'CN=node1.example' is revoked",))),
        talk(refused("certificate_revoked", by="agent")),
        together(talk(ca(), crl(revoked=[4711]), address="192.0.2.8"),
                 talk(*_with(4711), after=60)),
    ],
)  # fmt: skip
def certificate_revoked(case: RunCase) -> Iterator[Statement]:
    """A certificate that the CA has revoked is still in use. An agent with a revoked certificate is refused in every
    handshake: none of its requests arrives. If a master accepts it, the master's CRL is out of date. If the revoked
    certificate is the one presented to agents, all agents refuse it."""
    run, evidence = case.run, dict[str, list[int]]()
    for handshake in run.handshakes:
        revoked = handshake.alert == "certificate_revoked" or any(
            "is revoked" in culprit for culprit in handshake.culprits
        )
        if revoked and handshake.alert_by == "agent":
            server = leaf(handshake.leg.own_chain)
            owner = f", {server.subject} (serial {serial(server)})," if server else ""
            evidence.setdefault(f"the agent says that the certificate presented to it{owner} is revoked", []).append(
                handshake.seq
            )
            continue
        client = agent_certificate(handshake)
        revocation = case.ledger.revoked(client) if client else None
        likely = handshake.leg.side == "master" and handshake.alert in GENERAL_ALERTS and revocation is not None
        if revoked and handshake.leg.side == "master" and handshake.alert_by == "proxy":
            evidence.setdefault(f"the master's certificate is refused: {handshake.reason}", []).append(handshake.seq)
        elif revoked or likely:
            owner = (
                f"the certificate of {client.common_name} (serial {serial(client)})"
                if client
                else "the agent's certificate"
            )
            evidence.setdefault(f"{owner} is revoked: the {handshake.alert_by or 'master'} refuses it", []).append(
                handshake.seq
            )
    presented = presented_in_run(case)
    revocation = case.ledger.revoked(presented.certificate) if presented else None
    if presented and revocation and presented.accepted and presented.accepted > revocation.seq:
        client = presented.certificate
        words = (
            f"the certificate of {client.common_name} (serial {serial(client)}) is revoked by the CRL of "
            f"{utc(revocation.last_update)}, and the master accepts it"
        )
        evidence[words] = [revocation.seq, presented.accepted]
    number = printed_serial(presented.certificate.serial) if presented else "serial numbers"
    for words, seqs in evidence.items():
        yield Statement(
            brief(words), tuple(seqs), at=(places.REFUSAL, places.crl(number), places.tls("presented by the agent"))
        )

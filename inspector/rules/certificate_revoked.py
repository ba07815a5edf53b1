from inspector.model import Handshake
from inspector.protocol.certificates import printed_serial
from inspector.rules.kit import *
from inspector.rules.trust import agent_certificate, leaf, presented_in_run, serial

GENERAL_ALERTS = ("certificate_unknown", "bad_certificate", None)
"""Alerts that a master in Java sends for any certificate that it refuses."""


def _with(serial: int) -> list[ExamplePart]:
    leg = {"peer_chain": carried(made(serial=serial))}
    return [altered(part, leg=leg) for part in (catalog(), report())]


def _of_master(handshake: Handshake) -> bool:
    """Whether the revoked certificate is the master's, or the one presented as the master's."""
    by_agent = handshake.alert_by == "agent" and handshake.alert == "certificate_revoked"
    master = handshake.leg.side == "master" and handshake.alert_by == "proxy"
    return by_agent or (master and any("is revoked" in culprit for culprit in handshake.culprits))


def _accepting(run: Run) -> str:
    """Return which master answered a run, as far as one is known that is not the only one."""
    names = [server.name for server in run.answering.values() if server.certificate]
    return " or ".join(names) if names else "the master"


def _fix_of_master(run: Run) -> Fix | None:
    """Return the fix for a run in which not the node's certificate is revoked: the node must not be enrolled."""
    if not any(map(_of_master, run.handshakes)):
        return None
    return (
        advice("find out who revoked the certificate of the master (or of the proxy), and why"),
        group("renew_master", only_if="it is the master's, and it should continue to work"),
        on_proxy("give the proxy another certificate; this says how", "puppet-inspector provision",
                 only_if="it is the proxy's own"),
    )  # fmt: skip


@rule(
    "T05",
    Severity.ERROR,
    visible=Visible.HANDSHAKE,
    title="revoked certificate in use",
    fix=(
        group("revoked"),
        on_master("see where its CRL is", "puppet config print cacrl hostcrl --section master",
                  only_if="the master still accepts the certificate"),
        on_master("copy the CA's ca_crl.pem there", only_if="the master still accepts the certificate"),
        on_master("restart it, if it is older than 5.1", only_if="the master still accepts the certificate"),
    ),
    instead=_fix_of_master,
    source="docs/protocol.md#client-certificates-at-the-master; docs/protocol.md#crls",
    explains=("T06", "T08", "T09", "T28", "S02"),
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
            f"{utc(revocation.last_update)}, and {_accepting(case.run)} accepts it"
        )
        evidence[words] = [revocation.seq, presented.accepted]
    number = printed_serial(presented.certificate.serial) if presented else "serial numbers"
    for words, seqs in evidence.items():
        yield Statement(
            brief(words), tuple(seqs), at=(places.REFUSAL, places.crl(number), places.tls("presented by the agent"))
        )

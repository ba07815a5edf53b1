"""T05."""

from collections.abc import Iterator

from inspector.model import Severity, Visible
from inspector.rules import On, RunCase, Statement, places, rule
from inspector.rules.trust import agent_certificate, leaf, presented_in_run, serial
from inspector.rules.words import brief, utc
from inspector.runs.examples import (
    ExamplePart,
    altered,
    ca,
    carried,
    catalog,
    crl,
    made,
    refused,
    report,
    talk,
    together,
)

UNSAID = ("certificate_unknown", "bad_certificate", None)
"""Alerts that a master in Java sends for any certificate that it refuses."""


def _with(serial: int) -> list[ExamplePart]:
    leg = {"peer_chain": carried(made(serial=serial))}
    return [altered(each, leg=leg) for each in (catalog(), report())]


@rule(
    "T05",
    Severity.ERROR,
    On.RUN_END,
    visible=Visible.HANDSHAKE,
    title="revoked certificate in use",
    remedy="If the node should continue to work: {enrol}. If it was retired: stop its agent. If the master still "
    "accepts it: copy the CA's ca_crl.pem to the master (`puppet config print cacrl hostcrl --section master`), and "
    "restart the server if it is older than 5.1.",
    source="docs/protocol.md#client-certificates-at-the-master; docs/protocol.md#crls",
    good=lambda: [
        together(talk(ca(), crl(revoked=[4711]), address="192.0.2.8"), talk(*_with(4712), after=60)),
    ],
    bad=lambda: [
        talk(
            refused(
                "certificate_revoked",
                by="proxy",
                certificate=True,
                culprits=("Certificate 'CN=node1.example' is revoked",),
            )
        ),
        talk(refused("certificate_revoked", by="agent")),
        together(talk(ca(), crl(revoked=[4711]), address="192.0.2.8"), talk(*_with(4711), after=60)),
    ],
    also=("B01",),
)
def certificate_revoked(case: RunCase) -> Iterator[Statement]:
    """A certificate that the CA has revoked is still in use. An agent with a revoked certificate is refused in every
    handshake: none of its requests arrives. If a master accepts it, the master's CRL is out of date. If the revoked
    certificate is the one presented to agents, all agents refuse it."""
    run, found = case.run, dict[str, list[int]]()
    for handshake in run.handshakes:
        told = handshake.alert == "certificate_revoked" or any("is revoked" in each for each in handshake.culprits)
        if told and handshake.alert_by == "agent":
            shown = leaf(handshake.leg.own_chain)
            what = f", {shown.subject} (serial {serial(shown)})," if shown else ""
            found.setdefault(f"the agent says that the certificate presented to it{what} is revoked", []).append(
                handshake.seq
            )
            continue
        mine = agent_certificate(handshake)
        listed = case.ledger.revoked(mine) if mine else None
        unsaid = handshake.leg.side == "master" and handshake.alert in UNSAID and listed is not None
        if told and handshake.leg.side == "master" and handshake.alert_by == "proxy":
            found.setdefault(f"the master's certificate is refused: {handshake.reason}", []).append(handshake.seq)
        elif told or unsaid:
            who = (
                f"the certificate of {mine.common_name} (serial {serial(mine)})" if mine else "the agent's certificate"
            )
            found.setdefault(f"{who} is revoked: the {handshake.alert_by or 'master'} refuses it", []).append(
                handshake.seq
            )
    presented = presented_in_run(case)
    listed = case.ledger.revoked(presented.certificate) if presented else None
    if presented and listed and presented.accepted and presented.accepted > listed.seq:
        mine = presented.certificate
        words = (
            f"the certificate of {mine.common_name} (serial {serial(mine)}) is revoked by the CRL of "
            f"{utc(listed.last_update)}, and the master accepts it"
        )
        found[words] = [listed.seq, presented.accepted]
    number = f"0x{presented.certificate.serial:04X}" if presented else "serial numbers"
    for words, seqs in found.items():
        yield Statement(
            brief(words),
            tuple(seqs),
            at=(places.REFUSAL, places.crl(number), places.tls("presented by the agent")),
        )

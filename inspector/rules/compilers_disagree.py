from inspector.model import Handshake
from inspector.rules.kit import *
from inspector.rules.trust import agent_certificate
from inspector.runs.servers import name_of

_REVOKED = "certificate_revoked"


def _refused(alert: str) -> ExamplePart:
    """The first compiler refuses the certificate with which the proxy comes on the agent's behalf."""
    leg = {"side": "master", "own_chain": carried(made()), "peer_chain": answering_chain("c1.example")}
    return refused(alert, by="master", leg=leg)


@rule(
    "S34",
    Severity.ERROR,
    title="one compiler refuses the certificate that another accepts",
    otherwise="warning if it is revoked: the one that accepts it is wrong",
    fix=(
        on_master("see on both when their CRL was made",
                  'openssl crl -noout -lastupdate -in "$(puppet config print hostcrl --section master)"'),
        on_master("see on both which CA they know",
                  'openssl x509 -noout -subject -enddate -in "$(puppet config print localcacert --section master)"'),
        on_master("copy the CA's ca_crt.pem and ca_crl.pem to the one that has older ones, and restart it"),
    ),
    source="docs/protocol.md#several-masters; docs/protocol.md#client-certificates-at-the-master",
    explains=("T06", "T09", "T28"),
    also=("T05", "T09", "T28"),
    good=lambda: [
        talk(*answered_by("c1.example", plugins()), *answered_by("c2.example", catalog(), report())),
    ],
    bad=lambda: [
        talk(_refused(_REVOKED), *answered_by("c2.example", plugins(), catalog(), report())),
        talk(*answered_by("c2.example", plugins()), _refused("unknown_ca"), *answered_by("c2.example", catalog())),
    ],
)  # fmt: skip
def compilers_disagree(case: RunCase) -> Iterator[Statement]:
    """Compilers of one site verify agents with different files: the CA's certificates and its CRL are copied to each by
    hand, and one has older ones. Where the balancer sends the agent decides whether its request is answered. A node
    that was revoked gets its catalogs on, from the one whose CRL is older; a node that was just signed is refused by
    the one that does not know its CA."""
    for handshake in case.run.handshakes:
        found = _refusing(handshake)
        if found is None:
            continue
        revoked = handshake.alert == _REVOKED or any("is revoked" in culprit for culprit in handshake.culprits)
        accepting = [
            server
            for server in case.run.answering.values()
            if found not in (server.name, *server.places)
            # One that answered before may have had the same CRL.
            and (server.last > handshake.seq or not revoked)
            and not {*server.phases} <= {Phase.CERTIFICATES, Phase.OTHER}
        ]
        if not accepting:
            continue
        client = agent_certificate(handshake)
        why = f" ({handshake.alert or handshake.reason})"
        refusing = found if handshake.leg.side == "master" else f"the proxy at {found}"
        yield Statement(
            f"{accepting[0].name} accepts the certificate of {client.common_name if client else case.name}, which "
            f"{refusing} refuses{why}: "
            + ("the CRL of the first one is older" if revoked else "the other has other CA certificates"),
            (handshake.seq, accepting[0].last),
            at=(places.REFUSAL, places.tls("presented by the master")),
            severity=Severity.WARNING if revoked else None,
        )
        return


def _refusing(handshake: Handshake) -> str | None:
    """Return who refused the agent's certificate: a master by its name, a proxy by its place; None if it was not
    refused, or by the only proxy that there is."""
    known = handshake.alert in (_REVOKED, "unknown_ca") or any("revoked" in culprit for culprit in handshake.culprits)
    if not known:
        return None
    if handshake.leg.side == "master" and handshake.alert_by == "master":
        return name_of(handshake.leg)
    if handshake.leg.side == "agent" and handshake.alert_by == "proxy" and handshake.leg.place:
        return handshake.leg.place
    return None

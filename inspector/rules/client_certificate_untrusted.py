from inspector.rules.kit import *
from inspector.rules.trust import agent_certificate

_UNKNOWN = (
    "cannot be found locally",
    "unable to get local issuer",
    "self signed certificate",
    "self-signed certificate",
    "Invalid signature for certificate",
)
_WORDS = "certificate verify failed [unable to get local issuer certificate for CN=node1.example]"


@rule(
    "T06",
    Severity.ERROR,
    visible=Visible.HANDSHAKE,
    title="agent's certificate issued by another CA",
    fix=(group("enrol_ca", only_if="the node moved here from another installation, or the CA was recreated"),),
    source="docs/protocol.md#client-certificates-at-the-master",
    explains=("T09", "T28"),
    good=lambda: [talk(catalog(), report()), talk(refused(None, by=None, reason="the agent left", certificate=True))],
    bad=lambda: [
        talk(refused("unknown_ca", by="proxy", leg={"peer_chain": carried(made(foreign=True))}, culprits=(_WORDS,))),
        talk(
            refused("unknown_ca", by="master", leg={"side": "master", "own_chain": carried(made()), "peer_chain": ()})
        ),
    ],
)
def client_certificate_untrusted(case: HandshakeCase) -> Iterator[Statement]:
    """The agent presents a certificate that was not issued by this site's CA: the node comes from another installation,
    or the CA was recreated and the node still has its old certificate. None of its requests arrives."""
    handshake = case.handshake
    if handshake.alert_by not in ("proxy", "master"):
        return
    if handshake.leg.side == "master" and handshake.alert_by == "proxy":
        return  # about the master's certificate
    culprits = [culprit for culprit in handshake.culprits if any(words in culprit for words in _UNKNOWN)]
    if handshake.alert != "unknown_ca" and not culprits:
        return
    client = agent_certificate(handshake)
    if client is None:
        yield Statement(f"the {handshake.alert_by} does not know the CA of the agent's certificate")
    else:
        yield Statement(
            brief(
                f"the {handshake.alert_by} does not know the CA '{client.issuer}' of {client.common_name}'s certificate"
            ),
            at=places.tls(f"issuer: {client.issuer}"),
        )

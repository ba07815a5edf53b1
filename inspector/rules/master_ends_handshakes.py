from inspector.rules.connection_errors import closed, place
from inspector.rules.kit import *
from inspector.runs.examples import refused


@rule(
    "T22",
    Severity.ERROR,
    title="the connection to the master ended during the TLS handshake",
    fix=(
        on_proxy("see whether the connection is ended", "openssl s_client -connect <address>:<port> </dev/null"),
        on_master("see the same there", "openssl s_client -connect <address>:<port> </dev/null"),
        advice(
            "look at the firewall or load balancer in between: none of its masters is up, or it does not admit "
            "the proxy's "
            "address",
            only_if="it works only there",
        ),
        on_master("read its log", only_if="it is ended there as well"),
    ),
    source="docs/protocol.md#failed-connections",
    good=lambda: [
        talk(plugins(), catalog(), report()),
        talk(refused(None, by=None, reason="the connection was reset")),
    ],
    bad=lambda: [
        talk(refused(None, by=None, reason="connection closed", leg={"side": "master", "secured": None})),
        talk(refused(None, by=None, reason="the connection was reset", leg={"side": "master", "secured": None})),
        talk(
            refused(
                None,
                by=None,
                reason="the server closed the connection",
                leg={"sni": MASTER, "tunnelled": True, "secured": None},
            )
        ),
    ],
)
def master_ends_handshakes(case: HandshakeCase) -> Iterator[Statement]:
    """TCP was connected, but the other side closed or reset the connection before TLS was finished, and gave no reason.
    A master that refuses a certificate sends an alert; so most often it is not the master that ended this, but
    something in front of it."""
    handshake, leg = case.handshake, case.handshake.leg
    if not (leg.side == "master" or leg.tunnelled) or leg.secured is not None or handshake.alert or handshake.culprits:
        return
    if closed(handshake.reason):
        where = brief(leg.sni or "") if leg.tunnelled else place(leg)
        yield Statement(f"{where} ended the TLS handshake without a reason", at=places.REFUSAL)

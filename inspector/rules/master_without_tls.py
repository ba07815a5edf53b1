"""T21 and T22: TLS handshakes that the master's side does not take part in."""

from inspector.model import Handshake
from inspector.rules.connection_errors import closed, place
from inspector.rules.kit import *

# OpenSSL's reasons for a first record that is none, and mitmproxy's sentence for them.
_NO_TLS = regex.compile(
    r"does not speak TLS|wrong version number|packet length too long|http request|record layer failure"
    r"|unknown protocol",
    regex.IGNORECASE,
)


@rule(
    "T21",
    Severity.ERROR,
    otherwise="warning if another server of `server_list` was up",
    title="what answers for the master speaks no TLS",
    fix=(
        on_proxy("see what answers there", "curl -sv http://<address>:<port>/"),
        on_proxy(
            "correct the port: puppet_master, or with `run` `serverport` in puppet.conf, if it is another service's"
        ),
        advice("let the load balancer in front of the master pass TLS through, if it is one"),
    ),
    source="docs/protocol.md#failed-connections",
    explains=("T09", "S21", "F03", "P01"),
    without_catalog=NO_CATALOG_NO_REPORT,
    event=True,
    good=lambda: [
        talk(plugins(), catalog(), report()),
        talk(refused("protocol_version", reason="wrong version number")),
    ],
    bad=lambda: [
        talk(refused(None, by=None, reason="wrong version number", leg={"side": "master"})),
        talk(refused(None, by=None, reason="The remote server does not speak TLS.", leg={"side": "master"})),
        talk(refused(None, by=None, reason="wrong version number", leg={"sni": MASTER, "tunnelled": True})),
    ],
)
def master_speaks_no_tls(case: HandshakeCase) -> Iterator[Statement]:
    """The master's address answered the TLS handshake with something else, for instance an error page in plain HTTP. It
    is another service's port, or a load balancer that expects plain HTTP."""
    handshake = case.handshake
    if _towards_master(handshake) and handshake.alert is None and _NO_TLS.search(handshake.reason):
        yield Statement(f"{_where(handshake)} does not speak TLS, so it is no Puppet master's port", at=places.REFUSAL)


@rule(
    "T22",
    Severity.ERROR,
    otherwise="warning if another server of `server_list` was up",
    title="the connection to the master ended during the TLS handshake",
    fix=(
        on_proxy("see whether the connection is ended", "openssl s_client -connect <address>:<port> </dev/null"),
        on_master("see the same there", "openssl s_client -connect <address>:<port> </dev/null"),
        advice(
            "look at the firewall or load balancer in between: none of its masters is up, or it does not admit the "
            "proxy's address",
            only_if="it works only there",
        ),
        on_master("read its log", only_if="it is ended there as well"),
    ),
    source="docs/protocol.md#failed-connections",
    explains=("T09", "S21", "F03", "P01"),
    without_catalog=NO_CATALOG_NO_REPORT,
    event=True,
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
    handshake = case.handshake
    unexplained = handshake.leg.secured is None and not handshake.alert and not handshake.culprits
    if _towards_master(handshake) and unexplained and closed(handshake.reason):
        yield Statement(f"{_where(handshake)} ended the TLS handshake without a reason", at=places.REFUSAL)


def _towards_master(handshake: Handshake) -> bool:
    return handshake.leg.side == "master" or handshake.leg.tunnelled


def _where(handshake: Handshake) -> str:
    return brief(handshake.leg.sni or "") if handshake.leg.tunnelled else place(handshake.leg)

from inspector.rules.connection_errors import place
from inspector.rules.kit import *
from inspector.runs.examples import refused

# OpenSSL's reasons for a first record that is none, and mitmproxy's sentence for them.
_NO_TLS = regex.compile(
    r"does not speak TLS|wrong version number|packet length too long|http request|record layer failure"
    r"|unknown protocol",
    regex.IGNORECASE,
)


@rule(
    "T21",
    Severity.ERROR,
    title="what answers for the master speaks no TLS",
    fix=(
        on_proxy("see what answers there", "curl -sv http://<address>:<port>/"),
        on_proxy(
            "correct the port: puppet_master, or with `run` `serverport` in puppet.conf, if it is another service's"
        ),
        advice("let the load balancer in front of the master pass TLS through, if it is one"),
    ),
    source="docs/protocol.md#failed-connections",
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
    handshake, leg = case.handshake, case.handshake.leg
    if (leg.side == "master" or leg.tunnelled) and handshake.alert is None and _NO_TLS.search(handshake.reason):
        where = brief(leg.sni or "") if leg.tunnelled else place(leg)
        yield Statement(f"{where} does not speak TLS, so it is no Puppet master's port", at=places.REFUSAL)

from inspector.rules.connection_errors import Failure, failure, since
from inspector.rules.kit import *

_PROXY = "the HTTP proxy proxy.example:3128"


@rule(
    "T27",
    Severity.ERROR,
    at=(Kind.CONNECTION, *RUN, *BOOTSTRAP),
    broken=True,
    title="the HTTP proxy on the way to the master does not connect",
    fix=(
        on_node("see whether its settings name the proxy", "puppet config print http_proxy_host http_proxy_port"),
        on_node("see whether the environment names one, which comes first", "env | grep -i _proxy"),
        advice(
            "put the master's name into `no_proxy`: in puppet.conf's section main, or in the environment where that "
            "names the proxy",
            only_if="the node reaches the master directly",
        ),
        advice("start the proxy, or correct its address", only_if="the proxy cannot be reached"),
        advice("let the proxy connect with the master's port: most allow 443 only", only_if="it answers 403"),
        advice("set `http_proxy_user` and `http_proxy_password` in puppet.conf", only_if="it answers 407"),
        advice("see in the proxy's log why it cannot reach the master", only_if="it answers 502, 503 or 504"),
    ),
    source="docs/protocol.md#failed-connections",
    good=lambda: [talk(plugins(), catalog(), report())],
    bad=lambda: [
        talk(unconnected(ca(), f"cannot connect to the master m:8140: {_PROXY} cannot be reached: Connection refused")),
        talk(
            plugins(),
            unconnected(
                catalog(), f"cannot connect to the master m:8140: {_PROXY} does not connect with m:8140: 403 Forbidden"
            ),
        ),
    ],
    also=("R20", "R03"),
)
def site_proxy_refuses(case: ExchangeCase) -> Iterator[Statement]:
    """The agent's settings or its environment name an HTTP proxy, and that one made no connection with the master: it
    does not run, it wants a name and a password, it allows no connection with this port, or it cannot reach the master
    itself. The agent prints the proxy's answer (`403 "Forbidden"`), which looks as if it were the master's."""
    if failure(case.exchange) is Failure.SITE_PROXY:
        words = (case.exchange.error or "").partition(": ")[2]
        yield Statement(brief(f"{words}{since(case)}"), at=places.NO_ANSWER)

from inspector.rules.connection_errors import Failure, failure, since, target
from inspector.rules.kit import *


@rule(
    "T20",
    Severity.ERROR,
    at=(Kind.CONNECTION, *RUN, *BOOTSTRAP),
    broken=True,
    title="the master cannot be reached over the network",
    fix=(
        on_proxy("see whether the address answers", "ping -c 3 <address>"),
        on_proxy("see whether the network has a route to it", "ip route get <address>"),
        on_proxy("correct puppet_master, or with `run` `server` in puppet.conf", only_if="it has the wrong address"),
        advice(
            "see whether the master's host is up, and whether a firewall drops the packets",
            only_if="it has the right one",
        ),
    ),
    source="docs/protocol.md#failed-connections",
    good=lambda: [talk(plugins(), catalog(), report())],
    bad=lambda: [
        talk(unconnected(ca(), "[Errno 113] Connect call failed ('192.0.2.1', 8140)")),
        talk(unconnected(plugins(), "cannot connect to the master 192.0.2.1:8140: Connection timed out")),
    ],
    also=("R20", "R03"),
)
def master_unreachable(case: ExchangeCase) -> Iterator[Statement]:
    """Packets to the master's address got no answer, or the network reports that there is no way to it. The agent waits
    meanwhile, and gives up before the proxy does if packets are dropped."""
    if failure(case.exchange) is Failure.UNREACHABLE:
        yield Statement(
            f"{brief(target(case.exchange))} cannot be reached from where the proxy runs{since(case)}",
            at=places.NO_ANSWER,
        )

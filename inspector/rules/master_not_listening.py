from inspector.rules.connection_errors import Failure, failure, since, target
from inspector.rules.kit import *


@rule(
    "T18",
    Severity.ERROR,
    at=(Kind.CONNECTION, *RUN, *BOOTSTRAP),
    broken=True,
    title="nothing listens at the master's address",
    fix=(
        on_master("see whether it runs", "systemctl status puppetserver"),
        on_master("start it", "systemctl start puppetserver", only_if="it does not"),
        on_master("see where it listens", "ss -ltn", only_if="it does"),
        on_proxy(
            "correct its address: puppet_master, or with `run` `server` and `serverport` in puppet.conf",
            only_if="it listens elsewhere",
        ),
        advice("see whether a firewall refuses connections", only_if="it listens there"),
    ),
    source="docs/protocol.md#failed-connections",
    good=lambda: [
        talk(plugins(), catalog(), report()),
        talk(plugins(), unanswered(catalog()), catalog(), report()),
    ],
    bad=lambda: [
        talk(unconnected(ca(), "[Errno 111] Connect call failed ('192.0.2.1', 8140)")),
        talk(plugins(), unconnected(catalog(), "cannot connect to the master m:8140: Connection refused")),
    ],
    also=("R20", "R03"),
)
def master_not_listening(case: ExchangeCase) -> Iterator[Statement]:
    """The master's host refused the TCP connection: no program accepts connections at this address and port. Most often
    the master is stopped, still starting, or was killed; or the proxy has the wrong address or port. The agent got an
    error of the proxy's (502), and without a proxy it would have said "Connection refused"."""
    if failure(case.exchange) is Failure.REFUSED:
        yield Statement(
            f"{brief(target(case.exchange))} refused the connection: no master listens there{since(case)}",
            at=places.NO_ANSWER,
        )

from inspector.rules.connection_errors import Failure, failure, since, target
from inspector.rules.kit import *


@rule(
    "T19",
    Severity.ERROR,
    at=(Kind.CONNECTION, *RUN, *BOOTSTRAP),
    broken=True,
    title="the master's name does not resolve",
    fix=(
        on_proxy("see what the name resolves to", "getent hosts <name>"),
        on_proxy(
            "correct the name (puppet_master, or with `run` `server` in puppet.conf), or this host's DNS or /etc/hosts"
        ),
    ),
    source="docs/protocol.md#failed-connections",
    good=lambda: [talk(plugins(), catalog(), report())],
    bad=lambda: [
        talk(unconnected(ca(), "[Errno -2] Name or service not known")),
        talk(
            unconnected(plugins(), "cannot connect to the master m.example:8140: Temporary failure in name resolution")
        ),
    ],
    also=("R20", "R03"),
)
def master_name_unknown(case: ExchangeCase) -> Iterator[Statement]:
    """On the proxy's host the master's name has no address, so no connection was made. The name in puppet_master (with
    `run`: in puppet.conf) is misspelled, or the DNS does not know it or does not answer."""
    if failure(case.exchange) is Failure.UNKNOWN_NAME:
        name = target(case.exchange).rpartition(":")[0]
        what = f"the name {brief(name)}" if name else "the master's name"
        yield Statement(f"{what} does not resolve where the proxy runs{since(case)}", at=places.NO_ANSWER)

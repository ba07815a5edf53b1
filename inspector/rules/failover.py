from inspector.rules.kit import *

PROBE = "/status/v1/simple/server"


@rule(
    "S21",
    Severity.WARNING,
    at=(Kind.SERVER_STATUS,),
    title="a server in the agent's server_list is down",
    fix=(
        on_node("see which servers the agent tries", "puppet config print server_list --section agent"),
        on_master("see whether the one that is down runs", "systemctl status puppetserver"),
        on_master("read its log"),
    ),
    source="docs/protocol.md#server_list",
    good=lambda: [
        talk(asked(PROBE, b"running", media="text/plain"), plugins(), catalog(), report()),
        talk(asked(PROBE, b"not found", status=404, media="text/plain"), plugins(), catalog(), report()),
    ],
    bad=lambda: [
        talk(asked(PROBE, b"starting", status=503, media="text/plain"), plugins(), catalog(), report()),
        talk(unanswered(asked(PROBE, b"")), plugins(), catalog(), report()),
    ],
)
def failover(case: ExchangeCase) -> Iterator[Statement]:
    """Before its run the agent asks the servers in its server_list whether they are up. This one answered that it is
    not, or did not answer, so the agent tries the next; if no server is up there is no run."""
    exchange, status = case.exchange, case.status
    if exchange.request.header("x-puppet-version") is None:  # a probe by a load balancer or a monitoring system
        return
    silent = status is None and "disconnected" not in (exchange.error or "")
    if silent or (status is not None and status >= 500):
        server = exchange.request.header("host") or exchange.agent.sni or "the master"
        yield Statement(f"{brief(server)} {'gave no answer' if silent else f'answered {status}'} to the status check")

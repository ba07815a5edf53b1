"""T18, T19, T20 and T27: why there was no connection to the master."""

from inspector.rules.connection_errors import Failure, failure, since, target, unresolved
from inspector.rules.kit import *
from inspector.rules.puppet_commands import safe_name


def _fix_of_name(name: str) -> Fix:
    """Return the fix for a name that does not resolve."""
    return (
        on_proxy("see what the name resolves to", f"getent hosts {name}"),
        on_proxy(
            "correct the name (puppet_master, or with `run` `server` in puppet.conf), or this host's DNS or /etc/hosts"
        ),
    )


def _fix_of_this_name(run: Run) -> Fix | None:
    """Return the fix with the name that a run's last request was for."""
    names = (safe_name(unresolved(failed), "") for failed in reversed(run.unanswered))
    return next((_fix_of_name(name) for name in names if name), None)


@rule(
    "T18",
    Severity.ERROR,
    at=(Kind.CONNECTION, *RUN, *BOOTSTRAP),
    broken=True,
    otherwise="warning if another server of `server_list` was up",
    title="nothing listens at the master's address",
    fix=(
        on_master("see whether it runs", "systemctl status puppetserver"),
        on_master("start it", "systemctl start puppetserver", only_if="it does not"),
        on_master("see where it listens", "ss -ltn", only_if="it does"),
        on_proxy(
            "correct its address: puppet_master, or with `run` `server_list`, `server` and `serverport` in puppet.conf",
            only_if="it listens elsewhere",
        ),
        advice("see whether a firewall refuses connections", only_if="it listens there"),
    ),
    source="docs/protocol.md#failed-connections",
    explains=("S21", "F03", "P01"),
    without_catalog=NO_CATALOG_NO_REPORT,
    event=True,
    good=lambda: [talk(plugins(), catalog(), report()), talk(plugins(), unanswered(catalog()), catalog(), report())],
    bad=lambda: [
        talk(unconnected(ca(), "[Errno 111] Connect call failed ('192.0.2.1', 8140)")),
        talk(plugins(), unconnected(catalog(), "cannot connect to the master m:8140: Connection refused")),
    ],
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


@rule(
    "T19",
    Severity.ERROR,
    at=(Kind.CONNECTION, *RUN, *BOOTSTRAP),
    broken=True,
    otherwise="warning if another server of `server_list` was up",
    title="the master's name does not resolve",
    fix=_fix_of_name("<name>"),
    instead=_fix_of_this_name,
    source="docs/protocol.md#failed-connections",
    explains=("S21", "F03", "P01"),
    without_catalog=NO_CATALOG_NO_REPORT,
    event=True,
    good=lambda: [talk(plugins(), catalog(), report())],
    bad=lambda: [
        talk(unconnected(ca(), "[Errno -2] Name or service not known")),
        talk(
            unconnected(plugins(), "cannot connect to the master m.example:8140: Temporary failure in name resolution")
        ),
    ],
)
def master_name_unknown(case: ExchangeCase) -> Iterator[Statement]:
    """On the proxy's host the master's name has no address, so no connection was made. The name in puppet_master (with
    `run`: in puppet.conf) is misspelled, or the DNS does not know it or does not answer."""
    if failure(case.exchange) is Failure.UNKNOWN_NAME:
        name = target(case.exchange).rpartition(":")[0]
        what = f"the name {brief(name)}" if name else "the master's name"
        yield Statement(f"{what} does not resolve where the proxy runs{since(case)}", at=places.NO_ANSWER)


@rule(
    "T20",
    Severity.ERROR,
    at=(Kind.CONNECTION, *RUN, *BOOTSTRAP),
    broken=True,
    otherwise="warning if another server of `server_list` was up",
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
    explains=("S21", "F03", "P01"),
    without_catalog=NO_CATALOG_NO_REPORT,
    event=True,
    good=lambda: [talk(plugins(), catalog(), report())],
    bad=lambda: [
        talk(unconnected(ca(), "[Errno 113] Connect call failed ('192.0.2.1', 8140)")),
        talk(unconnected(plugins(), "cannot connect to the master 192.0.2.1:8140: Connection timed out")),
    ],
)
def master_unreachable(case: ExchangeCase) -> Iterator[Statement]:
    """Packets to the master's address got no answer, or the network reports that there is no way to it. The agent waits
    meanwhile, and gives up before the proxy does if packets are dropped."""
    if failure(case.exchange) is Failure.UNREACHABLE:
        yield Statement(
            f"{brief(target(case.exchange))} cannot be reached from where the proxy runs{since(case)}",
            at=places.NO_ANSWER,
        )


_PROXY = "the HTTP proxy proxy.example:3128"


@rule(
    "T27",
    Severity.ERROR,
    at=(Kind.CONNECTION, *RUN, *BOOTSTRAP),
    broken=True,
    otherwise="warning if another server of `server_list` was up",
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
    explains=("S21", "F03", "P01"),
    without_catalog=NO_CATALOG_NO_REPORT,
    event=True,
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
)
def site_proxy_refuses(case: ExchangeCase) -> Iterator[Statement]:
    """The agent's settings or its environment name an HTTP proxy, and that one made no connection with the master: it
    does not run, it wants a name and a password, it allows no connection with this port, or it cannot reach the master
    itself. The agent prints the proxy's answer (`403 "Forbidden"`), which looks as if it were the master's."""
    if failure(case.exchange) is Failure.SITE_PROXY:
        words = (case.exchange.error or "").partition(": ")[2]
        yield Statement(brief(f"{words}{since(case)}"), at=places.NO_ANSWER)

"""T11 to T14: connections that are not used again, and who closes them."""

from itertools import pairwise

from inspector.rules import connection_errors
from inspector.rules.kit import *


def _anew(pause: float) -> list[Record]:
    parts = [plugins(), catalog(), metadata("modules/demo/a"), metadata("modules/demo/b"), report()]
    new = [altered(part, leg={"id": f"leg-{number}"}) for number, part in enumerate(parts)]
    return talk(*(part for exchange in new for part in (exchange, wait(pause))))


@rule(
    "T11",
    Severity.WARNING,
    title="connections not reused",
    fix=(
        on_node("see the agent's own idle timeout (4 s)", "puppet config print http_keepalive_timeout --section agent"),
        advice(
            "enable keep-alive on the load balancer or web server between agent and master, with a longer idle timeout"
        ),
    ),
    source="docs/protocol.md#reuse-of-connections; puppet 7.23.0 lib/puppet/http/pool.rb",
    good=lambda: [_anew(6), talk(plugins(), catalog(), metadata("modules/demo/a"), report())],
    bad=lambda: [_anew(1)],
)
def connection_not_reused(case: RunCase, *, times: float = 3, keepalive_s: float = 4) -> Iterator[Statement]:
    """The agent opened new connections repeatedly in one run, although the previous connection had been answered a
    moment before. Each new connection costs a TLS handshake, which is noticeable in runs with many files. New
    connections after a pause, after an error and in the bootstrap are normal and not counted."""
    run = case.run
    if run.tool or run.connections <= times or run.major < (3, 7):
        return
    legs = [use for use in run.legs.values() if use.phase in AFTER_BOOTSTRAP and use.requests]
    needless = [
        use
        for previous, use in pairwise(legs)
        if 0 <= use.began - previous.ended < keepalive_s
        and previous.status is not None
        and previous.status not in (429, 503)
        and previous.status < 500
    ]
    if len(needless) >= times:
        yield Statement(
            f"{len(needless)} connections were opened although the previous one was free",
            tuple(use.first for use in needless),
            at=(places.timing("TLS with the agent"), places.REQUEST_LINE),
        )


def _closing(count: int) -> list[Record]:
    parts = [plugins(), catalog(), metadata("modules/demo/a"), report()]
    return talk(
        *(
            altered(
                part,
                leg={"id": f"leg-{number}" if number < count else "leg"},
                answers={"Connection": "close"} if number < count else None,
            )
            for number, part in enumerate(parts)
        )
    )


@rule(
    "T12",
    Severity.WARNING,
    at=RUN,
    opening=True,
    title="the master closes every connection",
    fix=(
        advice(
            "enable keep-alive in the web server or load balancer in front of the master (Apache: `KeepAlive On`; "
            "nginx: `keepalive_timeout`; HAProxy: no `httpclose`)"
        ),
    ),
    source="docs/protocol.md#reuse-of-connections",
    explains=("T11",),
    good=lambda: [_closing(2)],
    bad=lambda: [_closing(4)],
)
def master_closes_connections(case: ExchangeCase, *, times: float = 3) -> Iterator[Statement]:
    """The master, or a device in front of it, closes the connection after each answer, although the agent did not
    request that: every request of the run costs a TLS handshake. Closing after a 503 is normal."""
    exchange, response, run = case.exchange, case.exchange.response, case.run
    if response is None or (response.http_version != "HTTP/1.0" and response.header("connection") is None):
        return
    connection = (response.header("connection") or "").lower()
    closes = connection == "close" or (response.http_version == "HTTP/1.0" and connection != "keep-alive")
    if not closes or response.status in (429, 503) or response.status >= 500 or run.tool or run.major < (3, 7):
        return
    if (exchange.request.header("connection") or "").lower() == "close":
        return  # requested by the agent: T13
    single = sum(1 for use in run.legs.values() if use.requests == 1 and use.phase in AFTER_BOOTSTRAP)
    if single >= times:
        yield Statement(
            "the master closes the connection repeatedly after the first answer",
            at=places.response_header(case, "connection"),
        )


_CLOSE = {"Connection": "close"}


@rule(
    "T13",
    Severity.WARNING,
    at=RUN,
    title="the agent closes every connection",
    fix=(
        on_node("see whether a web proxy is set", "puppet config print http_proxy_host --section agent"),
        advice("find out what makes its requests: a report processor or a module with its own HTTP client"),
        on_node("upgrade the agent", only_if="the agent is older than 3.7"),
    ),
    source="docs/protocol.md#the-connection-header",
    explains=("T11",),
    good=lambda: [
        talk(catalog(), report()),
        talk(*(altered(part, headers=_CLOSE) for part in (catalog(), report())), version="2.7.26"),
    ],
    bad=lambda: [talk(*(altered(part, headers=_CLOSE) for part in (catalog(), report())))],
)
def agent_closes_connections(case: ExchangeCase) -> Iterator[Statement]:
    """The agent asks the master to close the connection after this answer. No agent since 3.7 does so in a run: another
    program makes the requests, or something changes them on the way. Every new connection costs a TLS handshake."""
    connection = case.exchange.request.header("connection")
    if connection is not None and connection.lower() == "close" and not case.run.tool and case.run.major >= (3, 7):
        yield Statement("the agent sends 'Connection: close' in its run", at=places.request_header(case, "connection"))


@rule(
    "T14",
    Severity.NOTICE,
    at=RUN,
    broken=True,
    visible=Visible.CONSEQUENCE,
    title="keep-alive timeout shorter than the agent's",
    fix=(
        on_node("see the agent's own idle timeout (4 s)", "puppet config print http_keepalive_timeout --section agent"),
        advice("raise that of the master's web server or load balancer above it: to 10 s or more"),
    ),
    source="docs/protocol.md#reuse-of-connections; puppet 7.23.0 lib/puppet/http/factory.rb",
    explains=("T11",),
    good=lambda: [talk(plugins(), catalog(), wait(3), metadata("modules/demo/a"), report())],
    bad=lambda: [talk(plugins(), catalog(), wait(3), unanswered(metadata("modules/demo/a")), report())],
)
def keepalive_too_short(case: ExchangeCase, *, keepalive_s: float = 4, at_once_s: float = 1) -> Iterator[Statement]:
    """A request on a connection that had been idle for a moment was never answered: the connection was closed at that
    same time. The master's side closes idle connections earlier than the agent stops using them. A single occurrence
    may be coincidence."""
    exchange = case.exchange
    if case.status is not None:
        return
    use = case.run.legs.get(exchange.agent.id)
    if (
        use is None
        or use.requests < 2
        or not 0.5 <= use.idle <= keepalive_s
        or not connection_errors.closed(exchange.error)
    ):
        return
    requested = exchange.request.ended or exchange.time
    if (exchange.failed or requested) - requested <= at_once_s:
        yield Statement(
            "a connection that was idle for less than 4 s was closed when the agent used it again",
            at=(places.NO_ANSWER, places.timing("waiting (no answer)")),
        )

from inspector.rules import connection_errors
from inspector.rules.kit import *


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

from itertools import pairwise

from inspector.model import Record
from inspector.rules.kit import *

PHASES = (Phase.NODE, Phase.PLUGINS, Phase.CATALOG, Phase.FILES, Phase.REPORT)


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
    legs = [use for use in run.legs.values() if use.phase in PHASES and use.requests]
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

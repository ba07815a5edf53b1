from inspector.rules.connection_errors import NO_HANDSHAKE
from inspector.rules.kit import *
from inspector.runs.examples import connection, given_up


@rule(
    "S23",
    Severity.ERROR,
    at=(Kind.CONNECTION, *(kind for kind in (*RUN, *BOOTSTRAP) if kind is not Kind.CATALOG)),
    broken=True,
    otherwise="warning if another server of `server_list` was up",
    title="the master did not answer until the agent gave up",
    fix=(
        on_master(
            "let it write down what its threads do; it goes on running", "systemctl kill --signal=QUIT puppetserver"
        ),
        on_master(
            "look for that and for OutOfMemoryError, here or in puppetserver-daemon.log", "journalctl -u puppetserver"
        ),
        on_master("give it more memory: -Xmx in JAVA_ARGS", only_if="there was an OutOfMemoryError"),
        on_master("restart it", "systemctl restart puppetserver"),
    ),
    source="docs/protocol.md#timeouts",
    explains=("P01", "F03"),
    without_catalog=("S08", *NO_CATALOG_NO_REPORT),
    event=True,
    good=lambda: [
        talk(plugins(), catalog(), slow(metadata("modules/demo/a"), 90), report()),
        talk(plugins(), given_up(metadata("modules/demo/a"), "the agent disconnected", 20), report()),
    ],
    bad=lambda: [
        talk(given_up(ca(), "the agent disconnected", 120)),
        talk(given_up(plugins(), "Client disconnected.", 600)),
        talk(given_up(connection(), f"{NO_HANDSHAKE} for 15 s", 15)),
    ],
)
def master_silent(case: ExchangeCase, *, patience_s: float = 60) -> Iterator[Statement]:
    """The connection to the master was fine, but a request that needs no compilation got no answer until the agent gave
    up: the master hangs (it has no memory left, or all its JRubies are occupied), or a device in between holds its
    answer back. For a catalog see S08."""
    exchange = case.exchange
    if (exchange.error or "").startswith(NO_HANDSHAKE):
        yield Statement(
            f"{brief(exchange.request.target)} did not answer the TLS handshake for {lasting(waited(exchange))}",
            at=places.NO_ANSWER,
        )
    if exchange.response is not None or "disconnected" not in (exchange.error or "").lower():
        return
    seconds = waited(exchange)
    if seconds >= patience_s:
        yield Statement(
            f"{case.endpoint} was not answered for {lasting(seconds)}, then the agent gave up",
            at=(places.NO_ANSWER, places.timing("waiting (no answer)")),
        )

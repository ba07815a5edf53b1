"""S05, S06, S07 and S24: answers with 503, and what agents do then."""

from inspector.rules.kit import *


@rule(
    "S05",
    Severity.WARNING,
    title="the master is busy and tells the agent to retry later",
    fix=(
        on_master("give it more JRubies, and a larger heap: `max-active-instances` in jruby-puppet.conf"),
        on_node("spread the runs", "puppet config set splay true --section agent"),
        advice("or add a compiler"),
        advice("see why a load balancer answers in its place", only_if="the master is not busy"),
        on_master(
            "set the length of the queue above which it turns agents away: `max-queued-requests`",
            only_if="agents are to wait instead of being turned away",
        ),
    ),
    source="docs/protocol.md#retry-after; puppetserver 7.9.5 src/clj/puppetlabs/puppetserver/jruby_request.clj",
    without_catalog=(*NOT_COMPILED, "S07", "P01", *NO_CATALOG_NO_REPORT),
    event=True,
    good=lambda: [talk(plugins(), catalog(), report())],
    bad=lambda: [
        talk(plugins(), altered(catalog(status=503), answers={"Retry-After": "60"}), wait(61), catalog(), report())
    ],
)
def master_busy(case: RunCase) -> Iterator[Statement]:
    """The master's queue is full: it answers 503 with the number of seconds to wait. Agents of 5.3 and later wait, but
    no longer than their runinterval, and repeat the request on a new connection, from version 6 on up to 100 times for
    each request; older ones give up."""
    refusals = [
        (refusal, seconds)
        for refusal in case.run.delayed
        if refusal.endpoint.kind in RUN and (seconds := retry_after(refusal.retry_after, refusal.time)) is not None
    ]
    if not refusals:
        return
    latest, seconds = refusals[-1]
    number = case.run.delayed.total - len(case.run.delayed) + len(refusals)
    times = "once" if number == 1 else f"{number} times"
    yield Statement(
        f"the master told the agent {times} to retry later (503), last at {utc(latest.time)}: "
        f"{latest.endpoint.name} is to be requested again after {seconds:.0f} s, at {utc(latest.time + seconds)}",
        tuple(refusal.seq for refusal, _ in refusals),
        at=(places.header("response", "Retry-After"), places.STATUS),
    )


@rule(
    "S06",
    Severity.ERROR,
    at=(*RUN, *BOOTSTRAP),
    refused=True,
    title="503 without Retry-After",
    fix=(
        on_master("see whether it is up", "systemctl status puppetserver"),
        advice("see whether a load balancer answers in its place", only_if="the master is up"),
        on_master(
            "set `max-retry-delay` in puppetserver.conf above 0: agents then retry, but some versions fail (S24)",
            only_if="the master is only busy",
        ),
    ),
    source="docs/protocol.md#retry-after",
    without_catalog=(*NOT_COMPILED, "S07", "P01", *NO_CATALOG_NO_REPORT),
    event=True,
    good=lambda: [talk(plugins(), catalog(), report())],
    bad=lambda: [
        talk(plugins(), catalog(status=503, text="The master is starting"), report(result="failed")),
        talk(plugins(), altered(catalog(status=503), answers={"Retry-After": "soon"}), report(result="failed")),
    ],
)
def master_unavailable(case: ExchangeCase) -> Iterator[Statement]:
    """The master cannot serve the request now and does not say when it can, so the agent does not wait: the request has
    failed, and for a catalog the run. This is the answer of a master that is starting, of a full queue with
    max-retry-delay 0, or of a load balancer without a healthy master behind it."""
    response = case.exchange.response
    if response is None or response.status != 503:
        return
    value = response.header("retry-after")
    if retry_after(value, case.exchange.time) is None:
        header = "without Retry-After" if value is None else f"with an unreadable Retry-After ({brief(value)})"
        yield Statement(
            f"{case.endpoint} was answered 503 {header}: the agent does not try again",
            at=places.response_header(case, "retry-after"),
        )


@rule(
    "S07",
    Severity.WARNING,
    at=(Kind.CATALOG,),
    title="the agent retries before the requested delay",
    fix=(
        advice(
            "see which client uses the agent's name: agents of 5.3 and later respect Retry-After and stop after "
            "100 tries"
        ),
        advice("turn that off for POST", only_if="something in between repeats requests"),
        on_node("upgrade the agent", only_if="nothing does"),
    ),
    source="docs/protocol.md#retry-after; puppet 7.23.0 lib/puppet/http/retry_after_handler.rb",
    good=lambda: [
        talk(plugins(), catalog(environment="dev"), plugins(), catalog(asks="dev", environment="dev"), report())
    ],
    bad=lambda: [
        talk(plugins(), altered(catalog(status=503), answers={"Retry-After": "60"}), wait(5), catalog(), report())
    ],
)
def retried_too_early(case: ExchangeCase, *, longest_s: float = 300, retries: float = 100) -> Iterator[Statement]:
    """A busy master told the agent how long to wait, and the agent sent its request again earlier, or far more often
    than agents do: that keeps the master busy. Agents wait no longer than their runinterval, so only delays up to five
    minutes are checked."""
    run, exchange = case.run, case.exchange
    if run.tool or not run.delayed or (0, 0) < run.major < (5, 3):
        return
    tries = [refusal for refusal in run.delayed if refusal.endpoint.kind is Kind.CATALOG and refusal.seq < exchange.seq]
    if not tries:
        return
    refusal = tries[-1]
    delay = retry_after(refusal.retry_after, refusal.time) if (refusal.retry_after or "").strip().isdigit() else None
    pause = exchange.time - refusal.time
    if delay is not None and pause < min(delay, longest_s) - 1:
        yield Statement(
            f"the agent requested the catalog again after {pause:.0f} s instead of {delay:.0f} s",
            (refusal.seq, exchange.seq),
            at=(places.header("response", "Retry-After"), places.REQUEST_LINE),
        )
    if len(tries) > retries:
        yield Statement(f"the agent requested the catalog again more than {retries:.0f} times", at=places.REQUEST_LINE)


@rule(
    "S24",
    Severity.ERROR,
    title="the agent fails instead of waiting for a busy master",
    fix=(
        on_node("upgrade the agent to 7.26 or later, or to 8.2 or later"),
        on_master(
            "until then, let requests wait for a free JRuby: `max-queued-requests: 0` in the jruby-puppet section of "
            "puppetserver.conf (with `max-retry-delay: 0` instead agents fail at once, but with a clear message)"
        ),
        on_master("restart it", "systemctl restart puppetserver"),
        advice("turn that off", only_if="a load balancer sends 503 with Retry-After"),
    ),
    source="docs/protocol.md#retry-after; puppet 7.23.0 lib/puppet/http/client.rb; "
    "puppet 8.7.0 lib/puppet/http/client.rb",
    explains=(*NOT_COMPILED, "P01"),
    without_catalog=NO_CATALOG_NO_REPORT,
    event=True,
    good=lambda: [talk(plugins(), catalog(), report())],
    bad=lambda: [
        talk(plugins(), altered(catalog(status=503), answers={"Retry-After": "3"}), wait(3), report(result="failed")),
        talk(
            plugins(),
            altered(catalog(status=503), answers={"Retry-After": "3"}),
            wait(3),
            report(result="failed"),
            version="8.1.0",
            master_version="8.1.0",
        ),
        talk(plugins(), catalog(), altered(report(status=503), answers={"Retry-After": "3"})),
    ],
    also=("S05", "R01"),
)
def retry_fails(case: RunCase) -> Iterator[Statement]:
    """The master answered 503 with Retry-After, and this version of the agent cannot repeat a request. It waits as long
    as the master says, and then reads the body of an answer whose connection it has closed itself. So it fails with
    `attempt to read body out of block`: without a catalog the run is over, or the report is lost. This affects 6.29, 7
    before 7.26 and 8 before 8.2, with every version of Ruby. A version that a distribution has repaired repeats the
    request, and is not reported."""
    run = case.run
    if run.tool or not run.fails_to_wait:
        return
    latest = {
        Kind.CATALOG: run.catalogs[-1].seq if run.catalogs else 0,
        Kind.REPORT: run.reports[-1].seq if run.reports else 0,
    }
    for kind, seq in latest.items():
        refusals = [refusal for refusal in run.delayed if refusal.endpoint.kind is kind]
        if not refusals or seq > refusals[-1].seq:
            continue
        last = refusals[-1]
        if (seconds := retry_after(last.retry_after, last.time)) is not None:
            yield Statement(
                f"Puppet {run.agent_version} is to repeat its request to {last.endpoint.name} after {seconds:.0f} s "
                "(503), which it cannot: it fails with 'attempt to read body out of block'",
                (last.seq,),
                at=(places.header("response", "Retry-After"), places.STATUS),
            )

from inspector.rules.kit import *


@rule(
    "S05",
    Severity.WARNING,
    title="the master is busy and tells the agent to retry later",
    fix=(
        on_master("give it more JRubies, and a larger heap: `max-active-instances` in jruby-puppet.conf"),
        on_node("spread the runs", "puppet config set splay true --section agent"),
        advice("or add a compiler"),
        on_master(
            "set the length of the queue above which it turns agents away: `max-queued-requests`",
            only_if="agents are to wait instead of being turned away",
        ),
    ),
    source="docs/protocol.md#retry-after; puppetserver 7.9.5 src/clj/puppetlabs/puppetserver/jruby_request.clj",
    good=lambda: [talk(plugins(), catalog(), report())],
    bad=lambda: [
        talk(plugins(), altered(catalog(status=503), answers={"Retry-After": "60"}), wait(61), catalog(), report())
    ],
)
def master_busy(case: RunCase) -> Iterator[Statement]:
    """The master's queue is full: it answers 503 with the number of seconds to wait. Agents of 5.3 and later wait, but
    no longer than their runinterval, and repeat the request on a new connection; older ones give up."""
    refusals = [
        (refusal, seconds)
        for refusal in case.run.delayed
        if refusal.endpoint.kind in RUN and (seconds := retry_after(refusal.retry_after, refusal.time)) is not None
    ]
    if not refusals:
        return
    latest, seconds = refusals[-1]
    times = "once" if len(refusals) == 1 else f"{len(refusals)} times"
    yield Statement(
        f"the master told the agent {times} to retry later (503), last at {utc(latest.time)}: "
        f"{latest.endpoint.name} is to be requested again after {seconds:.0f} s, at {utc(latest.time + seconds)}",
        tuple(refusal.seq for refusal, _ in refusals),
        at=(places.header("response", "Retry-After"), places.STATUS),
    )

from inspector.rules.kit import *

AFFECTED = (((6, 29), (7, 26)), ((8, 0), (8, 2)))
"""Versions of agents that fail instead of repeating a request: from the first on, before the second."""


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
    also=("S05", "R20", "P01", "R01", "P03"),
)
def retry_fails(case: RunCase) -> Iterator[Statement]:
    """The master answered 503 with Retry-After, and this version of the agent cannot repeat a request. It waits as long
    as the master says, and then reads the body of an answer whose connection it has closed itself. So it fails with
    `attempt to read body out of block`: without a catalog the run is over, or the report is lost. This affects 6.29, 7
    before 7.26 and 8 before 8.2, with every version of Ruby. A version that a distribution has repaired repeats the
    request, and is not reported."""
    run = case.run
    if run.tool or not any(first <= run.major < fixed for first, fixed in AFFECTED):
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

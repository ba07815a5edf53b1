from inspector.rules.kit import *


@rule(
    "S20",
    Severity.NOTICE,
    title="several masters answered one run",
    fix=(
        advice("deploy code to all compilers at the same time"),
        advice("let the load balancer keep an agent on one of them (stickiness by address)"),
    ),
    source="docs/protocol.md#several-masters",
    explains=("F02", "F03", "P01", "P13"),
    good=lambda: [talk(plugins(), altered(catalog(), answers={"X-Puppet-Compiler-Name": "c1.example"}), report())],
    bad=lambda: [
        talk(altered(plugins(), answers={"X-Puppet-Version": "7.9.0"}), catalog(), report()),
        talk(*answered_by("c1.example", plugins()), *answered_by("c2.example", catalog(), report())),
    ],
)
def several_masters(case: RunCase) -> Iterator[Statement]:
    """A load balancer distributed the requests of one run over several masters. That works as long as all have the same
    code: if not, the catalog names files that have another version on another compiler, or do not exist there."""
    run = case.run
    # A CA of its own, and a server that is asked whether it is up, are none of them.
    answering = [
        server for server in run.answering.values() if not {*server.phases} <= {Phase.CERTIFICATES, Phase.OTHER}
    ]
    if len({server.certificate or server.address for server in answering}) > 1:
        yield Statement(
            f"{len(answering)} servers answered one run: "
            + "; ".join(
                f"{server.name} {server.version or ''} ({', '.join(server.phases)})" for server in answering[:5]
            ),
            tuple(server.first for server in answering)[:20],
            at=(places.tls("presented by the master"), places.header("response", "X-Puppet-Version"), places.STATUS),
        )
        return
    for title, records in (("compilers", run.compilers), ("versions of the master", run.master_versions)):
        if len(records) > 1:
            yield Statement(
                f"{len(records)} {title} answered in one run: {some(list(records))}",
                tuple(records.values())[:20],
                at=(places.header("response", "X-Puppet-Version"), places.STATUS),
            )

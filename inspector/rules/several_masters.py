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
    bad=lambda: [talk(altered(plugins(), answers={"X-Puppet-Version": "7.9.0"}), catalog(), report())],
)
def several_masters(case: RunCase) -> Iterator[Statement]:
    """A load balancer distributed the requests of one run over several masters. That works as long as all have the same
    code: if not, the catalog names files that have another version on another compiler, or do not exist there."""
    run = case.run
    for title, records in (("compilers", run.compilers), ("versions of the master", run.master_versions)):
        if len(records) > 1:
            yield Statement(
                f"{len(records)} {title} answered in one run: {some(list(records))}",
                tuple(records.values())[:20],
                at=(places.header("response", "X-Puppet-Version"), places.STATUS),
            )

from inspector.rules.kit import *


@rule(
    "S16",
    Severity.WARNING,
    title="the agent is newer than its master",
    fix=(
        on_master("upgrade it to the agent's major version or later"),
        advice("until then, keep agents at the master's version"),
    ),
    source="docs/protocol.md#x-puppet-version-of-the-master",
    explains=("S10",),
    good=lambda: [
        talk(plugins(), catalog(), report(), version="7.23.0", master_version="8.10.0"),
        talk(plugins(), catalog(), report(), version="8.28.1", master_version="8.10.0"),
    ],
    bad=lambda: [talk(plugins(), catalog(), report(), version="8.10.0", master_version="7.23.0")],
)
def master_older_than_agent(case: RunCase) -> Iterator[Statement]:
    """Puppet supports agents that are older than their master, not newer ones. It usually works, but a newer agent may
    request what the master does not support: renewal of certificates, other digests, other formats."""
    run = case.run
    agent, version = major(run.agent_version), run.master_version
    if version is None or not 0 < major(version) < agent:
        return
    yield Statement(
        f"the agent is {brief(run.agent_version or '')}, the master {brief(version)}",
        (run.master_versions[version],),
        at=(places.header("response", "X-Puppet-Version"), places.STATUS),
    )

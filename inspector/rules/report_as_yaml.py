from inspector.protocol import bodies
from inspector.rules.kit import *

_YAML = b"""--- !ruby/object:Puppet::Transaction::Report
host: node1.example
status: unchanged
transaction_uuid: a-1
environment: production
report_format: 4
puppet_version: 5.5.22
"""


@rule(
    "P08",
    Severity.WARNING,
    at=(Kind.REPORT,),
    otherwise="notice for agents up to version 3",
    title="report sent as YAML",
    fix=(
        on_node("upgrade the agent", only_if="the agent is older than 3.3"),
        advice("find out what removes X-Puppet-Version from the master's answers: then it falls back to YAML",
               only_if="it is a later 3.x"),
        on_node("see which format is set", "puppet config print preferred_serialization_format --section agent",
                only_if="it is of version 4 or later"),
    ),
    source="docs/protocol.md#reports-as-yaml; docs/protocol.md#generations-of-agents",
    good=lambda: [talk(plugins(), catalog(), report())],
    bad=lambda: [
        talk(
            plugins(), catalog(), altered(report(), request={"body": _YAML}, headers={"Content-Type": "text/yaml"}),
            version="5.5.22", master_version="5.5.22",
        ),
    ],
)  # fmt: skip
def report_as_yaml(case: ExchangeCase) -> Iterator[Statement]:
    """The report was sent as YAML, which is dangerous for a master to parse: YAML can name Ruby classes. Agents of 2.7
    and early 3.x support nothing else; a later 3.x agent sends YAML when the master's answers have no X-Puppet-Version.
    No newer agent does so."""
    if bodies.content_type(case.exchange.request) not in bodies.YAML or case.run.tool:
        return
    if (0, 0) < case.run.major < (4, 0):
        yield Statement(
            "the report was sent as YAML, as by all agents up to 3",
            severity=Severity.NOTICE,
            at=places.request_header(case, "content-type"),
        )
    else:
        yield Statement("the report was sent as YAML", at=places.request_header(case, "content-type"))

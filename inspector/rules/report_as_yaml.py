"""P08."""

from collections.abc import Iterator

from inspector.model import Severity, Visible
from inspector.protocol import bodies
from inspector.protocol.kinds import Kind
from inspector.rules import On, places, rule
from inspector.rules.cases import ExchangeCase, Statement
from inspector.runs.examples import altered, catalog, plugins, report, talk

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
    On.EXCHANGE,
    at=(Kind.REPORT,),
    otherwise="notice for agents up to version 3",
    visible=Visible.WIRE,
    title="report sent as YAML",
    remedy="Upgrade agents older than 3.3. A 3.x agent falls back to YAML when the master's answers have no "
    "X-Puppet-Version: find out what removes that header. Later ones: `puppet config print "
    "preferred_serialization_format --section agent`.",
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

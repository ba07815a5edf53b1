"""R14 and P08: facts and reports that are sent as YAML."""

from urllib.parse import quote

from inspector.model import Place
from inspector.protocol import bodies
from inspector.rules.kit import *

_FORMATS = frozenset({"yaml", "b64_zlib_yaml"})


@rule(
    "R14",
    Severity.WARNING,
    at=(Kind.CATALOG,),
    otherwise="notice for agents up to version 3",
    title="facts sent as YAML",
    fix=(
        on_node(
            "let the agent send PSON",
            "puppet config set preferred_serialization_format pson --section agent",
            only_if="the agent is of version 3.3 to 3.8",
        ),
        on_node("upgrade the agent: 3.3 and later send PSON, 5 and later JSON"),
    ),
    source="docs/protocol.md#facts-in-a-form; docs/protocol.md#generations-of-agents",
    good=lambda: [
        talk(plugins(), catalog(form={"facts_format": "pson"}), report(), version="3.8.7", master_version="3.8.7")
    ],
    bad=lambda: [talk(plugins(), _yaml(), report(), version="5.5.22", master_version="5.5.22")],
)
def facts_as_yaml(case: ExchangeCase) -> Iterator[Statement]:
    """The facts were sent as YAML, which is dangerous for a master to parse: YAML can name Ruby classes, and masters
    have been compromised that way. Agents of 2.7 and early 3.x support nothing else; a later agent that sends YAML is
    configured to."""
    request = case.step.request
    if not isinstance(request, d.CatalogRequest) or request.facts_format not in _FORMATS:
        return
    yield _statement(case, f"the facts were sent as {request.facts_format}", places.meaning("facts_format", "form"))


def _yaml() -> ExamplePart:
    facts = quote(quote("--- !ruby/object:Puppet::Node::Facts\n  name: node1.example\n  values: {}\n"))
    form = f"environment=production&transaction_uuid=a-1&facts_format=yaml&facts={facts}"
    return altered(catalog(), request={"body": form.encode()})


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
    yield _statement(case, "the report was sent as YAML", places.request_header(case, "content-type"))


def _statement(case: ExchangeCase, words: str, at: Place) -> Statement:
    """Return a statement that is a notice for agents that know nothing else."""
    if (0, 0) < case.run.major < (4, 0):
        return Statement(f"{words}, as by all agents up to 3", severity=Severity.NOTICE, at=at)
    return Statement(words, at=at)

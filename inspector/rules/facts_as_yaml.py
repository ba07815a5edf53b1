from urllib.parse import quote

from inspector.rules.kit import *

FORMATS = frozenset({"yaml", "b64_zlib_yaml"})


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
        talk(plugins(), catalog(form={"facts_format": "pson"}), report(), version="3.8.7", master_version="3.8.7"),
    ],
    bad=lambda: [talk(plugins(), _yaml(), report(), version="5.5.22", master_version="5.5.22")],
)
def facts_as_yaml(case: ExchangeCase) -> Iterator[Statement]:
    """The facts were sent as YAML, which is dangerous for a master to parse: YAML can name Ruby classes, and masters
    have been compromised that way. Agents of 2.7 and early 3.x support nothing else; a later agent that sends YAML is
    configured to."""
    request = case.step.request
    if not isinstance(request, d.CatalogRequest) or request.facts_format not in FORMATS:
        return
    if (0, 0) < case.run.major < (4, 0):
        yield Statement(
            f"the facts were sent as {request.facts_format}, as by all agents up to 3",
            severity=Severity.NOTICE,
            at=places.meaning("facts_format", "form"),
        )
    else:
        yield Statement(f"the facts were sent as {request.facts_format}", at=places.meaning("facts_format", "form"))


def _yaml() -> ExamplePart:
    facts = quote(quote("--- !ruby/object:Puppet::Node::Facts\n  name: node1.example\n  values: {}\n"))
    form = f"environment=production&transaction_uuid=a-1&facts_format=yaml&facts={facts}"
    return altered(catalog(), request={"body": form.encode()})

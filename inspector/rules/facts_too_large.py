from typing import Any

import msgspec

from inspector.protocol.facts import FactLimits
from inspector.rules.kit import *


@rule(
    "R11",
    Severity.WARNING,
    at=(Kind.CATALOG, Kind.FACTS),
    title="facts exceed the agent's own limits",
    fix=(
        on_node("look at its facts", "puppet facts show", only_if="the agent is of version 7 or later"),
        on_node("look at its facts", "puppet facts find {name}", only_if="the agent is of version 6 or earlier"),
        advice("remove the growing custom fact from its module, or make it return less"),
    ),
    source="docs/protocol.md#limits-of-facts; puppet 7.23.0 lib/puppet/configurer.rb",
    good=lambda: [talk(plugins(), catalog(facts={"role": "x" * 4096}), report())],
    bad=lambda: [talk(plugins(), catalog(facts={"packages": "x" * 5000}), report())],
)
def facts_too_large(
    case: ExchangeCase,
    *,
    values: float = 10240,
    top_level: float = 512,
    name_bytes: float = 2560,
    value_bytes: float = 4096,
    payload_bytes: float = 16 * 2**20,
) -> Iterator[Statement]:
    """The agent sends more facts, or longer ones, than the limits of 8.x agents allow: such agents log a warning.
    Compilation becomes slow, and PuppetDB refuses values that are too large for its index. Usually one custom fact
    lists packages, mounts or network interfaces of containers."""
    request = case.step.request
    facts = request.facts if isinstance(request, d.CatalogRequest) else request
    if not isinstance(facts, d.Facts):
        return
    limits = FactLimits(int(values), int(top_level), int(name_bytes), int(value_bytes), int(payload_bytes))
    try:
        excesses = facts.exceeded(limits) if _may_exceed(facts.values, limits) else []
    except (TypeError, ValueError):  # YAML allows keys that JSON does not
        return
    for excess in excesses:
        yield Statement(f"facts: {excess}", at=places.meaning("limits exceeded", "facts"))


def _may_exceed(values: dict[str, Any], limits: FactLimits) -> bool:
    """False if a cheap check shows that no limit is exceeded: every run of every agent passes here."""
    total = leaves = 0
    large = {}
    for name, value in values.items():
        text = msgspec.json.encode({name: value}, enc_hook=str)
        total += len(text)
        leaves += text.count(b",") + 1
        if len(text) + 10 > min(limits.name, limits.value):
            large[name] = value
    if len(values) > limits.top_level or leaves > limits.values or total > limits.payload:
        return True
    return any(limits.exceeded_by(large))

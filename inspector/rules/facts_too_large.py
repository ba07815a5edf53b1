"""R11."""

from collections.abc import Iterator
from typing import Any

import msgspec

from inspector.model import Severity, Visible
from inspector.protocol import documents as d
from inspector.protocol.facts import FactLimits
from inspector.rules import Case, On, rule
from inspector.runs.examples import catalog, plugins, report, talk


@rule(
    "R11",
    Severity.WARNING,
    On.EXCHANGE,
    at=("catalog", "facts"),
    visible=Visible.WIRE,
    title="facts exceed the agent's own limits",
    remedy="On the node: `puppet facts show` (up to 6: `puppet facts find {name}`), then take the custom fact that "
    "grows out of its module, or make it answer with less.",
    source="docs/protocol.md#limits-of-facts; puppet 7.23.0 lib/puppet/configurer.rb",
    good=lambda: [talk(plugins(), catalog(facts={"role": "x" * 4096}), report())],
    bad=lambda: [talk(plugins(), catalog(facts={"packages": "x" * 5000}), report())],
)
def facts_too_large(
    case: Case,
    *,
    values: float = 10240,
    top_level: float = 512,
    name_bytes: float = 2560,
    value_bytes: float = 4096,
    payload_bytes: float = 16 * 2**20,
) -> Iterator[str]:
    """The agent sends more facts, or longer ones, than agents of 8.x take for sane: they warn of it in their own log.
    It makes compiling slow and PuppetDB refuses what its index can't hold. Mostly one custom fact lists packages,
    mounts or network interfaces of containers."""
    asked = case.step.request
    facts = asked.facts if isinstance(asked, d.CatalogRequest) else asked
    if not isinstance(facts, d.Facts):
        return
    limits = FactLimits(int(values), int(top_level), int(name_bytes), int(value_bytes), int(payload_bytes))
    try:
        exceeded = facts.exceeded(limits) if _may_exceed(facts.values, limits) else []
    except (TypeError, ValueError):  # YAML has keys that JSON has not
        return
    for each in exceeded:
        yield f"facts: {each}"


def _may_exceed(values: dict[str, Any], limits: FactLimits) -> bool:
    """False if a cheap look shows that nothing is exceeded: every run of every agent comes by here."""
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

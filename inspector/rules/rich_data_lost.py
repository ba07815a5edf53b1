from typing import Any

from inspector.rules.kit import *

_TEXT = "Deferred({'name' => "
_LOST = "Deferred({'name' => 'sprintf', 'arguments' => ['hello %s', 'you']})"
_DEEP = 3
"""Levels of lists and hashes in a parameter that are looked into."""


def _file(content: object) -> list[dict[str, Any]]:
    return [{"type": "File", "title": "/etc/app.conf", "parameters": {"content": content}}]


@rule(
    "P16",
    Severity.ERROR,
    at=(Kind.CATALOG,),
    title="deferred values became text",
    fix=(
        on_node("let it take rich data", "puppet config set rich_data true --section agent",
                only_if="the agent is of version 6 or later"),
        on_node("let it prefer JSON", "puppet config set preferred_serialization_format json --section agent",
                only_if="the agent is of version 6 or later"),
        advice("call the functions on the master: it cannot evaluate deferred ones", only_if="the agent is older"),
        advice("look for what is not UTF-8 in the catalog (S10)",
               only_if="the catalog comes as PSON although the agent prefers JSON"),
    ),
    source="docs/protocol.md#rich-data; docs/protocol.md#pson",
    good=lambda: [
        talk(plugins(), catalog(resources=_file({"__ptype": "Deferred", "name": "sprintf"})), report()),
    ],
    bad=lambda: [
        talk(plugins(), altered(catalog(resources=_file(_LOST)), headers={"Accept": "text/pson"},
                                answers={"Content-Type": "text/pson"}), report()),
        talk(plugins(), catalog(resources=_file(["plain", _LOST])), report()),
    ],
)  # fmt: skip
def rich_data_lost(case: ExchangeCase) -> Iterator[Statement]:
    """A value that the agent should compute itself (Deferred) came as the text of its own definition, because the
    catalog was given in a format without rich data: PSON, or JSON for an agent whose rich_data is off or that is older
    than version 6. The agent takes the text for the value: a file then contains `Deferred({...`, and the run counts
    as successful."""
    document = case.step.response
    if not isinstance(document, d.Catalog) or case.run.tool:
        return
    lost = [
        f"{resource.ref}, {name}"
        for resource in document.resources
        for name, value in resource.parameters.items()
        if _is_text(value)
    ]
    if lost:
        more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
        form = "PSON" if media_type(case) == "text/pson" else media_type(case) or "a format"
        yield Statement(
            f"the catalog came as {cut(form, 60)} without rich data: {cut(lost[0])}{more} is the text 'Deferred({{...'",
            at=(places.meaning(_TEXT, "catalog"), *places.response_header(case, "content-type")),
        )


def _is_text(value: object, deep: int = _DEEP) -> bool:
    """Whether a value, or one within it, is the text of a deferred function."""
    if isinstance(value, str):
        return value.startswith(_TEXT)
    if deep and isinstance(value, list | dict):
        return any(_is_text(item, deep - 1) for item in (value.values() if isinstance(value, dict) else value))
    return False

"""P16 and P18: deferred values that reach the node as text."""

from typing import Any

from inspector.rules.kit import *

_TEXT = "Deferred({'name' => "
_LOST = "Deferred({'name' => 'sprintf', 'arguments' => ['hello %s', 'you']})"
_RICH = "application/vnd.puppet.rich+json"
"""The format in which a Deferred arrives as such: a text in it was one already on the master."""
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
    rich = media_type(case) == _RICH
    lost = [] if rich else [place for place, whole_text in _deferred_texts(document) if whole_text]
    if lost:
        more = f" and {len(lost) - 1} more" if len(lost) > 1 else ""
        form = "PSON" if media_type(case) == "text/pson" else media_type(case) or "a format"
        yield Statement(
            f"the catalog came as {cut(form, 60)} without rich data: {cut(lost[0])}{more} is the text 'Deferred({{...'",
            at=(places.meaning(_TEXT, "catalog"), *places.response_header(case, "content-type")),
        )


@rule(
    "P18",
    Severity.ERROR,
    at=(Kind.CATALOG,),
    title="a deferred value was put into a string",
    fix=(
        on_master("pass the Deferred as the whole value of the parameter, in the manifest"),
        on_master("put the string itself into a Deferred: `Deferred('sprintf', ['password=%s', $secret])`, or "
                  "`inline_epp`", only_if="it has to be within a text"),
    ),
    source="docs/protocol.md#rich-data",
    explains=("P01", "P15"),
    good=lambda: [
        talk(plugins(), catalog(resources=_file({"__ptype": "Deferred", "name": "sprintf"})), report()),
    ],
    bad=lambda: [
        talk(plugins(), catalog(resources=_file(f"password={_LOST}")), report()),
        talk(plugins(), catalog(resources=[{"type": "Exec", "title": f"/bin/call {_LOST}", "parameters": {}}]),
             report()),
        talk(plugins(), altered(catalog(resources=_file([_LOST])), headers={"Accept": _RICH},
                                answers={"Content-Type": _RICH}), report()),
    ],
)  # fmt: skip
def deferred_in_string(case: ExchangeCase) -> Iterator[Statement]:
    """A parameter in the catalog contains the text of a deferred function within a text: the manifest interpolated it,
    or joined it with others. Puppet makes a text of it on the master, and the agent never evaluates it: a file then
    contains `Deferred({...`, a command runs with it, and the run may even count as successful."""
    document = case.step.response
    if not isinstance(document, d.Catalog) or case.run.tool:
        return
    rich = media_type(case) == _RICH
    found = [place for place, whole_text in _deferred_texts(document) if rich or not whole_text]
    if found:
        yield Statement(
            f"a part of {some(found)} is the text 'Deferred({{...'", at=places.meaning("Deferred({", "catalog")
        )


def _deferred_texts(document: d.Catalog) -> Iterator[tuple[str, bool]]:
    """Yield the parameters with the text of a deferred function, and whether it is a whole text."""
    for resource in document.resources:
        for name, value in (*resource.parameters.items(), ("title", resource.title)):
            found = [text for text in _texts(value) if _TEXT in text]
            if found:
                yield f"{name} of {resource.ref}", any(text.startswith(_TEXT) for text in found)


def _texts(value: object, deep: int = _DEEP) -> Iterator[str]:
    """Yield the texts in a value."""
    if isinstance(value, str):
        yield value
    elif deep and isinstance(value, list | dict):
        for item in value.values() if isinstance(value, dict) else value:
            yield from _texts(item, deep - 1)

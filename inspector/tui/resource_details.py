"""What is known of one resource: its outcome, its log lines, where it is, and its parameters."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Any

from inspector.explain import resource_outcomes
from inspector.pages import catalog, highlight, languages, palette
from inspector.pages.styles import KEY, NULL, REFERENCE
from inspector.text import excerpt, seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inspector.explain.resource_outcomes import Applied
    from inspector.protocol import documents as d
    from inspector.tui.part import Details

VALUE = 400
"""Maximum number of characters of a value."""
MESSAGE = 4000
"""Maximum number of characters of a message, which may contain a diff."""
MANY = 200
"""Maximum number of lines of one kind."""


def cut(value: str) -> str:
    """The beginning of a value."""
    return excerpt(value, VALUE)


def time(item: Applied) -> str:
    """How long a resource took; a dash if that is not known."""
    return "-" if item.time is None else seconds(item.time)


def describe(item: Applied, logs: Sequence[d.LogLine], details: Details) -> None:
    """Add the details of a resource, and its log lines."""
    line = details.line
    line("resource", cut(item.ref), f"bold {REFERENCE}")
    line("status", item.status, palette.RESOURCES[item.status])
    if item.result:
        line("evaluated in", time(item))
    for status, what, message in islice(item.events, MANY):
        _message(details, f"event {status}", f"{what}: {message}" if what else message)
    for level, message in resource_outcomes.messages(item, logs, MANY):
        _message(details, f"log {level}", message)
    if item.place:
        line("file", item.place)
    if path := item.path:
        line("contained in", cut(" / ".join(path)), REFERENCE)
    for source in item.sources:
        line("source", cut(source))
    for kind, other in islice(item.relations, MANY):
        line(kind, cut(other), REFERENCE)
    if resource := item.resource:
        if resource.tags:
            line("tags", cut(", ".join(resource.tags)), NULL)
        if resource.exported:
            line("exported", "yes")
        for name, value in islice(item.parameters, MANY):
            _parameter(details, resource, name, value)


def _message(details: Details, label: str, message: str) -> None:
    begin = excerpt(message.strip("\n"), MESSAGE)
    details.line(label, begin, language=languages.of_content(begin.encode("utf-8", "replace")))


def _parameter(details: Details, resource: d.Resource, name: str, value: Any) -> None:
    style, language = "", languages.PLAIN
    if isinstance(value, dict | list):
        language = languages.JSON
    elif isinstance(value, str) and "\n" in value.rstrip("\n"):
        language = catalog.language(resource) if name == "content" else languages.PLAIN
    else:
        style = highlight.style_of(value)
    details.line(f"  {name}", cut(resource_outcomes.shown(value)), style, language, KEY)

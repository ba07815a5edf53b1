"""Catalogs with fields of other types than a master sends, read as an agent reads them.

Ruby asks no field for its type: ``exported`` may be text, ``tags`` one text instead of a list. What no agent can read
is left out, and the catalog says why (``Catalog.unreadable``).
"""

from __future__ import annotations

from itertools import chain
from typing import Any

import msgspec

from inspector.protocol.bodies import Unreadable
from inspector.protocol.catalogs import Catalog, UnreadableCatalog
from inspector.protocol.files import FileMetadata

_LONGEST_LINE = 9
"""Digits of the number of a line."""
_NAMES = {type(None): "null", bool: "true or false", int: "a number", float: "a number", str: "text", list: "a list"}


def read(value: Any) -> Catalog:
    """Return the catalog in any structure. Raises Unreadable if it is no mapping, or its names are no text."""
    if not isinstance(value, dict):
        raise Unreadable(f"the catalog is {_named(value)}, not a mapping")
    try:
        return _Reader().catalog(value)
    except msgspec.ValidationError as error:
        raise Unreadable(str(error)) from error


class _Reader:
    """Reads one catalog, and remembers the first thing that an agent could not read."""

    def __init__(self) -> None:
        self._unreadable = ""

    def _refuse(self, reason: str) -> None:
        self._unreadable = self._unreadable or reason

    def catalog(self, value: dict[str, Any]) -> Catalog:
        # In the order in which an agent reads them: the first reason is the agent's.
        tags = _tags(value.get("tags"))
        environment = self._environment(value.get("environment"))
        resources = [found for entry in self._entries(value, "resources") if (found := self._resource(entry))]
        edges = [found for entry in self._entries(value, "edges") if (found := self._edge(entry))]
        version, form = value.get("version"), value.get("catalog_format")
        fields = {
            "name": _text(value.get("name")),
            "environment": environment,
            "version": version if type(version) in (int, float) else _optional(version),
            "catalog_uuid": _optional(value.get("catalog_uuid")),
            "code_id": _optional(value.get("code_id")),
            "catalog_format": form if type(form) is int else None,
            "resources": resources,
            "classes": _tags(value.get("classes")),
            "edges": edges,
            "tags": tags,
            "metadata": self._metadata("metadata", value.get("metadata")),
            "recursive_metadata": {
                title: {source: self._tree(tree) for source, tree in self._mapping("recursive_metadata", by).items()}
                for title, by in self._mapping("recursive_metadata", value.get("recursive_metadata")).items()
            },
        }
        if _true(form) and type(form) not in (int, float) and resources:
            self._refuse(f"catalog_format is {_named(form)}, not a number")
        if self._unreadable:
            return msgspec.convert(fields | {"unreadable": self._unreadable}, UnreadableCatalog)
        return msgspec.convert(fields, Catalog)

    def _environment(self, value: Any) -> str | None:
        if not _true(value) or isinstance(value, str):
            return value or None
        self._refuse(f"environment is {_named(value)}, not text")
        return None

    def _entries(self, value: dict[str, Any], field: str) -> list[Any]:
        entries = value.get(field)
        if isinstance(entries, list):
            return entries
        if _true(entries) and entries != {}:
            self._refuse(f"{field} is {_named(entries)}, not a list")
        return []

    def _resource(self, entry: Any) -> dict[str, Any] | None:
        if not isinstance(entry, dict):
            self._refuse(f"an entry of resources is {_named(entry)}, not a mapping")
            return None
        place = " ".join(_text(entry[name]) for name in ("type", "title", "file", "line") if _true(entry.get(name)))
        for name in ("type", "title"):
            if not _true(entry.get(name)):
                self._refuse(f"No resource {name} provided in serialized data ({place or 'an empty one'})")
                return None
        parameters = entry.get("parameters")
        if isinstance(parameters, list):
            parameters = {_text(item): None for item in parameters}
        elif _true(parameters) and not isinstance(parameters, dict):
            self._refuse(f"parameters is {_named(parameters)}, not a mapping ({place})")
        sensitive = entry.get("sensitive_parameters")
        named = isinstance(sensitive, list) and all(isinstance(name, str) for name in sensitive)
        if _true(sensitive) and sensitive != {} and not named:
            self._refuse(f"sensitive_parameters is no list of text ({place})")
        return {
            "type": _text(entry["type"]),
            "title": _text(entry["title"]),
            "parameters": parameters if isinstance(parameters, dict) else {},
            "file": _optional(entry.get("file")),
            "line": _line(entry.get("line")),
            "exported": _true(entry.get("exported")),
            "sensitive_parameters": _tags(sensitive),
            "tags": _tags(entry.get("tags")),
            "kind": _optional(entry.get("kind")),
        }

    def _edge(self, entry: Any) -> dict[str, Any] | None:
        if not isinstance(entry, dict):
            self._refuse(f"an entry of edges is {_named(entry)}, not a mapping")
            return None
        for end in ("source", "target"):
            if not isinstance(entry.get(end), str):
                self._refuse(f"the {end} of an edge is {_named(entry.get(end))}, not a reference to a resource")
                return None
        return {name: entry[name] for name in ("source", "target", "event", "callback") if name in entry}

    def _mapping(self, field: str, value: Any) -> dict[Any, Any]:
        if isinstance(value, dict):
            return value
        if _true(value) and value != []:
            self._refuse(f"{field} is {_named(value)}, not a mapping")
        return {}

    def _tree(self, value: Any) -> list[FileMetadata]:
        if not isinstance(value, list):
            self._refuse(f"an entry of recursive_metadata is {_named(value)}, not a list")
            return []
        return [*self._metadata("recursive_metadata", dict(enumerate(value))).values()]

    def _metadata(self, field: str, value: Any) -> dict[Any, FileMetadata]:
        found = {}
        for name, entry in self._mapping(field, value).items():
            if not isinstance(entry, dict):
                self._refuse(f"an entry of {field} is {_named(entry)}, not a mapping")
                continue
            try:
                found[name] = msgspec.convert(entry, FileMetadata)
            except msgspec.ValidationError:
                texts = {part: value for part, value in entry.items() if isinstance(value, str) and part != "checksum"}
                found[name] = msgspec.convert(texts, FileMetadata)
        return found


def _true(value: Any) -> bool:
    """Whether a value counts as true in Ruby."""
    return value is not None and value is not False


def _named(value: Any) -> str:
    return _NAMES.get(type(value), "a mapping")


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else "" if value is None else str(value)


def _line(value: Any) -> int | None:
    if isinstance(value, str) and value.isdecimal() and len(value) <= _LONGEST_LINE:
        return int(value)
    return value if type(value) is int else None


def _optional(value: Any) -> str | None:
    return _text(value) if _true(value) else None


def _tags(value: Any) -> list[str]:
    """Return the texts in a list of lists, or the one text."""
    found: list[str] = []
    waiting = [[*chain.from_iterable(value.items())] if isinstance(value, dict) else value] if _true(value) else []
    while waiting:
        item = waiting.pop()
        if isinstance(item, list):
            waiting += reversed(item)
        elif item is not None:
            found.append(_text(item))
    return found

"""Puppet's own names for requests: find, search, save, head or destroy of an indirection.

docs/protocol.md#indirections-and-methods
"""

from __future__ import annotations

from typing import Literal

from inspector import regex

type Verb = Literal["find", "search", "save", "head", "destroy"]

INDIRECTIONS = (
    "catalog", "certificate", "certificate_request", "certificate_revocation_list", "certificate_status",
    "certificate_statuses", "facts", "facts_search", "file_bucket_file", "file_content", "file_metadata",
    "file_metadatas", "instrumentation_data", "instrumentation_listener", "instrumentation_listeners",
    "instrumentation_probe", "instrumentation_probes", "inventory", "key", "node", "report", "resource", "resources",
    "resource_type", "resource_types", "run", "status", "statuses",
)  # fmt: skip
"""Indirections as they appear in URLs, singular and plural. Other paths are not indirections and have no verbs."""

_METHODS: dict[str, Verb] = {"GET": "find", "POST": "find", "PUT": "save", "HEAD": "head", "DELETE": "destroy"}
_SINGULAR = frozenset({"facts", "status", "certificate_status"})


def verb(method: str, path: str) -> Verb | None:
    """The indirector's name for a request; ``path`` is the part below the environment or ``/puppet/v3``.

    None if it is not an indirection, or if a master does not support the method.
    """
    name, _, key = path.partition("/")
    return _verb(method, name) if key and name in INDIRECTIONS else None


def verbs(methods: tuple[str, ...], pattern: str) -> tuple[Verb, ...]:
    """The indirector's names for requests to a row of the endpoint table: each once, in the order of ``methods``."""
    head = _HEAD.match(pattern)
    names = [name for name in INDIRECTIONS if head and regex.fullmatch(head[0], name)]
    tried = (_verb(method, name) for method in methods for name in names)
    return tuple(dict.fromkeys(name for name in tried if name))


_HEAD = regex.compile(r"(?P<it>(?:\(\?:[^()]*\)\??|[a-z_]\??)+)/")
"""A pattern's first segment, if another segment follows."""


def _verb(method: str, name: str) -> Verb | None:
    plural = name == "inventory" or name.endswith(("s", "_search"))
    if plural and name not in _SINGULAR:
        return "search" if method == "GET" else None
    return _METHODS.get(method)

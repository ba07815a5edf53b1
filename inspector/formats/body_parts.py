"""The parts of a body that can go: elements of lists, facts, parameters, what a report says of each resource.

The fields of documents stay (the name of a catalog, the type of a resource): an agent can read what is left.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import quote

import msgspec

from inspector.formats import embedded
from inspector.privacy import rewrite
from inspector.protocol import bodies

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from inspector.model import Message

DEEP = frozenset({"values", "parameters"})
"""Fields whose mappings have any names, at any depth: facts, parameters of resources."""
SHALLOW = frozenset({"resource_statuses", "metrics", "metadata", "recursive_metadata"})
"""Fields whose mappings have any names, but what these name has a form of its own."""
TYPED = "__ptype"
"""A mapping with this name stands for one value of Puppet's."""
LARGEST = 2**24
"""Bytes of the largest body that is taken apart."""
_FACTS = b"facts="


class Part(NamedTuple):
    """A part of a structure: which list or mapping it is in, and where there."""

    container: int
    key: int | str


class Body(NamedTuple):
    """The structure of a body, and how another one is written in its place."""

    value: Any
    write: Callable[[Any], bytes]


def opened(message: Message) -> Body | None:
    """Return the structure of a message's body; None if it has none that can be written again."""
    media = rewrite.media(message)
    try:
        plain = bodies.plain(message)
        if len(plain) > LARGEST:
            return None
        if media == rewrite.FORM:
            return _form(plain)
        if media in bodies.PACKED:
            return Body(bodies.structure(plain, media, Any), msgspec.msgpack.encode)
        if "json" in media or "pson" in media:
            return Body(bodies.structure(plain, media, Any), msgspec.json.encode)
    except (bodies.Unreadable, *bodies.WRONG):
        pass
    return None


def _form(plain: bytes) -> Body | None:
    """Return the facts in a form; None if it has none in JSON. Raises Unreadable."""
    fields = plain.split(b"&")
    at = next((number for number, field in enumerate(fields) if field.startswith(_FACTS)), None)
    if at is None:
        return None
    facts, layers = bodies.unescape(fields[at].removeprefix(_FACTS)), 1
    if not facts.lstrip().startswith(b"{"):
        facts, layers = bodies.unescape(facts), 2

    def write(value: Any) -> bytes:
        text = msgspec.json.encode(value)
        for _ in range(layers):
            text = quote(text, safe="").encode()
        return b"&".join([*fields[:at], _FACTS + text, *fields[at + 1 :]])

    return Body(bodies.structure(facts, "application/json", Any), write)


def parts(value: Any, depth: int) -> list[Part] | None:
    """Return what can go of the lists and mappings at a depth; None if there are none as deep as that."""
    level = [(value, False, False)]
    for _ in range(depth):
        level = [
            (child, deep or key in DEEP or key in SHALLOW, deep or key in DEEP)
            for node, _, deep in level
            for key, child in (node.items() if isinstance(node, dict) else ((0, child) for child in node))
            if isinstance(child, dict | list)
        ]
    found = [
        Part(id(node), key)
        for node, free, _ in level
        if isinstance(node, list) or (free and TYPED not in node)
        for key in (range(len(node)) if isinstance(node, list) else node)
    ]
    return found if level else None


def without(value: Any, gone: Collection[Part]) -> Any:
    """Return a structure without some of its parts; itself is not changed."""
    if isinstance(value, dict):
        place = id(value)
        return {key: without(child, gone) for key, child in value.items() if (place, key) not in gone}
    if isinstance(value, list):
        place = id(value)
        return [without(child, gone) for key, child in enumerate(value) if (place, key) not in gone]
    return value


def with_body[M: Message](message: M, plain: bytes) -> M:
    """Return a message with another body, with its Content-Encoding and its Content-Length."""
    packed = bool(plain) and embedded.unpacked(message)[1]
    body = rewrite.encoded(message, plain) if packed else plain
    longer = len(body) - len(message.body)
    headers = tuple((name, rewrite.promised(name, value, longer)) for name, value in message.headers)
    return dataclasses.replace(message, headers=headers, body=body, digest="")

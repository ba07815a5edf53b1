"""What every document must stand, whatever bytes it came from: being shown, and having all of it looked at."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from inspector.protocol import decode, rich
from inspector.protocol import documents as d

if TYPE_CHECKING:
    from inspector.protocol.decode import Decoder

DECODERS: dict[str, Decoder] = {
    name: value
    for name, value in sorted(vars(decode).items())
    if getattr(value, "__qualname__", "") == decode.node.__qualname__
}
"""Every decoder there is, by name."""


def touch(document: d.Document) -> None:
    """Look at all of a document. Raises if anything of it does, or if it is none."""
    assert isinstance(document, d.Document.__value__)
    shown = d.plain(document)
    assert shown is not None
    assert shown["kind"] == type(document).__name__
    json.dumps(shown, ensure_ascii=False, allow_nan=False).encode()
    things: list[object] = [document]
    match document:
        case d.Catalog():
            things += document.resources
            for file in document.files:
                things += [file, *file.metadata]
            for resource in document.resources:
                assert document.find(resource.ref) is not None
                str(resource.values)
        case d.Report():
            things += document.metrics.values()
        case d.FileMetadatas():
            things += document.files
        case d.Facts():
            document.exceeded()
        case d.CatalogRequest() if document.facts is not None:
            touch(document.facts)
        case d.Data():
            str(rich.read(document.value))
        case d.Environments():
            things += document.environments.values()
        case _:
            pass
    for thing in things:
        for name in dir(type(thing)):
            if isinstance(getattr(type(thing), name), property):
                value = getattr(thing, name)
                if hasattr(value, "__next__"):
                    list(value)

"""A capture as lines of JSON, and back: ``export``'s records, and between them the connections that they came over."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import msgspec

from inspector.formats import export, lossless
from inspector.model import Connection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from inspector.formats.lossless import Item
    from inspector.summaries.summary import RunBrief


def lines(
    items: Iterable[Item], owner: Callable[[int], RunBrief | None] = lambda _: None, *, secrets: bool = False
) -> Iterator[str]:
    """A line for each (docs/json/export.schema.json), secrets masked unless they are wanted. ``owner`` tells whose a
    record is, by its number."""
    for item in items:
        if isinstance(item, Connection):
            yield json.dumps(lossless.connection(item, secrets=secrets), separators=(",", ":"))
        else:
            yield from export.jsonl([item], owner, secrets=secrets)


class _Body(msgspec.Struct):
    text: str | None = None
    base64: str | None = None

    def bytes(self) -> bytes:
        return (self.text or "").encode() if self.base64 is None else base64.b64decode(self.base64, validate=True)


class _Message(msgspec.Struct):
    headers: list[tuple[str, str]]
    body: _Body


class _Line(msgspec.Struct):
    """What of a record's line is read: the rest only says the same in other words."""

    exact: dict[str, Any]
    request: _Message | None = None
    response: _Message | None = None


def read(path: Path) -> Iterator[Item]:
    """What ``lines`` wrote, in that order. Raises OSError, and ValueError where it goes on with something else."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if not line.strip():
                continue
            try:
                yield _item(json.loads(line))
            except (ValueError, RecursionError) as error:
                raise ValueError(f"line {number} holds no record ({error})") from error


def _item(given: Any) -> Item:
    if isinstance(given, dict) and given.get("kind") == "connection":
        return lossless.connection_of(given)
    line = msgspec.convert(given, _Line)
    return lossless.record(line.exact, _message(line.request), _message(line.response))


def _message(given: _Message | None) -> lossless.Content:
    return (lossless.headers(given.headers), given.body.bytes()) if given else lossless.NONE

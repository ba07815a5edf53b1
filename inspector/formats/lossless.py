"""Records and connections as plain JSON without loss, and back: jsonl and HAR contain it so that ``import`` restores
exactly what was exported.

The headers and bodies of a record are not in it: the formats have their own fields for them. The certificates of its
connections are not in it either: a connection is written once, not with each of its exchanges.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from inspector.model import Closed, Connection, Exchange, Gap, Handshake, Leg

if TYPE_CHECKING:
    from inspector.model import Headers, Record

type CaptureItem = Connection | Record
"""What a capture consists of. In a sequence a connection comes before the first record that uses it."""

LARGEST = 2**63 - 1
"""The largest number that is accepted: the maximum of SQLite."""

type MessageContent = tuple[Headers, bytes]
"""A message's headers and its body, as on the wire."""
NONE: MessageContent = ((), b"")

_KINDS: dict[str, type[Exchange | Handshake | Gap]] = {"exchange": Exchange, "handshake": Handshake, "gap": Gap}


def exact(record: Record) -> dict[str, Any]:
    """Return a record without headers, bodies and certificates."""
    match record:
        case Exchange():
            response = record.response
            record = dataclasses.replace(
                record,
                agent=record.agent.bare,
                master=record.master.bare if record.master else None,
                request=dataclasses.replace(record.request, headers=(), body=b""),
                response=dataclasses.replace(response, headers=(), body=b"") if response else None,
            )
        case Handshake():
            record = dataclasses.replace(record, leg=record.leg.bare)
    return {"kind": type(record).__name__.lower()} | _filled(msgspec.to_builtins(record))


class ConnectionLine(msgspec.Struct):
    """A TLS connection to an agent or a master. What is unknown is absent, certificates are DER in base64."""

    kind: Literal["connection"]
    leg: Leg
    closed: Closed | None
    """How it ended; absent: not known."""


def connection(of: Connection) -> dict[str, Any]:
    """Return a connection."""
    return _filled(msgspec.to_builtins(ConnectionLine("connection", of.leg, of.closed)))


def _filled(fields: dict[str, Any]) -> dict[str, Any]:
    """Return the fields without those that are unknown or empty: reading restores these as defaults."""
    known = {key: value for key, value in fields.items() if value not in (None, (), [])}
    return {key: _filled(value) if isinstance(value, dict) else value for key, value in known.items()}


def record(fields: dict[str, Any], request: MessageContent = NONE, response: MessageContent = NONE) -> Record:
    """Restore a record, with the content of its request and its response. Raises ValueError."""
    kind = _KINDS.get(str(fields.get("kind")))
    if kind is None:
        raise ValueError(f"{fields.get('kind')!r} is not a kind of record")
    found = _read(fields, kind)
    if not isinstance(found, Exchange):
        return found
    return dataclasses.replace(
        found,
        request=dataclasses.replace(found.request, headers=request[0], body=request[1]),
        response=dataclasses.replace(found.response, headers=response[0], body=response[1]) if found.response else None,
    )


def connection_of(fields: dict[str, Any]) -> Connection:
    """Restore a connection. Raises ValueError."""
    return _read(fields, Connection)


def _read[T](fields: dict[str, Any], kind: type[T]) -> T:
    _check(fields)
    # Through JSON: what JSON cannot express (half a character, an infinite time) a capture cannot contain either.
    return msgspec.json.decode(msgspec.json.encode(fields), type=kind)


def _check(value: Any) -> None:
    match value:
        case dict():
            for item in value.values():
                _check(item)
        case int() if abs(value) > LARGEST:
            raise ValueError("a number in it is too large")


def headers(pairs: list[tuple[str, str]]) -> Headers:
    """Return names and values as a record has them: each character is a byte (Latin-1). Others are encoded as UTF-8."""
    return tuple((_latin1(name), _latin1(value)) for name, value in pairs)


def _latin1(text: str) -> str:
    return text if not text or max(text) <= "\xff" else text.encode("utf-8", "replace").decode("latin-1")

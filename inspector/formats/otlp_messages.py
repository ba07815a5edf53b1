"""The messages of OTLP in their JSON encoding, and how values and times are written in them.

Source: OTLP 1.x (opentelemetry-proto).
"""

from __future__ import annotations

import msgspec

from inspector.clocks import nanoseconds
from inspector.text import clean

ERROR = 2
"""A status; otherwise there is none."""

type Value = str | int | float | bool | list[str] | None


class AnyValue(msgspec.Struct, omit_defaults=True, rename="camel"):
    string_value: str | None = None
    bool_value: bool | None = None
    int_value: str | None = None
    """JSON has no integers of 64 bits: as text."""
    double_value: float | None = None
    array_value: ArrayValue | None = None


class ArrayValue(msgspec.Struct):
    values: list[AnyValue]


class KeyValue(msgspec.Struct):
    key: str
    value: AnyValue


class Event(msgspec.Struct, rename="camel"):
    time_unix_nano: str
    name: str
    attributes: list[KeyValue]


class Status(msgspec.Struct, omit_defaults=True, frozen=True):
    code: int = 0
    message: str = ""


class Span(msgspec.Struct, omit_defaults=True, rename="camel"):
    trace_id: str
    span_id: str
    name: str
    kind: int
    start_time_unix_nano: str
    end_time_unix_nano: str
    attributes: list[KeyValue]
    parent_span_id: str = ""
    events: list[Event] = []
    status: Status = Status()


def span_of(
    trace: str, ident: str, name: str, kind: int, began: float, ended: float, attributes: dict[str, Value],
    parent: str = "", error: str | None = None,
) -> Span:  # fmt: skip
    """Return a span from one time to another; ``error`` is the description of what went wrong, None: nothing."""
    start = nanoseconds(began)
    status = Status() if error is None else Status(ERROR, clean(error))
    return Span(trace, ident, name, kind, str(start), str(max(start, nanoseconds(ended))), attributes_of(attributes),
                parent, status=status)  # fmt: skip


def attributes_of(values: dict[str, Value]) -> list[KeyValue]:
    """Return attributes, without those that have no value."""
    return [KeyValue(key, _value(value)) for key, value in values.items() if value is not None and value != ""]


def _value(value: Value) -> AnyValue:
    match value:
        case bool():
            return AnyValue(bool_value=value)
        case int():
            return AnyValue(int_value=str(value))
        case float():
            return AnyValue(double_value=value)
        case list():
            return AnyValue(array_value=ArrayValue([_value(item) for item in value]))
    return AnyValue(string_value=clean(value or ""))


def encoded(message: object) -> str:
    """Return a message in JSON."""
    return msgspec.json.encode(message).decode()

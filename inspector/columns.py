"""Columns: what is public of a run or a record, with its type, unit, meaning and source, in one place.

A column is a field of a struct whose type carries its meaning: ``Annotated[str | None, about("The version.")]``. JSON,
its schema, the tables and their documentation are made of what ``of`` reads there. A field without a meaning is not
public.
"""

from __future__ import annotations

from functools import cache
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple, Union, get_args, get_origin, get_type_hints

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

type Utc = Annotated[str, msgspec.Meta(pattern=r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$")]
"""A time in JSON: ISO 8601, UTC, milliseconds (``text.utc``)."""
type Count = Annotated[int, msgspec.Meta(ge=0)]
type Number = Annotated[int, msgspec.Meta(ge=1)]
"""The number of a record or a run."""

_SQL = {bool: "BOOLEAN", int: "BIGINT", float: "DOUBLE"}


def about(text: str, unit: str = "", sql: str = "", *, run: bool = False, judged: bool = False) -> msgspec.Meta:
    """The meaning of a column, its unit, and its type in SQL if the Python type does not say it. ``run``: it names a
    run, in a spool by its place. ``judged``: its source is the judgement, not the attribute of ``Run`` of its name."""
    return msgspec.Meta(description=text, extra={"unit": unit, "sql": sql, "run": run, "judged": judged})


def moment(text: str) -> msgspec.Meta:
    """The meaning of a time: seconds since the epoch, microseconds in a spool, a TIMESTAMP in UTC in a table."""
    return about(text, "UTC", "TIMESTAMP")


def seconds(text: str) -> msgspec.Meta:
    """The meaning of a duration."""
    return about(text, "s", "FLOAT")


def number(text: str, unit: str = "") -> msgspec.Meta:
    """The meaning of a count."""
    return about(text, unit, "UINTEGER")


def size(text: str) -> msgspec.Meta:
    """The meaning of a number of bytes."""
    return about(text, "bytes", "UBIGINT")


def run_number(text: str) -> msgspec.Meta:
    """The meaning of a run's number."""
    return about(text, "", "UINTEGER", run=True)


class Column(NamedTuple):
    """A column."""

    name: str
    sql: str
    """Its type in SQL."""
    unit: str
    """Empty: it has none."""
    meaning: str
    run: bool = False
    """Whether it names a run."""
    judged: bool = False
    """Whether the judgement is its source."""
    types: tuple[Any, ...] = ()
    """Its types in Python: ``str | None`` are two."""

    @property
    def timed(self) -> bool:
        """Whether it is a time."""
        return self.sql == "TIMESTAMP"

    @property
    def key(self) -> tuple[str, ...]:
        """Its key in JSON; for bytes, the key of the object that it is in, and its own."""
        match self.unit:
            case "s":
                return (f"{self.name}_s",)
            case "bytes":
                return ("bytes", self.name)
        return (self.name,)


@cache
def of(struct: type[msgspec.Struct]) -> tuple[Column, ...]:
    """The columns of a struct, those of its bases first."""
    return tuple(_columns(struct))


def _columns(struct: type[msgspec.Struct]) -> Iterator[Column]:
    for name, hint in get_type_hints(struct, include_extras=True).items():
        if get_origin(hint) is not Annotated:
            continue
        value, meta = get_args(hint)
        types, extra = get_args(value) if get_origin(value) in (Union, UnionType) else (value,), meta.extra
        sql = extra["sql"] or next((_SQL[kind] for kind in types if kind in _SQL), "VARCHAR")
        yield Column(name, sql, extra["unit"], meta.description, extra["run"], extra["judged"], types)

"""The Parquet files of tables, each with rows of one table, day and site: how they are written, and read."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

from inspector import inputs
from inspector.errors import InspectorError
from inspector.fleet.database import DatabaseError, reported, text
from inspector.fleet.tables import TABLES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from duckdb import DuckDBPyConnection

    from inspector.columns import Column
    from inspector.fleet.spools import Spools
    from inspector.fleet.tables import Table

COMPACTED = "part-day-*.parquet"
"""The pattern of the names of compacted ones."""
FLEET = "part-fleet.parquet"
"""The name of the part with the findings of all captures together."""
_WRITTEN = "(FORMAT parquet, COMPRESSION zstd, PARQUET_VERSION v2, ROW_GROUP_SIZE 60000)"
_TIMES = ("queue", "compile", "serve")
"""The columns of exchanges that only a master's logs fill."""
_OBJECT = 2**26
"""Bytes of a line of a spool."""


def name_of(capture: str) -> str:
    """The name of a capture's part."""
    return f"part-{capture}.parquet"


def capture_of(part: Path) -> str:
    """The capture whose part it is."""
    return part.stem.removeprefix("part-")


def compacted(parts: Sequence[Path]) -> Path:
    """The path of the part that these ones become."""
    digest = hashlib.sha256("\0".join(part.name for part in parts).encode()).hexdigest()[:16]
    return parts[0].with_name(COMPACTED.replace("*", digest))


def keep_times(connection: DuckDBPyConnection, capture: str, parts: Sequence[Path]) -> None:
    """Note what a master's logs said of a capture's exchanges, which are in some parts: it stays where no log says more
    when they are staged."""
    rows = f"SELECT * FROM {read(parts)}" if parts else f"SELECT {_nulls(TABLES['exchanges'])}"
    columns = ", ".join(_TIMES)
    connection.execute(
        f"CREATE TABLE times AS SELECT seq, {columns} FROM ({rows}) "
        f"WHERE capture = {text(capture)} AND coalesce({columns}) IS NOT NULL"
    )


def staged(connection: DuckDBPyConnection, spools: Spools, site: str, name: str, folder: Path) -> Iterator[Path]:
    """Write the rows of spools as parts below a directory; yield their paths."""
    # It takes a spool for small, as it cannot count its rows, and would hold them in memory to look places up in them.
    connection.execute("SET disabled_optimizers = 'build_side_probe_side,join_order'")
    places = _json(spools.places, "place: 'BIGINT', number: 'BIGINT', certname: 'VARCHAR'") if spools.places else None
    nothing = "SELECT NULL::BIGINT AS place, NULL::BIGINT AS number, NULL::VARCHAR AS certname WHERE false"
    connection.execute(f"CREATE TABLE places AS {f'SELECT * FROM {places}' if places else nothing}")
    for table in TABLES.values():
        path = spools.path(table)
        if path is None:
            continue
        connection.execute(f"CREATE TABLE rows AS {_selection(table, path)}")
        if table.name == "exchanges":
            sets = ", ".join(f"{column} = times.{column}" for column in _TIMES)
            unknown = " AND ".join(f"rows.{column} IS NULL" for column in _TIMES)
            connection.execute(f"UPDATE rows SET {sets} FROM times WHERE times.seq = rows.seq AND {unknown}")
        yield from split(connection, table, site, name, folder)
        connection.execute("DROP TABLE rows")


def _selection(table: Table, path: Path) -> str:
    """Return the statement that selects a spool's rows, with the numbers of runs instead of their places."""
    types = ", ".join(f"{column.name}: '{_written_as(column)}'" for column in table.columns)
    source = _json(path, types)
    if table.key:
        return _distinct(table, source)
    columns = {column.name: _value(column, f"r.{column.name}") for column in table.columns}
    joins = ""
    for column in (column.name for column in table.columns if column.run):
        columns[column] = f"{column}_of.number::UINTEGER"
        joins += f" LEFT JOIN places {column}_of ON {column}_of.place = r.{column}"
    if table.of_agents:
        columns["certname"] = "coalesce(r.certname, run_of.certname)"
    chosen = ", ".join(f"{expression} AS {name}" for name, expression in columns.items())
    return f"SELECT {chosen} FROM {source} r{joins}"


def _distinct(table: Table, source: str) -> str:
    """Return the statement that selects rows once that are several times in a spool."""
    chosen = []
    for column in table.columns:
        how = {"time": "min", "last": "max"}.get(column.name, "any_value")
        value = column.name if column.name in table.key else f"{how}({column.name})"
        chosen.append(f"{_value(column, value)} AS {column.name}")
    return f"SELECT {', '.join(chosen)} FROM {source} GROUP BY {', '.join(table.key)}"


def _written_as(column: Column) -> str:
    """The type of a column in a spool. Numbers are read as texts: a capture may hold some that fit no number."""
    if column.timed or column.run:
        return "BIGINT"
    if column.sql in ("VARCHAR", "VARCHAR[]", "BOOLEAN"):
        return column.sql
    return "VARCHAR[]" if column.sql.endswith("[]") else "VARCHAR"


def _value(column: Column, value: str) -> str:
    """A value of a spool as one of the table; a number that does not fit is null."""
    if column.timed:
        return f"make_timestamp({value})"
    return value if column.run or _written_as(column) == column.sql else f"TRY_CAST({value} AS {column.sql})"


def _json(path: Path, columns: str) -> str:
    return (
        f"read_json({text(str(path))}, format='newline_delimited', compression='zstd', "
        f"maximum_object_size={_OBJECT}, columns={{{columns}}})"
    )


def split(connection: DuckDBPyConnection, table: Table, site: str, name: str, folder: Path) -> Iterator[Path]:
    """Write what is in ``rows`` as a part for each day; yield their paths."""
    for (day,) in connection.execute("SELECT DISTINCT time::DATE FROM rows ORDER BY 1").fetchall():
        part = folder / table.name / f"date={day}" / f"site={site}" / name
        part.parent.mkdir(parents=True, exist_ok=True)
        write(connection, f"SELECT * FROM rows WHERE time::DATE = DATE {text(str(day))}", table, part)
        yield part


def write(connection: DuckDBPyConnection, rows: str, table: Table, path: Path) -> None:
    """Write the rows that a statement selects as a part."""
    connection.execute(f"COPY ({rows} ORDER BY {table.order}) TO {text(str(path))} {_WRITTEN}")
    path.chmod(0o600)


def with_rows_of(connection: DuckDBPyConnection, capture: str, parts: Sequence[Path]) -> list[Path]:
    """Return the parts that have rows of a capture. One statement asks all of them: after years there are thousands."""
    if not parts:
        return []
    source = f"read_parquet([{_listed(parts)}], hive_partitioning=false, filename=true)"
    found = connection.execute(f"SELECT DISTINCT filename FROM {source} WHERE capture = {text(capture)}")
    return [Path(name) for (name,) in found.fetchall()]


def remove_rows(connection: DuckDBPyConnection, capture: str, part: Path, table: Table, fresh: Path) -> None:
    """Remove a capture's rows from a part; ``fresh`` is where the new one is made."""
    rest = f"SELECT * FROM {read([part])} WHERE capture <> {text(capture)}"
    if connection.execute(f"SELECT count(*) FROM ({rest})").fetchall() == [(0,)]:
        part.unlink()
    else:
        write(connection, rest, table, fresh)
        fresh.replace(part)


def damaged(connection: DuckDBPyConnection, parts: Sequence[Path]) -> Path | None:
    """The first part that cannot be read as one of its table; None if all can. Reads all of them."""
    for part in parts:
        table = TABLES[part.parents[2].name]
        try:
            with reported():
                show(connection, table, [part])
                connection.execute(f"SELECT count(*) FROM {table.name} AS r WHERE hash(r) = 0").fetchall()
        except DatabaseError:
            return part
    return None


def show(connection: DuckDBPyConnection, table: Table, parts: Sequence[Path]) -> None:
    """Make a view of a table of its parts, empty if there are none."""
    none = f"SELECT {_nulls(table)}, NULL::DATE AS date, NULL::VARCHAR AS site WHERE false"
    # The empty table comes first: columns that older parts do not have are there nevertheless.
    found = f" UNION ALL BY NAME SELECT * FROM {read(parts, hive=True)}" if parts else ""
    connection.execute(f"CREATE OR REPLACE VIEW {table.name} AS {none}{found}")


def _nulls(table: Table) -> str:
    return ", ".join(f"NULL::{column.sql} AS {column.name}" for column in table.columns)


def read(parts: Sequence[Path], *, hive: bool = False) -> str:
    """Return the source of the rows of parts; with ``hive`` also with the columns ``date`` and ``site``."""
    partitions = "hive_partitioning=true, hive_types={'date': DATE, 'site': VARCHAR}"
    return f"read_parquet([{_listed(parts)}], union_by_name=true, {partitions if hive else 'hive_partitioning=false'})"


def _listed(parts: Sequence[Path]) -> str:
    """Return the names of parts as SQL. Raises InspectorError if one is no file: a pipe is waited for, a link leads
    elsewhere."""
    for part in parts:
        if not inputs.regular(part, links=False):
            raise InspectorError(f"{part} is not a regular file.", "Remove it, and convert its captures again.")
    return ", ".join(text(str(part)) for part in parts)

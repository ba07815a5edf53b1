"""SQL over a directory of tables. Nothing but the tables can be read, and nothing can be written."""

from __future__ import annotations

import contextlib
import functools
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from inspector import regex
from inspector.errors import InspectorError
from inspector.fleet import database
from inspector.fleet.confined import ConfinedConnection, only_tables
from inspector.fleet.database import DatabaseError
from inspector.fleet.directory import OLDER, TableDirectory
from inspector.fleet.tables import PARTITIONS, TABLES

if TYPE_CHECKING:
    import datetime
    from collections.abc import Iterable, Iterator, Mapping

    from duckdb import DuckDBPyConnection

    from inspector.fleet.directory import Parts
    from inspector.fleet.queries.query import Query

    type Row = tuple[Any, ...]

BATCH = 1000
"""Rows that are in memory at once."""
ONLY_READS = "`sql` only reads: SELECT, WITH, VALUES, DESCRIBE, SUMMARIZE and SHOW, of the tables alone."
_KIND = regex.compile(r"^(?:TransactionContext|[A-Z][A-Za-z]*(?: [A-Za-z]+)?) Error: ")
"""How messages of DuckDB begin."""
_MISTAKE = regex.compile(
    r"(?:Binder|Catalog|Conversion|INTERRUPT|Not implemented|Out of Memory|Out of Range|Parser|Permission|Type) Error"
)
"""How those that are about a statement begin; others may be about a damaged part."""


class StatementError(InspectorError):
    """A statement cannot be executed."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a result."""

    name: str
    """No other column of the result has it."""
    type: str
    """Its type in SQL."""


@dataclass(frozen=True, slots=True)
class Result:
    """The result of a statement, read in batches."""

    columns: tuple[Column, ...]
    batches: Iterator[list[Row]]
    """The rows. Raises StatementError."""


def columns(table: str) -> tuple[str, ...]:
    """Return the names of a table's columns."""
    return tuple(column.name for column in (*TABLES[table].columns, *PARTITIONS))


@contextlib.contextmanager
def opened(root: Path) -> Iterator[Database]:
    """Open a directory of tables. Raises InspectorError."""
    database.check()
    directory = TableDirectory.open(root.resolve())
    with tempfile.TemporaryDirectory(prefix="puppet-inspector-", ignore_cleanup_errors=True) as work:
        connection = ConfinedConnection(Path(work), functools.partial(only_tables, root=directory.root))
        with contextlib.closing(connection):
            connection.start()
            yield Database(directory, connection)


class Database:
    """The tables of a directory, to ask in SQL."""

    def __init__(self, directory: TableDirectory, connection: ConfinedConnection) -> None:
        self._directory = directory
        self._connection = connection
        self._parts: Parts = {}
        """The files that the views show."""
        self._generation = 0
        """The process that has the views."""

    def statements(self, script: str) -> list[str]:
        """Split a text into its statements. Raises StatementError if one of them does not only read."""
        try:
            script.encode()
        except UnicodeEncodeError as error:
            raise StatementError(
                "The statement has bytes that are not UTF-8.", "To convert a file: iconv -f latin1 -t utf-8 FILE"
            ) from error
        with _explained():
            found = self._connection.extract_statements(script)
        for statement in found:
            if (kind := statement.kind) != "SELECT":
                name = "This statement" if kind == "MULTI" else kind.replace("_", " ")
                raise StatementError(f"{name} is not possible here.", ONLY_READS)
        return [statement.query.strip("; \n") for statement in found]

    @property
    def end(self) -> datetime.datetime | None:
        """When the latest record in the tables ended (UTC); None: there is none."""
        with self.result("SELECT max(last) FROM captures") as result:
            found: datetime.datetime | None = next(result.batches)[0][0]
        return found

    @contextlib.contextmanager
    def answer(self, query: Query, settings: Iterable[str] = ()) -> Iterator[Result]:
        """Answer a named query; ``settings`` are ``NAME=VALUE``. Otherwise like ``result``."""
        if query.judged:
            with self.result(OLDER) as older:
                self._directory.must_be_judged([row for batch in older.batches for row in batch])
        with self.result(query.sql, query.values(settings, self.end)) as result:
            yield result

    @contextlib.contextmanager
    def result(self, statement: str, values: Mapping[str, object] | None = None) -> Iterator[Result]:
        """Execute one statement that only reads. Until the end nobody changes the tables.

        Ctrl-C, or another signal that raises an exception in this thread, ends it. Raises InspectorError.
        """
        # In brackets it can only be a query: DuckDB refuses there what writes, also in a WITH clause.
        query = f"SELECT * FROM (\n{statement}\n)"
        with self._directory.locked(shared=True):
            with self._checked(), _explained(before=1):
                self._show()
                self._connection.execute(query, values)
                found = tuple(Column(*column) for column in self._connection.description)
            yield Result(found, self._batches())

    def _show(self) -> None:
        """Make the views of the files that there are now."""
        self._connection.start()
        if self._generation != self._connection.generation:
            self._generation, self._parts = self._connection.generation, {}
        self._parts = self._directory.show(cast("DuckDBPyConnection", self._connection), self._parts)

    @contextlib.contextmanager
    def _checked(self) -> Iterator[None]:
        """Where what DuckDB says is not about the statement, name the part that is damaged."""
        try:
            yield
        except StatementError as error:
            if _MISTAKE.match(str(error.__cause__)) is None:
                self._parts = {}
                self._directory.check_parts(cast("DuckDBPyConnection", self._connection))
            raise

    def _batches(self) -> Iterator[list[Row]]:
        while True:
            with self._checked(), _explained(before=1):
                rows = self._connection.fetchmany(BATCH)
            if not rows:
                return
            yield rows


@contextlib.contextmanager
def _explained(before: int = 0) -> Iterator[None]:
    """Raise errors of DuckDB in words of a user, with what it suggests as the hint. ``before`` is how many lines it got
    before those of the user."""
    try:
        yield
    except DatabaseError as error:
        message, hint = error.message, error.hint
        if message.startswith("Out of Memory"):
            raise StatementError(
                "The statement needs more memory than it gets.",
                "Ask for fewer columns, or for a shorter time: WHERE date >= '2026-11-01'",
            ) from error
        if "disabled by configuration" in message or "must be at the top level" in message:
            hint = ONLY_READS
        lines = [_numbered(line, before) for line in hint.expandtabs(2).splitlines() if line.strip()]
        sentence = _KIND.sub("", message).rstrip("!.") + "."
        raise StatementError(sentence[:1].upper() + sentence[1:], "\n".join(lines)) from error


def _numbered(line: str, before: int) -> str:
    """A line of a message with the user's number, where it quotes a line: ``LINE 2: select …``."""
    head, colon, rest = line.partition(":")
    number = head.removeprefix("LINE ")
    if not before or number == head or not number.isdigit():
        return line
    return f"LINE {int(number) - before}{colon}".ljust(len(head) + 1) + rest

"""Tables made of captures, and questions to them."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inspector.fleet import conversion, database
from inspector.fleet.directory import TableDirectory
from tests.support.captures import save

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from duckdb import DuckDBPyConnection

    from inspector.model import Record

SITE = "paris"


def converted(folder: Path, *captures: Path) -> TableDirectory:
    """The tables of captures, in a directory within this one."""
    directory = TableDirectory.create(folder / "tables")
    for capture in captures:
        conversion.convert(capture, directory, SITE)
    return directory


def of_records(folder: Path, records: Iterable[Record], name: str = "a.sqlite") -> TableDirectory:
    """The tables of a capture with these records."""
    return converted(folder, save(folder / name, *records))


@contextlib.contextmanager
def shown(directory: TableDirectory) -> Iterator[DuckDBPyConnection]:
    """A database with the tables, in this process: it takes no time to start."""
    with (
        tempfile.TemporaryDirectory() as work,
        directory.locked(shared=True),
        database.opened(Path(work)) as connection,
        directory._blamed(connection),
    ):
        directory.show(connection)
        yield connection


def asked(directory: TableDirectory, statement: str) -> list[tuple[Any, ...]]:
    """What the tables answer."""
    with shown(directory) as connection:
        return connection.execute(statement).fetchall()

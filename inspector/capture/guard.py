"""SQLite files that somebody else may have made: they are opened without trust, and only with the tables we know.

A file can contain views that never end, triggers that run when something is written, and text that is not UTF-8, which
SQLite's own error messages would print raw.
"""

from __future__ import annotations

import contextlib
import sqlite3
from functools import lru_cache
from typing import TYPE_CHECKING

from inspector import inputs
from inspector.errors import CaptureError

if TYPE_CHECKING:
    from pathlib import Path

    type Tables = dict[str, tuple[tuple[str, int, int], ...]]

LARGEST = 2**31 - 1
"""Bytes of the largest value."""
_LIMITS = {
    sqlite3.SQLITE_LIMIT_LENGTH: LARGEST,
    sqlite3.SQLITE_LIMIT_ATTACHED: 1,
    sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 25_000,
}
_CONFIGURATION = {
    sqlite3.SQLITE_DBCONFIG_TRUSTED_SCHEMA: False,
    sqlite3.SQLITE_DBCONFIG_ENABLE_TRIGGER: False,
    sqlite3.SQLITE_DBCONFIG_ENABLE_VIEW: False,
    sqlite3.SQLITE_DBCONFIG_DEFENSIVE: True,
}
_MOST = 20
"""Entries of a schema that are read."""


DAMAGED = (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError, MemoryError)
"""Exceptions for values of other types and sizes than ours."""
BESIDE = ("-wal", "-shm", "-journal")
"""Name endings of the files that SQLite keeps beside a database."""


def plain(path: Path) -> bool:
    """Whether a database, and what SQLite would read beside it, are files: it waits for ever for a pipe."""
    beside = (path.with_name(f"{path.name}{end}") for end in BESIDE)
    return inputs.regular(path) and all(inputs.regular(file, links=False) for file in beside)


def distrust(db: sqlite3.Connection) -> None:
    """Make a connection safe for any file. Raises sqlite3.Error."""
    db.text_factory = _text
    for limit, value in _LIMITS.items():
        db.setlimit(limit, value)
    for option, enabled in _CONFIGURATION.items():
        db.setconfig(option, enabled)
    db.execute("PRAGMA cell_size_check = ON")


def _text(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def foreign(db: sqlite3.Connection, schema: str) -> str | None:
    """Return the first part of a file that its schema does not have; None if it has only our tables. Each of them must
    have our columns; one may be missing, and types differ (an older version). Raises sqlite3.Error."""
    try:
        return _foreign(db, _ours(schema))
    except UnicodeDecodeError:  # in the name of a column, which no text factory reads
        return "names that are not UTF-8"


def _foreign(db: sqlite3.Connection, ours: Tables) -> str | None:
    entries = db.execute("SELECT type, name, sql FROM sqlite_master").fetchmany(_MOST + 1)
    if len(entries) > _MOST:
        return "too many tables"
    for kind, name, sql in entries:
        if kind == "index" and (sql is None or name in ours):
            continue  # made by SQLite for a key
        if kind != "table" or name not in ours or not sql.upper().startswith("CREATE TABLE"):
            return f"the {kind} {name!r}"
        if _columns(db, name) != ours[name]:
            return f"other columns in the table {name!r}"
    return None


@lru_cache(maxsize=4)
def _ours(schema: str) -> Tables:
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        db.executescript(schema)
        names = db.execute("SELECT name FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        return {name: _columns(db, name) for (name,) in names}


def _columns(db: sqlite3.Connection, table: str) -> tuple[tuple[str, int, int], ...]:
    """Return a table's columns: name, place in the primary key, and whether it is computed."""
    rows = db.execute("SELECT name, pk, hidden FROM pragma_table_xinfo(?)", (table,))
    return tuple(rows.fetchmany(_MOST))


class damage:  # noqa: N801 - a context manager; as a generator it takes half as long again, twice for each record
    """Turn what damaged data raises into a CaptureError; what is only locked, or on a failing disk, is not damaged."""

    __slots__ = ("_path", "_subject")

    def __init__(self, path: Path, subject: str) -> None:
        self._path, self._subject = path, subject

    def __enter__(self) -> None:
        pass

    def __exit__(self, _kind: type[BaseException] | None, error: BaseException | None, _trace: object) -> None:
        if isinstance(error, sqlite3.OperationalError):
            hint = "Try again in a moment; if that fails, check its disk."
        elif isinstance(error, (sqlite3.Error, *DAMAGED)):
            hint = "The file is damaged; copy it again."
        else:
            return
        reason = str(error) or type(error).__name__
        raise CaptureError(f"{self._subject} of {self._path} cannot be read: {reason}.", hint) from error

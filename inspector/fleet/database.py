"""DuckDB, which comes with the extra ``sql``: how it is opened, and what it may do."""

from __future__ import annotations

import contextlib
import errno
import importlib.util
import os
from typing import TYPE_CHECKING, Any

from inspector import installation
from inspector.errors import InspectorError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from duckdb import DuckDBPyConnection

MISSING = (
    "Tables and SQL need DuckDB, which is not installed.",
    "This build does not contain it: pipx install 'puppet-inspector[sql]' does."
    if installation.ONE_FILE
    else "Install it beside puppet-inspector: pip install 'puppet-inspector[sql]'",
)
MEMORY = "600MB"
"""Memory that DuckDB may take; more is put on the disk."""
_FULL = (os.strerror(errno.ENOSPC), f'"errno":"{errno.ENOSPC}"', os.strerror(errno.EFBIG), f'"errno":"{errno.EFBIG}"')
"""Parts of DuckDB's messages when the disk is full, or a limit of the process is reached."""
INTERRUPTED = "Query interrupted"
"""DuckDB's message when it was interrupted by Ctrl-C."""


class DatabaseError(InspectorError):
    """DuckDB could not do what it was asked; the message is its own."""


def check() -> None:
    """Raise InspectorError if DuckDB is not installed."""
    if importlib.util.find_spec("duckdb") is None:
        raise InspectorError(*MISSING)


@contextlib.contextmanager
def opened(work: Path, *, large: bool = False) -> Iterator[DuckDBPyConnection]:
    """Open an empty database, with a directory for what does not fit into memory. ``large``: its tables are in that
    directory, too. Raises InspectorError."""
    try:
        import duckdb
    except ImportError as error:
        raise InspectorError(*MISSING) from error
    settings: dict[str, Any] = {
        "memory_limit": MEMORY,
        "temp_directory": str(work / "spill"),
        # Nothing is fetched from anywhere: what it has is enough.
        "autoinstall_known_extensions": False,
        "autoload_known_extensions": False,
    }
    if large:
        settings["preserve_insertion_order"] = False  # it takes memory, and they have none before they are sorted
    with (
        reported(),
        duckdb.connect(work / "rows.duckdb" if large else ":memory:", config=settings) as connection,
    ):
        yield connection


@contextlib.contextmanager
def reported() -> Iterator[None]:
    """Raise errors of DuckDB as DatabaseError."""
    import duckdb

    try:
        yield
    except RuntimeError as error:
        if str(error) != INTERRUPTED:
            raise
        raise KeyboardInterrupt from error  # DuckDB looks at signals, and forgets which one it was
    except duckdb.IOException as error:
        if not any(reason in str(error) for reason in _FULL):
            raise DatabaseError(str(error).partition("\n")[0].strip()) from error
        raise InspectorError(
            "There is no room left on the disk, or a file becomes larger than it may.",
            "Make room where the tables are written; where captures are read, in the directory TMPDIR.",
        ) from error
    except duckdb.Error as error:
        first, _, rest = str(error).partition("\n")
        raise DatabaseError(first.strip(), rest.strip()) from error


def text(value: str) -> str:
    """A text as a literal of SQL."""
    return "'" + value.replace("'", "''") + "'"

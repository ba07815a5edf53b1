"""A directory of tables: ``table/date=YYYY-MM-DD/site=NAME/part-*.parquet``, as Hive names partitions.

Each capture has its own part in each partition, named by what identifies the capture: converted again, it replaces
them. Parts of the same day can be compacted into one. Beside the tables are two hidden files: a lock, and the key of
the hashes of parameters, which stays on the site.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import platform
import secrets
import shutil
import tempfile
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from inspector import inputs, regex
from inspector.capture import paths
from inspector.errors import InspectorError
from inspector.fleet import database, spanning
from inspector.fleet.database import text
from inspector.fleet.tables import TABLES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from duckdb import DuckDBPyConnection

    from inspector.fleet.spools import Spools
    from inspector.fleet.tables import Table

    type Parts = Mapping[str, Sequence[Path]]

_SITE = regex.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}")
_WILDCARD = regex.compile(r"[*?\[]")
_PART = "part-*.parquet"
ALL = "all"
"""The name of the site of what was found in all captures together."""
_FLEET = "part-fleet.parquet"
_DAY = "part-day-"
"""How the name of a compacted part begins."""
_LOCK, _KEY, _WORK = ".lock", ".key", ".work-"
_WRITTEN = "(FORMAT parquet, COMPRESSION zstd, PARQUET_VERSION v2, ROW_GROUP_SIZE 60000)"
_OBJECT = 2**26
"""Bytes of a line of a spool."""


class TableDirectory:
    """A directory of tables, to write to and to read."""

    def __init__(self, root: Path) -> None:
        self.root = root

    @classmethod
    def create(cls, root: Path) -> TableDirectory:
        """Create a directory, or open an existing one. Raises InspectorError."""
        if root.exists() and not root.is_dir():
            raise InspectorError(f"{root} is not a directory.", "Name a directory for the tables with -o.")
        _check_path(root)
        foreign = next((path for path in root.glob("*") if path.name not in TABLES), None)
        if foreign is not None and not (root / _KEY).exists():
            raise InspectorError(
                f"{root} is no directory of tables: {foreign.name} is in it.", "Name a new directory with -o."
            )
        with _written(root):
            paths.make_folder(root)
            with contextlib.suppress(FileExistsError):
                _write_new(root / _KEY, secrets.token_hex(32).encode())
        made = cls(root)
        made._recover()
        return made

    @classmethod
    def open(cls, root: Path) -> TableDirectory:
        """Open a directory to read. Raises InspectorError."""
        _check_path(root)
        if not any((root / name).is_dir() for name in TABLES):
            raise InspectorError(
                f"There are no tables in {root}.",
                f"Convert captures into it: puppet-inspector tables CAPTURE -o {root}",
            )
        return cls(root)

    @property
    def key(self) -> bytes:
        """The key of the hashes of parameters. Raises InspectorError."""
        try:
            found = bytes.fromhex(inputs.read(self.root / _KEY, inputs.SMALL, links=False).decode())
        except (OSError, ValueError) as error:
            raise InspectorError(
                f"Cannot read the key of {self.root}: {error}.", "Restore .key in it, or convert into a new directory."
            ) from error
        return found

    @contextlib.contextmanager
    def locked(self, *, shared: bool = False) -> Iterator[None]:
        """Lock the directory: ``shared`` to read. Waits for others. Raises InspectorError."""
        flags = os.O_RDONLY if shared and not os.access(self.root, os.W_OK) else os.O_RDWR | os.O_CREAT
        with _written(self.root):
            try:
                descriptor = os.open(self.root / _LOCK, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            except FileNotFoundError:  # somebody else's directory, in which nobody writes
                yield
                return
        try:
            fcntl.flock(descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    @contextlib.contextmanager
    def working(self) -> Iterator[Path]:
        """Create a directory for work in this one; it is gone at the end. Raises InspectorError."""
        with _written(self.root):
            work = Path(tempfile.mkdtemp(prefix=_WORK, dir=self.root))
        try:
            yield work
        finally:
            shutil.rmtree(work, ignore_errors=True)

    # -- writing ----------------------------------------------------------------------------------------

    def put(self, capture: str, site: str, spools: Spools, work: Path) -> None:
        """Put the rows of a capture into the tables, instead of those that are there already. ``spools`` are closed.
        Raises InspectorError."""
        with database.opened(work, large=True) as connection:
            staged = list(_staged(connection, spools, site, _part(capture), work / "staged"))
        with self.locked(), _written(self.root):
            self._remove(capture, work)
            self._take(staged, work)

    def _take(self, staged: Sequence[Path], work: Path) -> None:
        for path in staged:
            target = self.root / path.relative_to(work / "staged")
            paths.make_folder(target.parent)
            path.replace(target)

    def _remove(self, capture: str, work: Path) -> None:
        for path in self.root.glob(f"*/date=*/site=*/{_part(capture)}"):
            path.unlink()
        with database.opened(work) as connection:
            for name, table in TABLES.items():
                compacted = sorted(self.root.glob(f"{name}/date=*/site=*/{_DAY}*.parquet"))
                for path in _with_rows_of(connection, capture, compacted):
                    _remove_rows(connection, capture, path, table, work / "rewritten.parquet")

    def conclude(self) -> int:
        """Compute what only several captures show, instead of what was computed before; return how much that is.
        Raises InspectorError."""
        with self.working() as work, self.locked(), _written(self.root):
            with database.opened(work) as connection:
                self.show(connection)
                connection.execute(f"CREATE TABLE rows AS {spanning.find(connection)}")
                staged = list(_parts(connection, TABLES["fleet_findings"], ALL, _FLEET, work / "staged"))
                ((number,),) = connection.execute("SELECT count(*) FROM rows").fetchall()
            for path in self.root.glob(f"fleet_findings/date=*/site=*/{_PART}"):
                path.unlink()
            self._take(staged, work)
        return int(number)

    def concluded(self) -> list[dict[str, Any]]:
        """What was found in all captures together, the worst first; times in seconds since the epoch."""
        columns = "certname, epoch(time) AS time, rule, severity, message, runs"
        rank = "CASE severity WHEN 'error' THEN 1 WHEN 'warning' THEN 2 ELSE 3 END"
        with self.working() as work, self.locked(shared=True), database.opened(work) as connection:
            self.show(connection)
            found = connection.execute(f"SELECT {columns} FROM fleet_findings ORDER BY {rank}, rule, certname, time")
            names = [column[0] for column in found.description]
            return [dict(zip(names, row, strict=True)) for row in found.fetchall()]

    def compact(self, before: str) -> int:
        """Make one part of those of each day before a date (``YYYY-MM-DD``); return how many are gone. Raises
        InspectorError."""
        gone = 0
        for name in TABLES:
            if name in ("captures", "fleet_findings"):
                continue  # what was converted can be told from its files; the other one is written as a whole
            for folder in sorted(self.root.glob(f"{name}/date=*/site=*")):
                if folder.parent.name.removeprefix("date=") < before:
                    gone += self._compact(TABLES[name], folder)
        return gone

    def _compact(self, table: Table, folder: Path) -> int:
        with self.working() as work, self.locked(), _written(self.root):
            parts = sorted(folder.glob(_PART))
            if len(parts) < 2:
                return 0
            fresh, target = work / "day.parquet", _compacted(parts)
            with database.opened(work) as connection:
                _write(connection, f"SELECT * FROM {_read(parts)}", table, fresh)
            # Nobody who is killed here leaves a row twice: first the old parts get names that nobody reads.
            retired = [part.rename(part.with_name(f".{part.name}")) for part in parts]
            fresh.replace(target)
            for part in retired:
                part.unlink()
            return len(parts) - 1

    def _recover(self) -> None:
        """Finish, or undo, a compaction that was interrupted."""
        with self.locked(), _written(self.root):
            for folder in {path.parent for path in self.root.glob(f"*/date=*/site=*/.{_PART}")}:
                retired = sorted(folder.glob(f".{_PART}"))
                parts = [path.with_name(path.name[1:]) for path in retired]
                done = _compacted(parts).exists()
                for path, part in zip(retired, parts, strict=True):
                    path.unlink() if done else path.rename(part)

    # -- reading ----------------------------------------------------------------------------------------

    def show(self, connection: DuckDBPyConnection, before: Parts = MappingProxyType({})) -> Parts:
        """Make a view of each table in a database, empty if there are no rows of it; return the files of each.

        Those whose files are the same as ``before`` are left: of thousands of files it takes a second to see what
        columns they have.
        """
        parts = {name: sorted(self.root.glob(f"{name}/date=*/site=*/{_PART}")) for name in TABLES}
        for name, table in TABLES.items():
            if before.get(name) != parts[name]:
                _show(connection, table, parts[name])
        return parts

    def captured(self, capture: str, site: str) -> dict[str, Any] | None:
        """The row of a capture in ``captures``; None if it was not converted, or for another site."""
        parts = list(self.root.glob(f"captures/date=*/site=*/{_part(capture)}"))
        if len(parts) != 1 or parts[0].parent.name != f"site={site}":
            return None
        with self.working() as work, database.opened(work) as connection:
            found = connection.execute(f"SELECT * FROM {_read(parts)}")
            names = [column[0] for column in found.description]
            rows = found.fetchall()
        return dict(zip(names, rows[0], strict=True)) if len(rows) == 1 else None


def _check_path(root: Path) -> None:
    if found := _WILDCARD.search(str(root.resolve())):
        raise InspectorError(
            f"Tables cannot be in {root.resolve()}: {found[0]!r} in a path stands for other files in DuckDB.",
            "Choose a directory without [ * and ? in its path.",
        )


def default_site() -> str:
    """This host's name, as the name of a site."""
    name = "".join(letter if _SITE.fullmatch(letter) or letter in ".-" else "-" for letter in platform.node())
    return name.strip(".-").partition(".")[0][:63] or "here"


def _part(capture: str) -> str:
    """The name of a capture's part."""
    return f"part-{capture}.parquet"


def _with_rows_of(connection: DuckDBPyConnection, capture: str, parts: Sequence[Path]) -> list[Path]:
    """Those parts that have rows of a capture. One statement asks all of them: after years there are thousands."""
    if not parts:
        return []
    source = f"read_parquet([{_listed(parts)}], hive_partitioning=false, filename=true)"
    found = connection.execute(f"SELECT DISTINCT filename FROM {source} WHERE capture = {text(capture)}")
    return [Path(name) for (name,) in found.fetchall()]


def _remove_rows(connection: DuckDBPyConnection, capture: str, part: Path, table: Table, fresh: Path) -> None:
    """Remove a capture's rows from a part; ``fresh`` is where the new one is made."""
    rest = f"SELECT * FROM {_read([part])} WHERE capture <> {text(capture)}"
    if connection.execute(f"SELECT count(*) FROM ({rest})").fetchall() == [(0,)]:
        part.unlink()
    else:
        _write(connection, rest, table, fresh)
        fresh.replace(part)


def _write(connection: DuckDBPyConnection, rows: str, table: Table, path: Path) -> None:
    """Write what a statement selects as a part."""
    connection.execute(f"COPY ({rows} ORDER BY {table.order}) TO {text(str(path))} {_WRITTEN}")
    path.chmod(0o600)


def _compacted(parts: Sequence[Path]) -> Path:
    """The path of the part that these ones become."""
    digest = hashlib.sha256("\0".join(part.name for part in parts).encode()).hexdigest()[:16]
    return parts[0].with_name(f"{_DAY}{digest}.parquet")


def site_of(value: str) -> str:
    """A site's name as it was given. Raises InspectorError if it cannot be the name of a directory."""
    if not _SITE.fullmatch(value):
        raise InspectorError(
            f"{value!r} is not the name of a site.", "Use letters, digits, dots, hyphens and underscores: --site paris"
        )
    return value


def _show(connection: DuckDBPyConnection, table: Table, parts: Sequence[Path]) -> None:
    columns = ", ".join(f"NULL::{column.sql} AS {column.name}" for column in table.columns)
    none = f"SELECT {columns}, NULL::DATE AS date, NULL::VARCHAR AS site WHERE false"
    # The empty table comes first: columns that older parts do not have are there nevertheless.
    found = f" UNION ALL BY NAME SELECT * FROM {_read(parts, hive=True)}" if parts else ""
    connection.execute(f"CREATE OR REPLACE VIEW {table.name} AS {none}{found}")


def _listed(parts: Sequence[Path]) -> str:
    return ", ".join(text(str(part)) for part in parts)


def _read(parts: Sequence[Path], *, hive: bool = False) -> str:
    partitions = "hive_partitioning=true, hive_types={'date': DATE, 'site': VARCHAR}"
    return f"read_parquet([{_listed(parts)}], union_by_name=true, {partitions if hive else 'hive_partitioning=false'})"


def _staged(connection: DuckDBPyConnection, spools: Spools, site: str, name: str, folder: Path) -> Iterator[Path]:
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
        yield from _parts(connection, table, site, name, folder)
        connection.execute("DROP TABLE rows")


def _parts(connection: DuckDBPyConnection, table: Table, site: str, name: str, folder: Path) -> Iterator[Path]:
    """Write what is in ``rows`` as a part for each day; yield their paths."""
    for (day,) in connection.execute("SELECT DISTINCT time::DATE FROM rows ORDER BY 1").fetchall():
        part = folder / table.name / f"date={day}" / f"site={site}" / name
        part.parent.mkdir(parents=True, exist_ok=True)
        _write(connection, f"SELECT * FROM rows WHERE time::DATE = DATE {text(str(day))}", table, part)
        yield part


def _json(path: Path, columns: str) -> str:
    return (
        f"read_json({text(str(path))}, format='newline_delimited', compression='zstd', "
        f"maximum_object_size={_OBJECT}, columns={{{columns}}})"
    )


def _selection(table: Table, path: Path) -> str:
    """What a spool's rows are in a table: with the numbers of runs instead of their places."""
    types = ", ".join(f"{column.name}: '{'BIGINT' if column.timed else column.sql}'" for column in table.columns)
    source = _json(path, types)
    if table.key:
        return _distinct(table, source)
    columns = {column.name: f"r.{column.name}" for column in table.columns}
    columns |= {column.name: f"make_timestamp(r.{column.name})" for column in table.columns if column.timed}
    joins = ""
    for column in (column.name for column in table.columns if column.run):
        columns[column] = f"{column}_of.number::UINTEGER"
        joins += f" LEFT JOIN places {column}_of ON {column}_of.place = r.{column}"
    if table.of_agents:
        columns["certname"] = "coalesce(r.certname, run_of.certname)"
    chosen = ", ".join(f"{expression} AS {name}" for name, expression in columns.items())
    return f"SELECT {chosen} FROM {source} r{joins}"


def _distinct(table: Table, source: str) -> str:
    """What was written several times, once."""
    chosen = []
    for column in table.columns:
        how = {"time": "min", "last": "max"}.get(column.name, "any_value")
        value = column.name if column.name in table.key else f"{how}({column.name})"
        chosen.append(f"{f'make_timestamp({value})' if column.timed else value} AS {column.name}")
    return f"SELECT {', '.join(chosen)} FROM {source} GROUP BY {', '.join(table.key)}"


@contextlib.contextmanager
def _written(root: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InspectorError(
            f"Cannot write the tables in {root}: {error.strerror or error}.", "Choose another directory with -o."
        ) from error


def _write_new(path: Path, data: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)

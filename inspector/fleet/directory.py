"""A directory of tables: ``table/date=YYYY-MM-DD/site=NAME/part-*.parquet``, as Hive names partitions.

Each capture has its own part in each partition, named by what identifies the capture: converted again, it replaces
them. Parts of the same day can be compacted into one. Beside the tables are two hidden files: a lock, and the key of
the hashes of parameters, which stays on the site.
"""

from __future__ import annotations

import contextlib
import fcntl
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
from inspector.fleet import database, parquet, spanning
from inspector.fleet.layout import KEY, PARTS, has_tables
from inspector.fleet.statements import RANK
from inspector.fleet.tables import TABLES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from duckdb import DuckDBPyConnection

    from inspector.fleet.spools import Spools
    from inspector.fleet.tables import Table

    type Parts = Mapping[str, Sequence[Path]]

_SITE = regex.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}")
_WILDCARD = regex.compile(r"[*?\[]")
ALL = "all"
"""The name of the site of what was found in all captures together."""
_LOCK, _WORK = ".lock", ".work-"


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
        foreign = next(root.glob("*"), None)
        if foreign is not None and not has_tables(root):
            raise InspectorError(
                f"{root} is no directory of tables: {foreign.name} is in it.", "Name a new directory with -o."
            )
        with _written(root):
            paths.make_folder(root)
            with contextlib.suppress(FileExistsError):
                _write_new(root / KEY, secrets.token_hex(32).encode())
        made = cls(root)
        made._recover()
        return made

    @classmethod
    def open(cls, root: Path) -> TableDirectory:
        """Open a directory to read. Raises InspectorError."""
        _check_path(root)
        if not has_tables(root):
            raise InspectorError(
                f"There are no tables in {root}/.",
                f"Convert captures into it: puppet-inspector tables CAPTURE -o {root}",
            )
        return cls(root)

    @property
    def key(self) -> bytes:
        """The key of the hashes of parameters. Raises InspectorError."""
        try:
            found = bytes.fromhex(inputs.read(self.root / KEY, inputs.SMALL, links=False).decode())
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
            staged = list(parquet.staged(connection, spools, site, parquet.name_of(capture), work / "staged"))
        with self.locked(), _written(self.root):
            self._remove(capture, work)
            self._take(staged, work)

    def _take(self, staged: Sequence[Path], work: Path) -> None:
        for path in staged:
            target = self.root / path.relative_to(work / "staged")
            paths.make_folder(target.parent)
            path.replace(target)

    def _remove(self, capture: str, work: Path) -> None:
        for path in self.root.glob(f"*/date=*/site=*/{parquet.name_of(capture)}"):
            path.unlink()
        with database.opened(work) as connection:
            for name, table in TABLES.items():
                compacted = sorted(self.root.glob(f"{name}/date=*/site=*/{parquet.COMPACTED}"))
                for path in parquet.with_rows_of(connection, capture, compacted):
                    parquet.remove_rows(connection, capture, path, table, work / "rewritten.parquet")

    def conclude(self) -> int:
        """Compute what only several captures show, instead of what was computed before; return how much that is.
        Raises InspectorError."""
        with self.working() as work, self.locked(), _written(self.root):
            with database.opened(work) as connection:
                self.show(connection)
                connection.execute(f"CREATE TABLE rows AS {spanning.find(connection)}")
                staged = list(parquet.split(connection, TABLES["fleet_findings"], ALL, parquet.FLEET, work / "staged"))
                ((number,),) = connection.execute("SELECT count(*) FROM rows").fetchall()
            for path in self.root.glob(f"fleet_findings/date=*/site=*/{PARTS}"):
                path.unlink()
            self._take(staged, work)
        return int(number)

    def concluded(self) -> list[dict[str, Any]]:
        """What was found in all captures together, the worst first; times in seconds since the epoch."""
        columns = "certname, epoch(time) AS time, rule, severity, message, runs"
        with self.working() as work, self.locked(shared=True), database.opened(work) as connection:
            self.show(connection)
            found = connection.execute(f"SELECT {columns} FROM fleet_findings ORDER BY {RANK}, rule, certname, time")
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
            parts = sorted(folder.glob(PARTS))
            if len(parts) < 2:
                return 0
            fresh, target = work / "day.parquet", parquet.compacted(parts)
            with database.opened(work) as connection:
                parquet.write(connection, f"SELECT * FROM {parquet.read(parts)}", table, fresh)
            # Nobody who is killed here leaves a row twice: first the old parts get names that nobody reads.
            retired = [part.rename(part.with_name(f".{part.name}")) for part in parts]
            fresh.replace(target)
            for part in retired:
                part.unlink()
            return len(parts) - 1

    def _recover(self) -> None:
        """Finish, or undo, a compaction that was interrupted."""
        with self.locked(), _written(self.root):
            for folder in {path.parent for path in self.root.glob(f"*/date=*/site=*/.{PARTS}")}:
                retired = sorted(folder.glob(f".{PARTS}"))
                parts = [path.with_name(path.name[1:]) for path in retired]
                done = parquet.compacted(parts).exists()
                for path, part in zip(retired, parts, strict=True):
                    path.unlink() if done else path.rename(part)

    # -- reading ----------------------------------------------------------------------------------------

    def show(self, connection: DuckDBPyConnection, before: Parts = MappingProxyType({})) -> Parts:
        """Make a view of each table in a database, empty if there are no rows of it; return the files of each.

        Those whose files are the same as ``before`` are left: of thousands of files it takes a second to see what
        columns they have.
        """
        parts = {name: sorted(self.root.glob(f"{name}/date=*/site=*/{PARTS}")) for name in TABLES}
        for name, table in TABLES.items():
            if before.get(name) != parts[name]:
                parquet.show(connection, table, parts[name])
        return parts

    def captured(self, capture: str, site: str) -> dict[str, Any] | None:
        """The row of a capture in ``captures``; None if it was not converted, or for another site."""
        parts = list(self.root.glob(f"captures/date=*/site=*/{parquet.name_of(capture)}"))
        if len(parts) != 1 or parts[0].parent.name != f"site={site}":
            return None
        with self.working() as work, database.opened(work) as connection:
            found = connection.execute(f"SELECT * FROM {parquet.read(parts)}")
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


def site_of(value: str) -> str:
    """A site's name as it was given. Raises InspectorError if it cannot be the name of a directory."""
    if not _SITE.fullmatch(value):
        raise InspectorError(
            f"{value!r} is not the name of a site.", "Use letters, digits, dots, hyphens and underscores: --site paris"
        )
    return value


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

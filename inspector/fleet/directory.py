"""A directory of tables: ``table/date=YYYY-MM-DD/site=NAME/part-*.parquet``, as Hive names partitions.

Each capture has its own part in each partition, named by what identifies the capture: converted again, it replaces
them. Parts of the same day can be compacted into one. Beside the tables are two hidden files: a lock, and the key of
the hashes of parameters, which stays on the site.
"""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import platform
import secrets
import shlex
import shutil
import tempfile
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, cast

from inspector import inputs, regex
from inspector.capture import paths
from inspector.capture.identity import MERGED
from inspector.errors import InspectorError
from inspector.fleet import database, parquet, spanning
from inspector.fleet.confined import OUT_OF_MEMORY, TOO_LONG, ConfinedConnection, only_tables
from inspector.fleet.layout import CLOSED, KEY, PARTS, has_tables
from inspector.fleet.names import CaptureNames
from inspector.fleet.statements import RANK
from inspector.fleet.tables import TABLES
from inspector.text import plural

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from duckdb import DuckDBPyConnection

    from inspector.fleet.spools import Spools
    from inspector.fleet.tables import Table

    type Parts = Mapping[str, Sequence[Path]]

_SITE = regex.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,62}")
_WILDCARD = regex.compile(r"[*?\[]")
ALL = "all"
"""The name of the site of what was found in all captures together."""
_LOCK, _WORK = ".lock", ".work-"
_KEY = 32
"""Bytes of the key."""
SECONDS, SECONDS_PER_MB = 60, 10
"""Seconds of computing time in which tables are read, and more for each MB: well-packed ones took two for each."""
OLDER = "SELECT count(*) FROM captures WHERE version < 2"
"""How many captures were converted when runs did not yet say what their nodes were."""

_STRANGE = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError)
"""What calculating with values of another's tables may raise: no time, an endless one, another type."""


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
            _make_key(root)
        made = cls(root)
        made._recover()
        return made

    @classmethod
    def open(cls, root: Path) -> TableDirectory:
        """Open a directory to read. Raises InspectorError."""
        _check_path(root)
        if not has_tables(root):
            if next(root.glob("*.sqlite"), None) is not None:
                raise InspectorError(
                    f"{root}/ holds captures, not tables.",
                    f"Make tables of them: puppet-inspector tables {shlex.quote(str(root))} -o tables/",
                )
            raise InspectorError(
                f"There are no tables in {root}/.",
                f"Convert captures into it: puppet-inspector tables CAPTURE -o {shlex.quote(str(root))}",
            )
        return cls(root)

    @property
    def key(self) -> bytes:
        """The key of the hashes of parameters. Raises InspectorError."""
        try:
            found = bytes.fromhex(inputs.read(self.root / KEY, inputs.SMALL, links=False).decode())
            if len(found) != _KEY:
                raise ValueError(f"it has {len(found)} bytes instead of {_KEY}")
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
        """Create a directory for work in this one; it is gone at the end. Not within ``locked``. Raises
        InspectorError."""
        with self.locked(shared=True), _written(self.root):  # nobody takes it for one that was left
            work = Path(tempfile.mkdtemp(prefix=_WORK, dir=self.root))
            descriptor = os.open(work, os.O_RDONLY | os.O_CLOEXEC)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            yield work
        finally:
            shutil.rmtree(work, ignore_errors=True)
            os.close(descriptor)

    @property
    def captures(self) -> frozenset[str]:
        """The identities of the captures in the tables."""
        return frozenset(parquet.capture_of(path) for path in self.root.glob(f"captures/date=*/site=*/{PARTS}"))

    def check(self, *, closed: bool) -> None:
        """Raise InspectorError if open tables are to become closed ones, or the reverse: real names would be among
        pseudonyms."""
        marker = self.root / CLOSED
        if closed and not marker.exists():
            if self.captures:
                raise InspectorError(
                    f"The tables in {self.root} are not closed.", "Make closed ones in a new directory with -o."
                )
            with _written(self.root):
                marker.touch(0o600)
        if not closed and marker.exists():
            raise InspectorError(
                f"The tables in {self.root} are closed (--shared): real names do not belong there.",
                "Make others in a new directory with -o.",
            )

    # -- writing ----------------------------------------------------------------------------------------

    def put(
        self, capture: str, site: str, spools: Spools, work: Path, *, last: int, sources: frozenset[str] = frozenset()
    ) -> bool:
        """Put the rows of a capture, whose last record is ``last``, into the tables, instead of those that are there
        already; of one that was merged also instead of those of its ``sources``. ``spools`` are closed. Return False if
        a copy of it with more records is there: that one stays. Raises InspectorError."""
        with database.opened(work, large=True) as connection:
            with self.locked(shared=True):
                # A merged one has other numbers with each record that one of its sources got.
                before = not sources and self._captured(capture, work) is not None
                names = (parquet.name_of(capture), parquet.COMPACTED) if before else ()
                exchanges = [path for name in names for path in self.root.glob(f"exchanges/date=*/site=*/{name}")]
                parquet.keep_times(connection, capture, exchanges)
            staged = list(parquet.staged(connection, spools, site, parquet.name_of(capture), work / "staged"))
        with self.locked(), _written(self.root):
            known = None if sources else self._captured(capture, work)
            if known is not None and (known["last_seq"] or 0) > last:
                return False
            for replaced in (capture, *sorted(self._replaced(sources, work) - {capture})):
                self._remove(replaced, work)
            self._take(staged, work)
        return True

    def _replaced(self, sources: frozenset[str], work: Path) -> set[str]:
        """Return what a capture replaces that was merged of ``sources``: those, and others that were merged of them.
        Raises InspectorError if the tables have more than that of one of these."""
        merged = self._merged_of(sources, work)
        gone = frozenset[str]().union(*merged.values()) - sources
        if gone:
            raise InspectorError(
                f"{plural(len(gone), 'capture')} that the tables have, read as one with some of these, "
                f"{'is' if len(gone) == 1 else 'are'} not here any more: what they show of these runs would be lost.",
                "Put them back, or convert into a new directory with -o. Captures of several places are removed "
                "together: let each month, for example, have a directory of them.",
            )
        return set(self.captures & sources | merged.keys())

    def merged_of(self, sources: Collection[str]) -> dict[str, frozenset[str]]:
        """The captures in the tables that were merged of some of these, and of which they were. Not within ``locked``.
        Raises InspectorError."""
        if not self._merged():
            return {}
        with self.working() as work:
            return self._merged_of(sources, work)

    def _merged(self) -> list[Path]:
        return sorted(self.root.glob(f"captures/date=*/site=*/{parquet.name_of(f'{MERGED}*')}"))

    def _merged_of(self, sources: Collection[str], work: Path) -> dict[str, frozenset[str]]:
        parts = self._merged()
        if not parts:
            return {}
        with database.opened(work) as connection:
            found = connection.execute(f"SELECT capture, sources FROM {parquet.read(parts)}").fetchall()
        return {name: frozenset(of) for name, of in found if not frozenset(of).isdisjoint(sources)}

    def _take(self, staged: Sequence[Path], work: Path) -> None:
        for path in staged:
            target = self.root / path.relative_to(work / "staged")
            paths.make_folder(target.parent)
            path.replace(target)

    def _remove(self, capture: str, work: Path) -> None:
        # What says that it is there goes first, and comes last: an interrupted conversion is done again.
        for name in ("captures", *TABLES):
            for path in self.root.glob(f"{name}/date=*/site=*/{parquet.name_of(capture)}"):
                path.unlink()
        with database.opened(work) as connection:
            for name, table in TABLES.items():
                compacted = sorted(self.root.glob(f"{name}/date=*/site=*/{parquet.COMPACTED}"))
                for path in parquet.with_rows_of(connection, capture, compacted):
                    parquet.remove_rows(connection, capture, path, table, work / "rewritten.parquet")

    def conclude(self) -> list[dict[str, Any]]:
        """Compute what only several captures show, instead of what was computed before; return it, the worst first,
        with times in seconds since the epoch. Raises InspectorError."""
        columns = "certname, epoch(time) AS time, rule, severity, message, runs"
        with self.working() as work, self.locked(), _written(self.root):
            with database.opened(work) as connection:
                with self._blamed(connection):
                    self.show(connection)
                    connection.execute(f"CREATE TABLE rows AS {spanning.find(connection)}")
                    names = CaptureNames.of(connection)
                staged = list(parquet.split(connection, TABLES["fleet_findings"], ALL, parquet.FLEET, work / "staged"))
                found = connection.execute(f"SELECT {columns} FROM rows ORDER BY {RANK}, rule, certname, time")
                fields = [column[0] for column in found.description]
                rows = [dict(zip(fields, row, strict=True)) for row in found.fetchall()]
            for path in self.root.glob(f"fleet_findings/date=*/site=*/{PARTS}"):
                path.unlink()
            self._take(staged, work)
        return [row | {"places": sorted(names.run(run) for run in row["runs"])} for row in rows]

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
            retired = [part.rename(part.with_name(f".{target.stem}.{part.name}")) for part in parts]
            fresh.replace(target)
            for part in retired:
                part.unlink()
            return len(parts) - 1

    def _recover(self) -> None:
        """Finish, or undo, a compaction that was interrupted, and remove what killed processes left."""
        with self.locked(), _written(self.root):
            for path in self.root.glob(f"*/date=*/site=*/.{PARTS}"):
                target, _, part = path.name[1:].partition(".")
                if path.with_name(f"{target}.parquet").exists():
                    path.unlink()
                else:
                    path.rename(path.with_name(part))
            for work in self.root.glob(f"{_WORK}*"):
                if not _in_use(work):
                    shutil.rmtree(work, ignore_errors=True)

    # -- reading ----------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def reading(self) -> Iterator[DuckDBPyConnection]:
        """Open a database that shows the tables, in a process with a limit of its own: they may be somebody else's.
        Nobody writes meanwhile, and nothing is written here. Raises InspectorError."""
        database.check()
        shown = TableDirectory(self.root.resolve())
        with (
            tempfile.TemporaryDirectory(prefix="puppet-inspector-", ignore_cleanup_errors=True) as work,
            self.locked(shared=True),
            contextlib.closing(
                ConfinedConnection(Path(work), functools.partial(only_tables, root=shown.root), self._seconds())
            ) as confined,
        ):
            confined.start()
            connection = cast("DuckDBPyConnection", confined)
            try:
                with shown._blamed(connection):
                    shown.show(connection)
                    yield connection
            except _STRANGE as error:
                raise InspectorError(
                    f"The tables in {self.root} have values that puppet-inspector does not write there.",
                    "Convert their captures again, into a new directory: puppet-inspector tables CAPTURES -o NEW",
                ) from error

    def _seconds(self) -> int:
        """Seconds of computing time in which tables of their size are read."""
        parts = (part for name in TABLES for part in self.root.glob(f"{name}/date=*/site=*/{PARTS}"))
        return SECONDS + round(SECONDS_PER_MB * sum(map(paths.size, parts)) / 1e6)

    @contextlib.contextmanager
    def _blamed(self, connection: DuckDBPyConnection) -> Iterator[None]:
        """If a part is damaged, raise InspectorError with its name instead of what DuckDB says."""
        try:
            with database.reported():
                yield
        except database.DatabaseError as error:
            if error.message == TOO_LONG or error.message.startswith(OUT_OF_MEMORY):
                what = "computing time" if error.message == TOO_LONG else "memory"
                raise InspectorError(
                    f"The tables in {self.root} take more {what} to read than puppet-inspector may use.",
                    "If somebody else made them, convert their captures yourself: puppet-inspector tables CAPTURES "
                    "-o NEW. If they are yours, make tables of fewer captures.",
                ) from error
            self.check_parts(connection)
            raise

    def check_parts(self, connection: DuckDBPyConnection) -> None:
        """Raise InspectorError if a part cannot be read. All of them are read; the views are others afterwards."""
        part = parquet.damaged(connection, sorted(self.root.glob(f"*/date=*/site=*/{PARTS}")))
        if part is None:
            return
        root = shlex.quote(str(self.root))
        raise InspectorError(
            f"{part} is damaged, or not a part of these tables.",
            "Convert its captures into a new directory."
            if part.match(parquet.COMPACTED)
            else f"Remove what there is of its capture, and convert it again: find {root} -name {part.name} -delete",
        )

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

    def must_be_judged(self, older: Sequence[tuple[int, ...]]) -> None:
        """Raise InspectorError if runs of the tables do not say what their nodes were; ``older`` is what ``OLDER``
        answers."""
        if number := older[0][0]:
            root = shlex.quote(str(self.root))
            raise InspectorError(
                f"An earlier version made these tables: the runs of {plural(number, 'capture')} do not say what their "
                "nodes were.",
                f"Convert them again: puppet-inspector tables CAPTURES -o {root}",
            )

    def captured(self, capture: str) -> dict[str, Any] | None:
        """The row of a capture in ``captures``, with its ``site``; None if it was not converted."""
        with self.working() as work:
            return self._captured(capture, work)

    def _captured(self, capture: str, work: Path) -> dict[str, Any] | None:
        parts = list(self.root.glob(f"captures/date=*/site=*/{parquet.name_of(capture)}"))
        if len(parts) != 1:
            return None
        with database.opened(work) as connection:
            found = connection.execute(f"SELECT * FROM {parquet.read(parts, hive=True)}")
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


def _make_key(root: Path) -> None:
    """Write the key, whole or not at all, unless there is one."""
    if (root / KEY).exists():
        return
    if next(root.glob(f"*/date=*/site=*/{PARTS}"), None) is not None:
        raise InspectorError(
            f"{root} has tables, but their key is gone: hashes of new rows could not be compared with those there.",
            f"Restore {KEY} in it, or convert into a new directory.",
        )
    descriptor, name = tempfile.mkstemp(prefix=KEY, dir=root)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(secrets.token_hex(_KEY).encode())
        with contextlib.suppress(FileExistsError):  # somebody else was faster
            (root / KEY).hardlink_to(name)
    finally:
        Path(name).unlink()


def _in_use(work: Path) -> bool:
    """Whether a process is working in a directory, or has just removed it."""
    try:
        descriptor = os.open(work, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False

"""DuckDB in a process with a limit of its own: what a statement needs beyond it, and whoever waits no longer, ends that
process alone.

DuckDB's own limit does not count lists and texts that a function makes, and nothing interrupts such a function.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import pickle
import resource
import signal
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from inspector import processes
from inspector.errors import InspectorError
from inspector.fleet import database
from inspector.fleet.database import DatabaseError, reported, text
from inspector.fleet.tables import TABLES

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

    from duckdb import DuckDBPyConnection

    type Row = tuple[Any, ...]

MEMORY = 2**30
"""Bytes that it may take beyond what it has at its start: DuckDB's own limit, and as much for results."""
THREAD = 2**24
"""Bytes more for each of its threads, of which it starts one for each core: for stacks and allocators."""
PIECE = 2**24
"""Bytes of rows that are passed on at once, or one row more."""
ROW = 2**26
"""Bytes of the largest row."""
LINGER = 5.0
"""Seconds in which a process that closed its pipe has ended."""
ANSWER = 2**28
"""Bytes of all rows that ``fetchall`` returns."""
OUT_OF_MEMORY = "Out of Memory Error"
"""How messages begin of what needs more than it gets, also DuckDB's own."""
TOO_MUCH = f"{OUT_OF_MEMORY}: the process that executes statements has a limit"
"""The message of whatever exceeds that."""
TOO_LONG = "Out of Time Error: the process that executes statements has a limit"
"""The message of what takes longer than it may."""


class Statement(NamedTuple):
    """A statement of a script."""

    kind: str
    query: str


class ConfinedConnection:
    """The part of DuckDB's connection that reading needs. A new process is started when the last one had to be ended:
    ``prepare`` gets its connection before anything else. All methods raise DatabaseError."""

    def __init__(self, work: Path, prepare: Callable[[DuckDBPyConnection], None], seconds: int | None = None) -> None:
        """``work`` is a directory for what does not fit into memory; ``prepare`` must be a function of a module.
        ``seconds`` of computing time are what a process may take for all statements; None: as long as it takes."""
        self._work = work
        self._prepare = prepare
        self._seconds = seconds
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None
        self.description: list[tuple[str, str]] = []
        """The names and types of the columns of the last result."""
        self.generation = 0
        """How many processes there were: a new one has no views."""
        self._received = 0
        """Bytes of all answers."""

    def execute(
        self, statement: str, values: Mapping[str, object] | Sequence[object] | None = None
    ) -> ConfinedConnection:
        self.description = self._ask("execute", statement, values or None)
        return self

    def fetchmany(self, number: int) -> list[Row]:
        """Return the next rows: at most so many, and none at the end."""
        rows: list[Row] = self._ask("fetch", number)
        return rows

    def fetchall(self) -> list[Row]:
        rows: list[Row] = []
        before = self._received
        while found := self.fetchmany(1000):
            rows += found
            if self._received - before > ANSWER:
                raise DatabaseError(TOO_MUCH)
        return rows

    def extract_statements(self, script: str) -> list[Statement]:
        statements: list[Statement] = self._ask("split", script)
        return statements

    def close(self) -> None:
        """End the process, whatever it is doing."""
        process, pipe, self._process, self._pipe = self._process, self._pipe, None, None
        if process is not None:
            process.kill()
            process.join()
        if pipe is not None:
            pipe.close()

    def _ask(self, *question: object) -> Any:
        pipe = self._started()
        try:
            pipe.send(question)
            received = pipe.recv_bytes()
        except (EOFError, OSError) as error:  # it has ended: it was refused memory where nothing handles that, or time
            raise DatabaseError(TOO_LONG if self._ended_by(signal.SIGXCPU) else TOO_MUCH) from error
        except BaseException:  # whoever asked waits no longer
            self.close()
            raise
        self._received += len(received)
        answer = pickle.loads(received)  # noqa: S301 - our own process has sent it
        if isinstance(answer, InspectorError):
            raise answer
        return answer

    def _ended_by(self, number: signal.Signals) -> bool:
        """End the process; return whether a signal had ended it already."""
        process = self._process
        if process is not None:
            process.join(LINGER)
        found = process is not None and process.exitcode == -number
        self.close()
        return found

    def start(self) -> None:
        """Start a process if there is none."""
        self._started()

    def _started(self) -> Connection:
        if self._pipe is not None:
            return self._pipe
        # Not forked: this one may have threads.
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(
            target=_serve,
            args=(os.getpid(), theirs, str(self._work), self._prepare, self._seconds),
            name="sql",
            daemon=True,
        )
        process.start()
        theirs.close()
        self._process, self._pipe = process, ours
        self.generation += 1
        self._ask("begin")
        return ours


def only_tables(connection: DuckDBPyConnection, root: Path) -> None:
    """Let a connection read the tables in a directory, and nothing else: no other file, no network, no extension, no
    variable of this program. The directory itself is not open: the key of its hashes is there."""
    folders = ", ".join(text(f"{root / name}/") for name in TABLES)
    for setting in (
        "TimeZone = 'UTC'",
        "enable_progress_bar = false",
        "python_enable_replacements = false",
        f"allowed_directories = [{folders}]",
        "enable_external_access = false",
        "lock_configuration = true",
    ):
        connection.execute(f"SET {setting}")


# -- in the process -------------------------------------------------------------------------------------------


def _serve(
    parent: int, pipe: Connection, work: str, prepare: Callable[[DuckDBPyConnection], None], seconds: int | None
) -> None:
    """Answer questions until there is nobody who asks."""
    processes.end_with(parent, signal.SIGKILL)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):  # the parent decides
        signal.signal(number, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if seconds is not None:
        _, most = resource.getrlimit(resource.RLIMIT_CPU)  # -1: none
        resource.setrlimit(resource.RLIMIT_CPU, (seconds if most < 0 else min(seconds, most), most))
    with open(os.devnull, "wb") as nothing:  # noqa: PTH123 - where a library writes that it gives up
        os.dup2(nothing.fileno(), 2)
    os.environ["TMPDIR"] = work
    with contextlib.suppress(EOFError, BrokenPipeError), contextlib.ExitStack() as stack:
        server: _Server | None = None
        while True:
            question = pipe.recv()
            try:
                if server is None:
                    server = _Server(stack.enter_context(database.opened(Path(work))), prepare)
                    answer = None
                else:
                    answer = server.answer(*question)
            except InspectorError as error:
                answer = error
            except MemoryError:
                answer = DatabaseError(TOO_MUCH)
            try:
                pipe.send(answer)
            except MemoryError:
                pipe.send(DatabaseError(TOO_MUCH))


class _Server:
    def __init__(self, connection: DuckDBPyConnection, prepare: Callable[[DuckDBPyConnection], None]) -> None:
        self._connection = connection
        self._rows: deque[Row] = deque()
        with reported():
            prepare(connection)
        limit = _data() + MEMORY + THREAD * (os.cpu_count() or 1)
        resource.setrlimit(resource.RLIMIT_DATA, (limit, limit))

    def answer(self, what: str, *given: Any) -> object:
        """Answer a question. Raises InspectorError and MemoryError."""
        with reported():
            match what:
                case "execute":
                    self._rows.clear()
                    self._connection.execute(*given)
                    return [(item[0], str(item[1])) for item in self._connection.description or ()]
                case "fetch":
                    return self._piece(*given)
                case _:
                    found = self._connection.extract_statements(*given)
                    return [Statement(str(each.type).rpartition(".")[2], each.query) for each in found]

    def _piece(self, number: int) -> list[Row]:
        if not self._rows:
            self._rows.extend(self._connection.fetchmany(number))
        piece, size = [], 0
        while self._rows and size < PIECE:
            piece.append(self._rows.popleft())
            written = len(pickle.dumps(piece[-1]))
            if written > ROW:
                raise DatabaseError(TOO_MUCH)
            size += written
        return piece


def _data() -> int:
    """Return the bytes of this process that count as data: private memory, whether it is used or not."""
    with open("/proc/self/status") as status:  # noqa: PTH123 - it is no file to open by path
        return next(int(line.split()[1]) * 1024 for line in status if line.startswith("VmData:"))

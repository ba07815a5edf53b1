"""Many captures at once: each is converted by some process, here or on a cluster, and the tables are the result.

What a process needs is a path, and what it returns is a few numbers: rows are written where they are made. Which
process converts which capture makes no difference, so any number of them, and any order, make the same tables. What
only several captures show is computed from the tables at the end (``spanning``).
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import time
from collections import deque
from concurrent.futures import FIRST_COMPLETED, CancelledError, ProcessPoolExecutor, as_completed, wait
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path
from signal import SIGKILL
from typing import TYPE_CHECKING, NamedTuple

from inspector import processes, rules
from inspector.analysis import limits
from inspector.capture import paths
from inspector.errors import CaptureError, InspectorError
from inspector.fleet import conversion
from inspector.fleet.conversion import NO_LOGS, NOTHING, Converted, Result
from inspector.fleet.directory import TableDirectory
from inspector.formats import master_logs
from inspector.formats.master_logs import MasterLogs
from inspector.progress import unwatched
from inspector.summaries import ruleset
from inspector.text import size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from concurrent.futures import Executor, Future

    from inspector.progress import Watch

    type Outcome = Converted | InspectorError

SCHEMES = ("tcp://", "tls://")
TRIES = 3
"""How often a capture is tried whose process dies."""
WHAT = "analysing captures"
LOST = "the process that analysed it ended {} times."


class Task(NamedTuple):
    """One capture to convert, as it is sent to another process."""

    capture: str
    directory: str
    site: str
    rules: tuple[str, ...] = ()
    """The options with the site's rules."""
    logs: MasterLogs = NO_LOGS
    """The master's."""


def perform(task: Task) -> Outcome:
    """Convert one capture; return also an error. Runs in any process that sees its file and the directory of the tables
    by the same path."""
    with contextlib.suppress(ValueError):  # in a thread records are not limited in time
        limits.arm()
    try:
        if task.rules:
            rules.use(ruleset.load_options(task.rules, time.time()))
        return conversion.convert(Path(task.capture), TableDirectory(Path(task.directory)), task.site, logs=task.logs)
    except InspectorError as error:
        return error


def analyse(
    captures: Sequence[Path],
    directory: TableDirectory,
    site: str,
    *,
    jobs: int = 1,
    scheduler: str = "",
    logs: MasterLogs = NO_LOGS,
    watch: Watch = unwatched,
) -> Iterator[Result]:
    """Convert captures with ``jobs`` processes, or on the cluster of a Dask scheduler; yield what became of each, as
    soon as it is known. One whose process dies is tried again by another. ``logs`` are the master's. Raises
    InspectorError."""
    master_logs.check(logs)
    directory.check(closed=False)
    options = rules.in_use().arguments
    root = directory.root.resolve()
    there = MasterLogs._make([path.resolve() for path in paths_of] for paths_of in logs)
    tasks = {path: Task(str(path.resolve()), str(root), site, options, there) for path in dict.fromkeys(captures)}
    sizes = {path: paths.size(path) for path in tasks}
    done, total = 0, sum(sizes.values())
    found = _on_cluster(tasks, scheduler) if scheduler else _here(tasks, jobs)
    for path, outcome in found:
        done += sizes[path]
        watch(done, total, WHAT, size)
        yield Result(path, outcome) if isinstance(outcome, Converted) else Result(path, NOTHING, outcome)


def _here(tasks: dict[Path, Task], jobs: int) -> Iterator[tuple[Path, Outcome]]:
    # The largest first: the last processes end at about the same time.
    waiting = deque(sorted(tasks, key=paths.size, reverse=True))
    suspects: deque[Path] = deque()
    tried = dict.fromkeys(waiting, 0)
    while waiting or suspects:
        left, number = (suspects, 1) if suspects else (waiting, min(jobs, len(waiting)))
        lost: list[Path] = []
        with _processes(number) as executor:
            yield from _until_one_dies(executor, left, number, tasks, lost)
        if number > 1:  # the pool broke, and does not say at which capture: those that were under way are tried alone
            suspects += lost
            continue
        for path in lost:
            tried[path] += 1
            if tried[path] < TRIES:
                suspects.append(path)
            else:
                yield path, CaptureError(f"{path}: {LOST.format(TRIES)}")


def _until_one_dies(
    executor: Executor, left: deque[Path], number: int, tasks: dict[Path, Task], lost: list[Path]
) -> Iterator[tuple[Path, Outcome]]:
    """Convert captures, as many at a time as there are processes; ``lost`` are those under way when one died."""
    running: dict[Future[Outcome], Path] = {}
    while running or (left and not lost):
        while left and not lost and len(running) < number:
            path = left.popleft()
            try:
                running[executor.submit(perform, tasks[path])] = path
            except BrokenProcessPool:
                lost.append(path)
        for future in wait(running, return_when=FIRST_COMPLETED).done:
            path = running.pop(future)
            outcome = _result(future, path)
            if outcome is None:
                lost.append(path)
            else:
                yield path, outcome


@contextlib.contextmanager
def _processes(number: int) -> Iterator[Executor]:
    # Not forked: the parent has threads, and DuckDB has more.
    executor = ProcessPoolExecutor(
        number, multiprocessing.get_context("spawn"), initializer=processes.end_with, initargs=(os.getpid(), SIGKILL)
    )
    try:
        yield executor
    finally:
        executor.shutdown(cancel_futures=True)


def _result(future: Future[Outcome], path: Path) -> Outcome | None:
    """A future's result; None if its process died."""
    try:
        return future.result()
    except (BrokenProcessPool, CancelledError):
        return None
    except Exception as error:  # noqa: BLE001 - whatever goes wrong is about one capture
        return CaptureError(f"{path}: {error!r}")


def _on_cluster(tasks: dict[Path, Task], scheduler: str) -> Iterator[tuple[Path, Outcome]]:
    try:
        from distributed import Client, KilledWorker
    except ImportError as error:
        raise InspectorError(
            "A cluster needs Dask, which is not installed.",
            "Install it beside puppet-inspector, here and on the workers: pip install 'puppet-inspector[fleet]'",
        ) from error
    if not scheduler.startswith(SCHEMES):
        raise InspectorError(
            f"{scheduler!r} is not the address of a scheduler.", "For example: --scheduler tcp://host:8786"
        )
    try:
        client = Client(scheduler, timeout="5s", set_as_default=False)  # type: ignore[no-untyped-call]
    except (OSError, ValueError) as error:
        raise InspectorError(
            f"The scheduler {scheduler} does not answer: {error}.",
            "Start one with `dask scheduler`, and workers with `dask worker ADDRESS`; or use --jobs.",
        ) from error
    with client, client.get_executor(pure=False) as executor:  # type: ignore[no-untyped-call]
        futures = {executor.submit(perform, task): path for path, task in tasks.items()}
        for future in as_completed(futures):
            try:
                outcome = future.result()
            except KilledWorker:
                outcome = CaptureError(f"{futures[future]}: {LOST.format('several')}")
            except Exception as error:  # noqa: BLE001 - whatever goes wrong on a worker is about one capture
                outcome = CaptureError(f"{futures[future]}: a worker failed: {error!r}")
            yield futures[future], outcome

"""What a fleet costs: `python -m tests.bench.fleet [NODES EXCHANGES]` (1,000 nodes, 1.2 million exchanges: 10 minutes).

A day of a fleet is made of the samples, in captures of an hour of one proxy each; they are converted by one process and
by two, asked every named query, and reported. Memory is that of the largest process (``getrusage``), also for a day of
as many exchanges by ten times as many nodes. Prints the tables of docs/performance.md.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from inspector.capture import paths
from inspector.fleet import database, sql
from inspector.fleet.directory import TableDirectory
from inspector.fleet.overview import overview_of
from inspector.fleet.queries.named import QUERIES
from inspector.report import fleet as report
from tests.bench import aims, analysis
from tests.support import fleets
from tests.support.pages import browser

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

EXCHANGES = 1_200_000
"""Of 1,000 nodes in a day, if each makes 48 runs of 25 exchanges; the samples' runs have half of that."""
CAPTURES = 24
DAY = 86_400.0
SAMPLE = 4
"""Captures that are converted by one process and by two, to compare."""
NODES = 50_000
"""Of the fleet whose report is opened."""
BYTES, QUERY, MEMORY, SPEEDUP, OPENING = 40, 1.0, 1000, 1.8, 3.0
"""What is aimed at: bytes of a row, seconds of a query, MB of a process, two processes to one, seconds until a page is
open."""


class Conversion(NamedTuple):
    """What a conversion took."""

    seconds: float
    megabytes: float
    """Of its largest process."""


def make(path: Path, nodes: int, begin: int, end: int, every: float) -> None:
    """Make one capture of the runs from ``begin`` to before ``end``; ``every`` is the seconds between two runs."""
    analysis.write(path, None, bodies=True, made=analysis.exchanges(begin, nodes, every, end))


def captures(folder: Path, nodes: int, exchanges: int) -> list[Path]:
    """A day of a fleet, made by several processes; each run is in one capture."""
    sampled = analysis.templates()
    runs = round(exchanges * len(sampled) / sum(map(len, sampled)))
    folder.mkdir()
    made = [folder / f"{hour:02}.sqlite" for hour in range(CAPTURES)]
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as executor:
        futures = [
            executor.submit(make, path, nodes, hour * runs // CAPTURES, (hour + 1) * runs // CAPTURES, DAY / runs)
            for hour, path in enumerate(made)
        ]
        for future in futures:
            future.result()
    return made


def converted(chosen: Sequence[Path], tables: Path, jobs: int) -> Conversion:
    """Convert captures in processes of their own."""
    command = [sys.executable, "-m", "tests.bench.fleet", "--analyse", str(tables), str(jobs), *map(str, chosen)]
    began = time.perf_counter()
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return Conversion(time.perf_counter() - began, float(done.stdout.split()[-1]))


def analyse(tables: Path, jobs: int, chosen: Sequence[Path]) -> None:
    """The work of ``converted``: prints the memory of its largest process."""
    from inspector.fleet.analysis import analyse as analysed

    directory = TableDirectory.create(tables)
    for result in analysed(chosen, directory, "bench", jobs=jobs):
        if result.error is not None:
            raise SystemExit(result.error.message)
    directory.compact("9999-01-01")
    directory.conclude()
    used = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    print(used / 1024)


def converting(folder: Path, made: Sequence[Path], nodes: int, exchanges: int) -> Iterator[str]:
    """The table of conversions."""
    yield "| captures | processes | exchanges | exchanges/s | for a core | to one | aim | largest process | aim |"
    yield "|---|---|---|---|---|---|---|---|---|"
    sample = made[:SAMPLE]
    some, every = sum(map(number_of, sample)), sum(map(number_of, made))
    one = converted(sample, folder / "one", 1)
    two = converted(sample, folder / "two", 2)
    whole = converted(made, folder / "tables", 2)
    tenfold = captures(folder / "tenfold", nodes * 10, exchanges)
    wide = converted(tenfold, folder / "wide", 2)
    for name, jobs, number, cost in (
        (f"{SAMPLE} of them", 1, some, one), (f"{SAMPLE} of them", 2, some, two), (f"all {len(made)}", 2, every, whole),
        (f"{len(made)} of {nodes * 10:,} nodes", 2, sum(map(number_of, tenfold)), wide),
    ):  # fmt: skip
        rate = number / cost.seconds
        ratio, aim = ("", "")
        if cost is two:
            ratio, aim = f"{one.seconds / two.seconds:.2f}", aims.at_least(one.seconds / two.seconds, SPEEDUP)
        yield (
            f"| {name} | {jobs} | {number:,} | {rate:,.0f} | {rate / jobs:,.0f} | {ratio} | {aim} "
            f"| {cost.megabytes:,.0f} MB | {aims.at_most(cost.megabytes, MEMORY, ' MB')} |"
        )


def number_of(path: Path) -> int:
    """How many exchanges a capture has."""
    from inspector.capture.store import Capture

    with Capture.open(path) as capture:
        return capture.count()


def sizes(made: Sequence[Path], tables: Path) -> Iterator[str]:
    """The table of sizes."""
    yield "| table | rows | size | bytes of a row | aim |"
    yield "|---|---|---|---|---|"
    with tempfile.TemporaryDirectory() as work, database.opened(Path(work)) as connection:
        TableDirectory.open(tables).show(connection)
        for name in ("exchanges", "runs", "connections", "facts", "resources", "resource_events", "findings"):
            rows = connection.execute(f"SELECT count(*) FROM {name}").fetchall()[0][0]
            size = sum(path.stat().st_size for path in (tables / name).rglob("*.parquet"))
            aim = aims.at_most(size / max(rows, 1), BYTES) if name == "exchanges" else ""
            yield f"| {name} | {rows:,} | {size / 1e6:,.1f} MB | {size / max(rows, 1):,.1f} | {aim} |"
    whole = sum(path.stat().st_size for path in tables.rglob("*.parquet"))
    of_captures = sum(map(paths.size, made))
    share = f"{whole / of_captures:.3f} of the captures' {of_captures / 1e6:,.0f} MB"
    yield f"| all | | {whole / 1e6:,.1f} MB | | {share} |"


def querying(tables: Path) -> Iterator[str]:
    """The table of named queries: the slowest, and how many are slower than they should be."""
    yield "| named queries | median | slowest | | aim |"
    yield "|---|---|---|---|---|"
    taken = []
    with sql.opened(tables) as asked:
        end = asked.end
        for query in QUERIES.values():
            began = time.perf_counter()
            with asked.result(query.sql, query.values((), end)) as result:
                for _ in result.batches:
                    pass
            taken.append((time.perf_counter() - began, query.name))
    taken.sort()
    slowest, name = taken[-1]
    median = taken[len(taken) // 2][0]
    yield f"| {len(taken)} | {median:.2f} s | {slowest:.2f} s | `{name}` | {aims.at_most(slowest, QUERY, ' s')} |"


def reporting(folder: Path) -> Iterator[str]:
    """The table of the report of many nodes."""
    yield "| report of | making it | size | open in Chromium (best of 3) | aim |"
    yield "|---|---|---|---|---|"
    folder.mkdir()
    tables = fleets.fleet(folder, NODES, days=2)
    page = folder / "fleet.html"
    began = time.perf_counter()
    page.write_text(report.html(overview_of(tables), "tables"))
    making, opening = time.perf_counter() - began, []
    with browser() as chromium:
        for _ in range(3):
            shown = chromium.new_page()
            began = time.perf_counter()
            shown.goto(page.as_uri())
            shown.wait_for_selector("html[data-ready]", state="attached")
            opening.append(time.perf_counter() - began)
            shown.close()
    yield (
        f"| {NODES:,} nodes | {making:.1f} s | {page.stat().st_size / 1e6:.1f} MB | {min(opening):.2f} s "
        f"| {aims.at_most(min(opening), OPENING, ' s')} |"
    )


def main() -> None:
    """Measure and print."""
    match sys.argv[1:]:
        case ["--analyse", target, jobs, *chosen]:
            analyse(Path(target), int(jobs), list(map(Path, chosen)))
            return
        case [nodes, exchanges]:
            size = int(nodes), int(exchanges)
        case _:
            size = 1000, EXCHANGES
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        made = captures(folder / "captures", *size)
        tables = folder / "tables"
        for lines in (
            converting(folder, made, *size), sizes(made, tables), querying(tables), reporting(folder / "many"),
        ):  # fmt: skip
            for line in lines:
                print(line, flush=True)
            print()


if __name__ == "__main__":
    main()

"""What a start costs: `python -m tests.bench.start` (two minutes, of which most build; or: make bench).

The wheel in a virtual environment and the one-file build, in turns. Prints the table of docs/performance.md. The
processor's time is the best of all turns: whatever else runs on the machine only adds to it.
"""

from __future__ import annotations

import os
import resource
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.bench import aims
from tests.support import packages, places

if TYPE_CHECKING:
    from collections.abc import Sequence

TURNS = 15
SAMPLE = "first-run.sqlite"
COMMANDS: dict[tuple[str, ...], float | None] = {
    ("--version",): 0.06,
    ("explain", "B01"): 0.12,
    ("list", SAMPLE): 0.18,
    ("demo", "--own", "-o", "demo.sqlite"): None,
}
"""Each with the aim of its processor time in seconds."""


class Taken(NamedTuple):
    """What a start took, in seconds."""

    wall: float
    processor: float


def taken(program: Path, words: Sequence[str], folder: Path) -> Taken:
    """Measure a start, to its end."""
    (folder / "demo.sqlite").unlink(missing_ok=True)
    used, began = processor(), time.perf_counter()
    subprocess.run([program, *words], cwd=folder, check=True, capture_output=True)
    return Taken(time.perf_counter() - began, processor() - used)


def processor() -> float:
    """The processor's time of all processes that were started, and have ended."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    """Measure, and print the table."""
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        one = Path(shutil.copy(packages.one_file(), folder / "puppet-inspector"))
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
        wheel = packages.BUILD / "program/bin/puppet-inspector"
        shutil.copy(places.SAMPLES / SAMPLE, folder)
        first = taken(one, ("--version",), folder).wall
        print(
            f"The file has {one.stat().st_size / 1e6:.0f} MB; its first start, which unpacks it, takes {first:.1f} s.\n"
        )
        print(f"| command | CPU, best of {TURNS} | aim | wheel, median | one-file build, median | ratio | aim |")
        print("|---|---|---|---|---|---|---|")
        for words, aim in COMMANDS.items():
            times: dict[Path, list[Taken]] = {wheel: [], one: []}
            for _ in range(TURNS):
                for program, found in times.items():
                    found.append(taken(program, words, folder))
            usual, carried = (statistics.median(each.wall for each in found) for found in times.values())
            least = round(min(each.processor for each in times[wheel]), 3)
            ratio = round(carried / usual, 2)
            aimed = "" if aim is None else aims.at_most(least, aim, " s")
            walls = f"{usual:.2f} s | {carried:.2f} s | {ratio:.2f} | {aims.at_most(ratio, 2)}"
            print(f"| `{' '.join(words[:2])}` | {least:.3f} s | {aimed} | {walls} |")


if __name__ == "__main__":
    main()

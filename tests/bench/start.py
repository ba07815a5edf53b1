"""What a start costs: `python -m tests.bench.start` (two minutes, of which most build; or: make bench).

The wheel in a virtual environment and the one-file build, in turns. Prints the table of docs/performance.md.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from tests.bench import aims
from tests.support import packages

if TYPE_CHECKING:
    from collections.abc import Sequence

TURNS = 15
COMMANDS: tuple[tuple[str, ...], ...] = (("--version",), ("explain", "B01"), ("demo", "--own", "-o", "demo.sqlite"))


def taken(program: Path, words: Sequence[str], folder: Path) -> float:
    """The seconds of a start, to its end."""
    (folder / "demo.sqlite").unlink(missing_ok=True)
    began = time.perf_counter()
    subprocess.run([program, *words], cwd=folder, check=True, capture_output=True)
    return time.perf_counter() - began


def main() -> None:
    """Measure, and print the table."""
    with tempfile.TemporaryDirectory() as directory:
        folder = Path(directory)
        one = Path(shutil.copy(packages.one_file(), folder / "puppet-inspector"))
        os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
        wheel = packages.BUILD / "program/bin/puppet-inspector"
        first = taken(one, ("--version",), folder)
        print(
            f"The file has {one.stat().st_size / 1e6:.0f} MB; its first start, which unpacks it, takes {first:.1f} s.\n"
        )
        print("| command | wheel, median | one-file build, median | ratio | aim |\n|---|---|---|---|---|")
        for words in COMMANDS:
            times: dict[Path, list[float]] = {wheel: [], one: []}
            for _ in range(TURNS):
                for program, found in times.items():
                    found.append(taken(program, words, folder))
            usual, carried = (statistics.median(found) for found in times.values())
            ratio = round(carried / usual, 2)
            command = " ".join(words[:2])
            cells = [f"`{command}`", f"{usual:.2f} s", f"{carried:.2f} s", f"{ratio:.2f}", aims.at_most(ratio, 2)]
            print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()

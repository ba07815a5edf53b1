"""What the product makes of a recorded site: ``python -m tests.real.real_site.check DIRECTORY``, the table of docs.

Everything decoded, no internal error, nothing planted in what leaves; and what reading, sharing and reporting cost,
each in a process of its own.
"""

from __future__ import annotations

import base64
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from inspector.analysis.analyzer import Analyzer
from inspector.capture.store import Capture
from inspector.protocol.documents import Undecodable
from tests.bench import aims
from tests.real.real_site import site
from tests.support import planted

if TYPE_CHECKING:
    from collections.abc import Iterator

MEMORY = 300
"""MB that a command may take, whatever the capture."""
SHORTEST = 12
"""Letters and digits of a secret by which it is found: no more than that is unmistakable."""


STARTER = """
import os, sys
figures, *command = sys.argv[1:]
_, status, used = os.wait4(os.posix_spawn(command[0], command, os.environ), 0)
with open(figures, "w") as file:
    print(used.ru_utime + used.ru_stime, used.ru_maxrss / 1000, os.waitstatus_to_exitcode(status), file=file)
"""
"""Starts a command and writes what it took. The peak of a process begins with that of the one that started it, and
this one here is large."""


class Cost(NamedTuple):
    """What a command took."""

    seconds: float
    """Of CPU."""
    peak: float
    """MB."""
    output: bytes
    status: int


def measured(*words: object) -> Cost:
    """Run a command of the product."""
    command = [sys.executable, "-m", "inspector.cli", *map(str, words)]
    with tempfile.NamedTemporaryFile("r") as figures:
        starter = [sys.executable, "-c", STARTER, figures.name]
        output = subprocess.run([*starter, *command], stdout=subprocess.PIPE, check=True).stdout
        seconds, peak, status = figures.read().split()
    return Cost(float(seconds), float(peak), output, int(status))


class Understood(NamedTuple):
    """What the analysis makes of a capture."""

    records: int
    runs: int
    resources: int
    """Of the largest catalog."""
    wrong: list[str]
    """What could not be decoded, rules that failed, other internal errors."""


def understood(path: Path) -> Understood:
    """Analyse a capture."""
    analyzer, wrong = Analyzer(), []
    records = resources = runs = 0
    with Capture.open(path) as capture:
        for step in analyzer.steps(capture.records()):
            records += 1
            runs += len(step.over)
            wrong += [f"{path.name} record {step.record.seq}: {trouble}" for trouble in step.trouble]
            for document in (step.request, step.response):
                if isinstance(document, Undecodable):
                    wrong.append(f"{path.name} record {step.record.seq}: {document.reason}")
                resources = max(resources, len(getattr(document, "resources", ())))
        runs += len(analyzer.finish())
    return Understood(records, runs, resources, [*wrong, *analyzer.failed.values(), *analyzer.unanalyzed.values()])


def leaking(output: bytes) -> list[str]:
    """The planted secrets that are in some output, as they are, in hexadecimal digits or in base64."""
    text = output.lower()
    return [
        value for value in site.secrets().values()
        if any(needle.lower() in text for needle in _needles(value[:SHORTEST].encode()))
    ]  # fmt: skip


def _needles(secret: bytes) -> Iterator[bytes]:
    """How a secret may stand in a text."""
    yield secret
    yield secret.hex().encode()
    for shift in range(3):  # what stands before it in base64 moves it by as much
        encoded = base64.b64encode(bytes(shift) + secret)
        yield encoded[4 if shift else 0 : -4]


def shared(path: Path, directory: Path, *words: object) -> tuple[Cost, list[str]]:
    """Share a capture; what it costs, and what leaks."""
    copy = directory / f"{path.stem}-shared.sqlite"
    cost = measured("share", path, "-o", copy, *words)
    with Capture.open(copy) as capture:
        leaks = leaking(planted.everything(capture.records()))
    copy.unlink()
    return cost, [*leaks, *leaking(cost.output)]


def main() -> int:
    """Print a row for each capture, and what is wrong."""
    wrong: list[str] = []
    print("| capture | MB | records | largest catalog | `check` | `report` | `share` | peak memory | aim |")
    print("|---|---|---|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as scratch:
        for path in sorted(Path(sys.argv[1]).glob("*.sqlite")):
            found = understood(path)
            wrong += found.wrong
            page = Path(scratch) / "report.html"
            costs = [measured("check", path), measured("report", path, "-o", page)]
            wrong += [f"{path.name} in the report: {secret}" for secret in leaking(page.read_bytes())]
            page.unlink()
            for words in ((), ("--with", "all")):
                cost, leaks = shared(path, Path(scratch), *words)
                wrong += [f"{path.name} shared {' '.join(words)}: {secret}" for secret in leaks if not words]
                costs.append(cost)
            peak = max(cost.peak for cost in costs)
            times = " | ".join(f"{cost.seconds:.1f} s" for cost in costs[:3])
            size, aim = path.stat().st_size / 1e6, aims.at_most(peak, MEMORY, " MB")
            print(f"| {path.stem} | {size:.1f} | {found.records:,} | {found.resources:,} | {times} | {peak:.0f} MB "
                  f"| {aim} |", flush=True)  # fmt: skip
    print("\n".join(["", *wrong] if wrong else ["", "Everything was decoded; nothing planted leaves."]))
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())

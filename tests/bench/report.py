"""What a report costs: `python -m tests.bench.report [EXCHANGES]` (some five minutes).

A page of a capture of 100,000 exchanges is made, with bodies and without, and opened in Chromium: the time until it can
be used, until the list of records is shown, and of a filter and a record. Of making it the seconds of CPU are measured,
and the peak memory of its process. Prints the table of docs/report.md.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.bench import aims, terminal
from tests.support.pages import browser

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Browser, Page

TURNS = 3
OPENING = 2.0
"""Seconds in which a page must be open."""
WITH, WITHOUT = 1.6, 0.3
"""How large a page may be, in sizes of its capture."""
MAKING, MEMORY = 40.0, 300.0
"""Seconds of CPU, and megabytes, that making one may take."""


class Costs(NamedTuple):
    """What one page takes: seconds, unless something else is said."""

    making: float
    """Of CPU."""
    memory: float
    """The peak in megabytes."""
    size: float
    """In sizes of the capture."""
    megabytes: float
    opening: float
    records: float
    filter: float
    record: float


def timed(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def made(capture: Path, page: Path, *words: str) -> tuple[float, float]:
    """Make a page in a process of its own; return its seconds of CPU and its peak memory in megabytes."""
    command = [sys.executable, "-m", "inspector.cli", "report", str(capture), "-o", str(page), *words]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{' '.join(command)} ended with {process.returncode}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e6


def used(chromium: Browser, path: Path, last: int) -> tuple[float, float, float, float]:
    """Open a page, show its records, filter them and show one."""
    page: Page = chromium.new_page(viewport={"width": 1400, "height": 900})

    def opened() -> None:
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]", state="attached")

    def go(fragment: str, selector: str) -> None:
        page.evaluate("fragment => { location.hash = fragment; }", fragment)
        page.wait_for_selector(selector)

    found = (
        timed(opened),
        timed(lambda: go("records?", "#list-records .view .row")),
        timed(lambda: go("records?status:404", "output[for=filter-records]:has-text('of'):not(:has-text('000 of'))")),
        timed(lambda: go(f"record-{last // 2}", f"#record h3:has-text('{last // 2}')")),
    )
    page.close()
    return found


def costs(capture: Path, number: int, *words: str) -> Costs:
    page = capture.with_suffix(".html")
    making, memory = made(capture, page, *words)
    with browser() as chromium:
        turns = [used(chromium, page, number) for _ in range(TURNS)]
    opening, records, filtering, record = (statistics.median(each) for each in zip(*turns, strict=True))
    size = page.stat().st_size
    page.unlink()
    return Costs(making, memory, size / capture.stat().st_size, size / 1e6, opening, records, filtering, record)


def main() -> None:
    number = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as folder:
        capture = Path(folder) / "capture.sqlite"
        terminal.write(capture, number)
        size = capture.stat().st_size / 1e6
        both = [costs(capture, number), costs(capture, number, "--no-bodies")]
    about = f"{number:,} exchanges in {number // terminal.LENGTH:,} runs ({size:.1f} MB)"
    print(f"| a capture of {about} | with bodies | `--no-bodies` | aim |")
    print("|---|---|---|---|")
    rows: tuple[tuple[str, Callable[[Costs], str], str], ...] = (
        ("size of the page", lambda cost: f"{cost.megabytes:.1f} MB, {cost.size:.2f} times the capture's",
         f"{aims.at_most(both[0].size, WITH)}; {aims.at_most(both[1].size, WITHOUT)}"),
        ("CPU to make it", lambda cost: f"{cost.making:.0f} s",
         aims.at_most(max(cost.making for cost in both), MAKING, " s")),
        ("peak memory", lambda cost: f"{cost.memory:.0f} MB",
         aims.at_most(max(cost.memory for cost in both), MEMORY, " MB")),
        ("to open it", lambda cost: f"{cost.opening:.2f} s",
         aims.at_most(max(cost.opening for cost in both), OPENING, " s")),
        ("to the list of records", lambda cost: f"{cost.records:.2f} s", ""),
        ("a filter", lambda cost: f"{cost.filter:.2f} s", ""),
        ("a record", lambda cost: f"{cost.record:.2f} s", ""),
    )  # fmt: skip
    for title, cell, aim in rows:
        print(f"| {title} | {cell(both[0])} | {cell(both[1])} | {aim} |")


if __name__ == "__main__":
    main()

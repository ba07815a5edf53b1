"""Many agents at once for `tests.bench.soak`: what they saw, and what the proxy took meanwhile."""

from __future__ import annotations

import random
import re
import statistics
import threading
import time
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

    from tests.bench.roads import Caller

REQUESTS = 12
"""Of a run under load."""
PROCESSES = 2
"""That the agents are spread over."""


@dataclass
class Load:
    """What many agents saw. Times are seconds."""

    runs: int = 0
    failed: int = 0
    why: set[str] = field(default_factory=set)
    connects: list[float] = field(default_factory=list)
    requests: list[float] = field(default_factory=list)

    def add(self, other: Load) -> None:
        self.runs += other.runs
        self.failed += other.failed
        self.why |= other.why
        self.connects += other.connects
        self.requests += other.requests


def agent(caller: Caller, until: float, pause: float, load: Load) -> None:
    """Run after run, each on a connection of its own, with pauses of ``pause`` seconds on average."""
    chance = random.Random(str(caller.place.path))  # noqa: S311
    time.sleep(chance.uniform(0, pause))
    while time.monotonic() < until:
        load.runs += 1
        try:
            began = time.monotonic()
            with caller.connect() as line:
                load.connects.append(time.monotonic() - began)
                for _ in range(REQUESTS):
                    load.requests.append(line.ask().whole)
        except OSError as error:
            load.failed += 1
            load.why.add(repr(error))
        time.sleep(chance.uniform(0, 2 * pause))


def fleet(callers: list[Caller], seconds: float, pause: float, out: Connection) -> None:
    """Some of the agents, each a thread of this process; sends what they saw."""
    until = time.monotonic() + seconds
    loads = [Load() for _ in callers]
    threads = [
        threading.Thread(target=agent, args=(caller, until, pause, load))
        for caller, load in zip(callers, loads, strict=True)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    together = Load()
    for load in loads:
        together.add(load)
    out.send(together)


def besieged(callers: list[Caller], seconds: float, pause: float) -> Load:
    """All agents at once."""
    context = get_context("spawn")
    load, ends = Load(), []
    for number in range(PROCESSES):
        here, there = context.Pipe(duplex=False)
        process = context.Process(target=fleet, args=(callers[number::PROCESSES], seconds, pause, there), daemon=True)
        process.start()
        ends.append((process, here))
    for process, here in ends:
        load.add(here.recv())
        process.join()
    return load


def milliseconds(times: list[float], percent: int) -> str:
    """A percentile as the cell of a table."""
    return f"{percentile(times, percent) * 1000:,.0f} ms" if len(times) > 1 else ""


def percentile(times: list[float], percent: int) -> float:
    """A percentile of at least two times."""
    return max(times) if percent == 100 else statistics.quantiles(times, n=100, method="inclusive")[percent - 1]


def resident(pid: int) -> float:
    """MB of a process."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else 0.0

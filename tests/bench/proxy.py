"""What the proxy costs an exchange and a connection: `python -m tests.bench.proxy [REQUESTS]` (some five minutes).

An agent asks a fast master for files of 8 KiB over mutual TLS, through each road in turns: mitmproxy as it comes with
its own recording on (`mitmdump -w`), and ours. Counted is the CPU time of the proxy's process, from before the first
to after the last of many requests; the process that understands what is recorded is counted apart. Then many agents
ask one and two workers. Prints tables of docs/performance.md, ratios first.
"""

from __future__ import annotations

import dataclasses
import multiprocessing
import os
import statistics
import sys
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

from inspector.host.pki import SslDirPaths
from inspector.lab import Lab
from tests.bench import aims
from tests.bench.roads import STOCK, Caller, enrolled, master, ours, stock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.synchronize import Barrier

    from tests.bench.roads import Cpu, Road

    type Figures = tuple[float, float, float]

ADDON, LEAN, OWN = "`mitmdump -s addons/puppet.py`", "the same with `puppet_lean`", "`puppet-inspector proxy`"
REUSED = {STOCK: 1.0, ADDON: 0.9, LEAN: 0.65, OWN: 0.4}
"""What a request on a kept connection may cost, to `mitmdump -w`."""
NEW = dict.fromkeys(REUSED, 0.7) | {STOCK: 1.0}
"""What a new connection may cost."""
WRITTEN = 1.0
"""Seconds in which what was seen is recorded: that is part of the cost."""
CALLERS, LINES = 4, 32
"""Processes that ask the workers, and agents of each, with an address and a connection each."""


def requests(road: Road, caller: Caller, number: int) -> Figures:
    """CPU of the proxy and of its other process, and wall time, in seconds a request."""
    with caller.connect() as line:
        line.ask()
        before, began = road.cpu(), time.monotonic()
        for _ in range(number):
            line.ask()
        return _per_request(road, before, began, number)


def connections(road: Road, caller: Caller, number: int) -> Figures:
    """The same for a connection that carries one request."""
    before, began = road.cpu(), time.monotonic()
    for _ in range(number):
        with caller.connect() as line:
            line.ask()
    return _per_request(road, before, began, number)


def _per_request(road: Road, before: Cpu, began: float, number: int) -> Figures:
    wall = time.monotonic() - began
    time.sleep(WRITTEN)
    used = road.cpu() - before
    return sum(used.serving) / number, used.others / number, wall / number


def compared(
    title: str,
    roads: list[Road],
    caller: Callable[[Road], Caller],
    measure: Callable[[Road, Caller, int], Figures],
    number: int,
    limits: dict[str, float],
    turns: int = 5,
) -> Iterator[str]:
    """A table: the roads in turns, after one turn that does not count. Ratios are those within a turn: what else the
    machine does then meets all roads."""
    figures: dict[str, list[Figures]] = {road.name: [] for road in roads}
    for turn in range(-1, turns):
        for road in roads:
            found = measure(road, caller(road), number if turn >= 0 else max(number // 10, 5))
            if turn >= 0:
                figures[road.name].append(found)
    yield f"| {title} | to {STOCK} | aim | CPU of the proxy | of its other process | wall time |"
    yield "|---|---|---|---|---|---|"
    for name, taken in figures.items():
        cpu, others, wall = (statistics.median(column) for column in zip(*taken, strict=True))
        ratio = statistics.median(sample[0] / base[0] for sample, base in zip(taken, figures[STOCK], strict=True))
        aim = "" if name == STOCK else aims.at_most(round(ratio, 2), limits[name])
        times = " | ".join(f"{seconds * 1e6:,.0f} µs" for seconds in (cpu, others, wall))
        yield f"| {name} | {ratio:.2f} | {aim} | {times} |"
    yield ""


# -- workers ----------------------------------------------------------------------------------------------


def crowd(callers: list[Caller], rounds: int, start: Barrier, end: Barrier) -> None:
    """Ask on many connections at once, each after the other's answer."""
    with ExitStack() as stack:
        lines = [stack.enter_context(caller.connect()) for caller in callers]
        for line in lines:
            line.ask()
        start.wait()
        for _ in range(rounds):
            for line in lines:
                line.send()
            for line in lines:
                line.read(0.0)
        end.wait()


def throughput(road: Road, caller: Caller, number: int) -> tuple[float, float, float]:
    """Requests a second as measured, and by the CPU time of the busiest worker; CPU of all workers a request."""
    context = multiprocessing.get_context("spawn")
    start, end = context.Barrier(CALLERS + 1), context.Barrier(CALLERS + 1)
    rounds = max(number // (CALLERS * LINES), 1)
    agents = [
        [dataclasses.replace(caller, source=f"127.0.{place}.{number}") for number in range(1, LINES + 1)]
        for place in range(1, CALLERS + 1)
    ]
    processes = [context.Process(target=crowd, args=(agent, rounds, start, end)) for agent in agents]
    for process in processes:
        process.start()
    start.wait(300)
    before, began = road.cpu(), time.monotonic()
    end.wait(600)
    wall = time.monotonic() - began
    time.sleep(WRITTEN)
    used = road.cpu() - before
    for process in processes:
        process.join()
    asked = rounds * CALLERS * LINES
    return asked / wall, asked / max(used.serving), sum(used.serving) / asked


def workers(lab: Lab, target: tuple[str, int], agent: SslDirPaths, number: int, turns: int = 3) -> Iterator[str]:
    """The table of workers."""
    names = {1: OWN, 2: f"{OWN[:-1]} --workers 2`"}
    figures: dict[int, list[tuple[float, float, float]]] = {name: [] for name in names}
    with ExitStack() as stack:
        roads = {
            count: stack.enter_context(ours(lab, target, name, "--workers", str(count), own=True))
            for count, name in names.items()
        }
        for _ in range(turns):
            for count, road in roads.items():
                figures[count].append(throughput(road, Caller(road.address, lab.proxy_name, agent), number))
    yield (
        f"| {CALLERS * LINES} agents at once | throughput where cores are free | aim "
        "| requests in a CPU second of the busiest worker "
        f"| requests/s here, where all share {os.cpu_count()} cores | CPU of the workers for a request |"
    )
    yield "|---|---|---|---|---|---|"
    medians = {count: tuple(map(statistics.median, zip(*taken, strict=True))) for count, taken in figures.items()}
    for count, name in names.items():
        here, free, cpu = medians[count]
        ratio = free / medians[1][1]
        aim = "" if count == 1 else aims.at_least(round(ratio, 2), 1.8)
        yield f"| {name} | {ratio:.2f} | {aim} | {free:,.0f} | {here:,.0f} | {cpu * 1e6:,.0f} µs |"
    yield ""


# -- all --------------------------------------------------------------------------------------------------


def bench(number: int) -> Iterator[str]:
    """The tables."""
    with ExitStack() as stack:
        lab = stack.enter_context(Lab(autosign=True))
        target = stack.enter_context(master(SslDirPaths(lab.directory / "master", lab.master_name)))
        agents = {"RSA-4096": enrolled(lab, "rsa.lab.example", 4096), "EC": enrolled(lab, "ec.lab.example", None)}
        proxies = [
            stack.enter_context(ours(lab, target, ADDON)),
            stack.enter_context(ours(lab, target, LEAN, puppet_lean="true")),
            stack.enter_context(ours(lab, target, OWN, own=True)),
        ]
        for kind, agent in agents.items():
            with stock(lab, agent, target) as bare:
                roads = [bare, *proxies]

                def caller(road: Road, agent: SslDirPaths = agent) -> Caller:
                    return Caller(road.address, lab.proxy_name, agent)

                if kind == "RSA-4096":
                    yield from compared("request on a kept connection", roads, caller, requests, number, REUSED)
                title = f"new connection with one request, agent's key {kind}"
                yield from compared(title, roads, caller, connections, number // 30, NEW)
        yield from workers(lab, target, agents["EC"], number * 2)


def main() -> None:
    """Measure and print."""
    for line in bench(int(sys.argv[1]) if sys.argv[1:] else 3000):
        print(line, flush=True)


if __name__ == "__main__":
    main()

"""What the proxy costs an exchange and a connection: `python -m tests.bench.proxy [REQUESTS]` (some five minutes).

An agent asks a fast master for files of 8 KiB over mutual TLS, through each road in turns: mitmproxy as it comes with
its own recording on (`mitmdump -w`), and ours. Counted is the CPU time of the proxy's process, from before the first
to after the last of many requests; the process that understands what is recorded is counted apart. Then many agents
ask one and two workers. Prints tables of docs/performance.md, ratios first.
"""

from __future__ import annotations

import dataclasses
import functools
import multiprocessing
import os
import statistics
import sys
import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, NamedTuple

from inspector.host.pki import SslDirPaths
from inspector.lab import Lab
from tests.bench import aims
from tests.bench.roads import STOCK, Caller, enrolled, master, ours, stock

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from multiprocessing.synchronize import Barrier

    from tests.bench.roads import Cpu, Road

ADDON, OWN = "`mitmdump -s addons/puppet.py`", "`puppet-inspector proxy`"
KEPT = {STOCK: (None, None), ADDON: (None, 1.0), OWN: (0.12, 0.2)}
"""What a request on a kept connection may cost, to `mitmdump -w`: the proxy's process, and all processes; None: there
is no aim."""
NEW = {
    "RSA-4096": {STOCK: (None, None), ADDON: (None, 1.0), OWN: (0.45, None)},
    "EC": {STOCK: (None, None), ADDON: (None, 1.0), OWN: (0.4, None)},
}
"""What a new connection with one request may cost."""
ADDED = 3.0
"""Milliseconds that may be added to a direct request, at the 99th percentile and half of what a road can do."""
AT_ONCE = 8
"""Connections that ask at once."""
WRITTEN = 1.0
"""Seconds in which what was seen is recorded: that is part of the cost."""
SECONDS = 5.0
"""For which requests are asked at a rate."""
CALLERS, LINES = 4, 32
"""Processes that ask the workers, and agents of each, with an address and a connection each."""


class Figures(NamedTuple):
    """What some requests cost."""

    serving: float
    """Seconds of CPU of the proxy's process for a request."""
    others: float
    """The same of the processes that it started."""
    rate: float
    """Requests a second."""
    median: float
    """Seconds until an answer was complete."""
    late: float
    """The same at the 99th percentile."""


def requests(road: Road, caller: Caller, number: int, lines: int = 1) -> Figures:
    """Ask on some connections at once, many times."""
    with ExitStack() as stack:
        open_ = [stack.enter_context(caller.connect()) for _ in range(lines)]
        for line in open_:
            line.ask()
        before, began = road.cpu(), time.monotonic()
        took: list[float] = []
        for _ in range(number // lines):
            sent = []
            for line in open_:
                sent.append(time.monotonic())
                line.send()
            took += [line.read(at).whole for line, at in zip(open_, sent, strict=True)]
        return _figures(road, before, began, took)


def connections(road: Road, caller: Caller, number: int) -> Figures:
    """Connect for each request."""
    before, began = road.cpu(), time.monotonic()
    took = []
    for _ in range(number):
        at = time.monotonic()
        with caller.connect() as line:
            line.ask()
        took.append(time.monotonic() - at)
    return _figures(road, before, began, took)


def _figures(road: Road, before: Cpu, began: float, took: list[float]) -> Figures:
    wall = time.monotonic() - began
    time.sleep(WRITTEN)
    used, number = road.cpu() - before, len(took)
    late = sorted(took)[int(number * 0.99)]
    return Figures(sum(used.serving) / number, used.others / number, number / wall, statistics.median(took), late)


def compared(
    title: str,
    roads: list[Road],
    caller: Callable[[Road], Caller],
    measure: Callable[[Road, Caller, int], Figures],
    number: int,
    limits: Mapping[str, tuple[float | None, float | None]],
    turns: int = 5,
) -> Iterator[str]:
    """A table: the roads in turns, after one turn that does not count. Ratios are those within a turn: what else the
    machine does then meets all roads."""
    figures: dict[str, list[Figures]] = {road.name: [] for road in roads}
    for turn in range(-1, turns):
        for road in roads:
            found = measure(road, caller(road), number if turn >= 0 else max(number // 10, AT_ONCE))
            if turn >= 0:
                figures[road.name].append(found)
    yield (
        f"| {title} | proxy to {STOCK} | aim | all processes to it | aim | CPU of the proxy | of its other process "
        "| requests/s | p50 / p99 |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    for name, taken in figures.items():
        pairs = list(zip(taken, figures[STOCK], strict=True))
        own = statistics.median(ours.serving / theirs.serving for ours, theirs in pairs)
        every = statistics.median(
            (ours.serving + ours.others) / (theirs.serving + theirs.others) for ours, theirs in pairs
        )
        one, other = limits[name]
        pair = ((own, one), (every, other))
        aim = ["" if limit is None else aims.at_most(round(figure, 2), limit) for figure, limit in pair]
        middle = Figures(*(statistics.median(column) for column in zip(*taken, strict=True)))
        times = f"{middle.serving * 1e6:,.0f} µs | {middle.others * 1e6:,.0f} µs | {middle.rate:,.0f}"
        waits = f"{middle.median * 1e3:.1f} / {middle.late * 1e3:.1f} ms"
        yield f"| {name} | {own:.2f} | {aim[0]} | {every:.2f} | {aim[1]} | {times} | {waits} |"
    yield ""


# -- what is added to a request ----------------------------------------------------------------------------


def paced(caller: Caller, rate: float, seconds: float) -> list[float]:
    """Ask so many times a second on some connections; return how long each request took, with the time by which it was
    late."""
    took: list[float] = []
    begin = time.monotonic() + 0.5

    def ask(place: int) -> None:
        with caller.connect() as line:
            line.ask()
            for number in range(int(rate * seconds / AT_ONCE)):
                due = begin + (number + place / AT_ONCE) * AT_ONCE / rate
                time.sleep(max(0.0, due - time.monotonic()))
                line.ask()
                took.append(time.monotonic() - due)

    threads = [threading.Thread(target=ask, args=(place,)) for place in range(AT_ONCE)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return took


def _percentile(took: list[float], share: float) -> float:
    """Return milliseconds."""
    return sorted(took)[int(len(took) * share)] * 1e3


def added(roads: list[Road], target: tuple[str, int], caller: Callable[[Road], Caller], number: int) -> Iterator[str]:
    """The table of what each road adds at half of the requests that it reaches, to a direct request of that rate."""
    yield (
        f"| {AT_ONCE} connections, half of what the road reaches | requests/s | direct p50 / p99 | through p50 / p99 "
        "| added at p50 | at p99 | aim |"
    )
    yield "|---|---|---|---|---|---|---|"
    for road in roads:
        through = caller(road)
        rate = requests(road, through, number, AT_ONCE).rate / 2
        pairs = []
        for _ in range(3):
            direct = paced(dataclasses.replace(through, address=target), rate, SECONDS)
            pairs.append((direct, paced(through, rate, SECONDS)))
        (near, late), (near_through, late_through) = (
            [statistics.median(_percentile(took, share) for took in side) for share in (0.5, 0.99)]
            for side in zip(*pairs, strict=True)
        )
        aim = "" if road.name == STOCK else aims.at_most(round(late_through - late, 1), ADDED, " ms")
        yield (
            f"| {road.name} | {rate:,.0f} | {near:.1f} / {late:.1f} ms | {near_through:.1f} / {late_through:.1f} ms "
            f"| {near_through - near:.1f} ms | {late_through - late:.1f} ms | {aim} |"
        )
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
            stack.enter_context(ours(lab, target, OWN, own=True)),
        ]
        for kind, agent in agents.items():
            with stock(lab, agent, target) as bare:
                roads = [bare, *proxies]

                def caller(road: Road, agent: SslDirPaths = agent) -> Caller:
                    return Caller(road.address, lab.proxy_name, agent)

                if kind == "RSA-4096":
                    yield from compared("request on a kept connection", roads, caller, requests, number, KEPT)
                    at_once = functools.partial(requests, lines=AT_ONCE)
                    yield from compared(f"the same, {AT_ONCE} connections", roads, caller, at_once, number, KEPT)
                    yield from added(roads, target, caller, number)
                title = f"new connection with one request, agent's key {kind}"
                yield from compared(title, roads, caller, connections, number // 30, NEW[kind])
        yield from workers(lab, target, agents["EC"], number * 2)


def main() -> None:
    """Measure and print."""
    for line in bench(int(sys.argv[1]) if sys.argv[1:] else 3000):
        print(line, flush=True)


if __name__ == "__main__":
    main()

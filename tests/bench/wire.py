"""What it costs to record the wire: `python -m tests.bench.wire [REQUESTS]` (some two minutes).

`puppet-inspector proxy` with and without `puppet_wire`, in turns, with the agents and the master of the proxy's bench.
Prints a table of docs/performance.md.
"""

from __future__ import annotations

import functools
import statistics
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

from inspector.host.pki import SslDirPaths
from inspector.lab import Lab
from tests.bench.proxy import AT_ONCE, connections, requests
from tests.bench.roads import Caller, enrolled, master, ours

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.bench.proxy import Figures
    from tests.bench.roads import Road

TURNS = 5


def compared(
    title: str, roads: list[Road], measure: Callable[[Road], Figures], few: Callable[[Road], Figures]
) -> Iterator[str]:
    """The rows of one kind of load: medians of turns, after one with few that does not count."""
    taken: list[list[Figures]] = [[] for _ in roads]
    for road in roads:
        few(road)
    for _ in range(TURNS):
        for road, figures in zip(roads, taken, strict=True):
            figures.append(measure(road))
    for road, figures in zip(roads, taken, strict=True):
        ratio = statistics.median(one.serving / other.serving for one, other in zip(figures, taken[0], strict=True))
        own, rate, late = (
            statistics.median(column) for column in zip(*((f.serving, f.rate, f.late) for f in figures), strict=True)
        )
        yield f"| {title} | {road.name} | {ratio:.2f} | {own * 1e6:,.0f} µs | {rate:,.0f} | {late * 1e3:.1f} ms |"


def bench(number: int) -> Iterator[str]:
    """The table."""
    with ExitStack() as stack:
        lab = stack.enter_context(Lab(autosign=True))
        target = stack.enter_context(master(SslDirPaths(lab.directory / "master", lab.master_name)))
        agent = enrolled(lab, "ec.lab.example", None)
        without = stack.enter_context(ours(lab, target, "without", own=True))
        roads = [without, stack.enter_context(ours(lab, target, "`puppet_wire`", own=True, puppet_wire="true"))]

        def asked(measure: Callable[[Road, Caller, int], Figures], number: int) -> Callable[[Road], Figures]:
            return lambda road: measure(road, Caller(road.address, lab.proxy_name, agent), number)

        yield "| answers of 8 KiB | | proxy to without | CPU of the proxy | requests/s | p99 |"
        yield "|---|---|---|---|---|---|"
        for title, measure, many in (
            ("request on a kept connection", requests, number),
            (f"the same, {AT_ONCE} connections", functools.partial(requests, lines=AT_ONCE), number),
            ("new connection with one request", connections, number // 30),
        ):
            yield from compared(title, roads, asked(measure, many), asked(measure, max(many // 10, AT_ONCE)))


def main() -> None:
    """Measure and print."""
    for line in bench(int(sys.argv[1]) if sys.argv[1:] else 3000):
        print(line, flush=True)


if __name__ == "__main__":
    main()

"""What large bodies cost: `python -m tests.bench.large [MEGABYTES]` (some four minutes).

A file of 1 GB is fetched and another one is sent through mitmproxy as it comes, in its streaming mode and without
recording, and through ours, in turns; then a smaller one, which ours keeps whole. Memory is the peak resident set of
the proxy's process, less what it had before. Then another agent's small requests are timed while catalogs and reports
of 10 MB pass, and while they do not. Prints tables of docs/performance.md.
"""

from __future__ import annotations

import dataclasses
import multiprocessing
import statistics
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.host.pki import SslDirPaths
from inspector.lab import Lab
from tests.bench import aims, analysis
from tests.bench.roads import Caller, enrolled, master, ours, stock

if TYPE_CHECKING:
    from collections.abc import Iterator
    from multiprocessing.synchronize import Barrier, Event

    from tests.bench.roads import Answer, Road

BARE = "`mitmdump --set stream_large_bodies=1m`"
RECORDING = "`mitmdump -w`"
ADDON, OWN = "`mitmdump -s addons/puppet.py`", "`puppet-inspector proxy`"
AIMS = {BARE: 1.0, ADDON: 0.9, OWN: 1.0}
"""What part of the speed of bare streaming should be reached."""
RECORDED_MEGABYTES = 48
"""Megabytes of a body that is kept whole (the limit is 64)."""
DOCUMENT = 10_000_000
"""Bytes of a catalog, and of a report."""
PAUSE = 0.2
"""Seconds between two of them."""
STEP = 0.005
"""Seconds between two small requests."""
SECONDS = 10.0
"""How long small requests are timed at a time."""
CATALOG, REPORT = (f"/puppet/v3/{what}/large.example?environment=production" for what in ("catalog", "report"))


# -- speed and memory -------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, slots=True)
class Passed:
    """One large body."""

    speed: float
    """Megabytes a second."""
    first: float
    """Seconds to the first byte of the answer."""
    cpu: float
    """Seconds of CPU of the proxy's process for a megabyte."""
    growth: float
    """Megabytes by which the proxy's process grew."""


def _memory(pid: int, what: str) -> float:
    """Of the proxy's process, in MB."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition(f"{what}:")[2].split()[0]) / 1000


def passed(road: Road, caller: Caller, size: int, *, sent: bool) -> Passed:
    """Pass one body, over a connection that is there already."""
    with caller.connect() as line:
        line.ask()
        Path(f"/proc/{road.pid}/clear_refs").write_text("5")  # the peak begins anew
        before, used = _memory(road.pid, "VmRSS"), road.cpu()
        answer: Answer
        if sent:
            answer = line.put("/puppet/v3/file_bucket_file/md5/00000000000000000000000000000000/f", size)
        else:
            answer = line.ask(target=f"/puppet/v3/file_content/modules/app/{size}.bin?environment=production")
        time.sleep(1.0)  # it is written to the capture meanwhile
        cpu = sum((road.cpu() - used).serving) / (size / 1e6)
        return Passed(size / 1e6 / answer.whole, answer.first, cpu, _memory(road.pid, "VmHWM") - before)


def streaming(roads: list[Road], lab: Lab, agent: SslDirPaths, megabytes: int, turns: int = 3) -> Iterator[str]:
    """The table of large bodies."""
    yield f"| body | road | to {BARE} | aim | speed | first byte | CPU for a MB | the process grows by | aim |"
    yield "|---|---|---|---|---|---|---|---|---|"
    for sent, size in ((False, megabytes), (True, megabytes), (False, RECORDED_MEGABYTES)):
        figures: dict[str, list[Passed]] = {road.name: [] for road in roads}
        for turn in range(-1, turns):
            for road in roads:
                caller = Caller(road.address, lab.proxy_name, agent)
                found = passed(road, caller, (size if turn >= 0 else RECORDED_MEGABYTES) * 1_000_000, sent=sent)
                if turn >= 0:
                    figures[road.name].append(found)
        title = f"{size} MB, {'sent' if sent else 'fetched'}{', kept whole' if size == RECORDED_MEGABYTES else ''}"
        for name, taken in figures.items():
            speed, first, cpu = (
                statistics.median(column)
                for column in zip(*((sample.speed, sample.first, sample.cpu) for sample in taken), strict=True)
            )
            ratio = statistics.median(
                sample.speed / base.speed for sample, base in zip(taken, figures[BARE], strict=True)
            )
            growth = max(sample.growth for sample in taken)
            fast, small = aims.at_least(round(ratio, 2), AIMS[name]), aims.at_most(growth, 32, " MB")
            begins = "" if sent else f"{first * 1000:.1f} ms"
            yield (
                f"| {title} | {name} | {ratio:.2f} | {'' if name == BARE else fast} | {speed:,.0f} MB/s "
                f"| {begins} | {cpu * 1000:.1f} ms | {growth:.0f} MB | {'' if name == BARE else small} |"
            )
    yield ""


# -- others' exchanges meanwhile --------------------------------------------------------------------------


def heavy(caller: Caller, start: Barrier, stop: Event) -> None:
    """Ask for catalogs, and send reports, until told to stop."""
    form, report = b"environment=production", analysis.report(DOCUMENT).body
    with caller.connect() as line:
        line.ask()
        start.wait()
        while not stop.is_set():
            for method, target, body, kind in (
                ("POST", CATALOG, form, "application/x-www-form-urlencoded"),
                ("PUT", REPORT, report, "application/json"),
            ):
                line.ask(method, target, body, kind)
                time.sleep(PAUSE)


def latencies(caller: Caller, seconds: float) -> list[float]:
    """Seconds of each small request."""
    taken = []
    with caller.connect() as line:
        line.ask()
        until = time.monotonic() + seconds
        while (began := time.monotonic()) < until:
            line.ask()
            ended = time.monotonic()
            taken.append(ended - began)
            time.sleep(max(0.0, STEP - (ended - began)))
    return taken


def meanwhile(caller: Caller, other: Caller, seconds: float) -> list[float]:
    """The same while another agent's catalogs and reports pass."""
    context = multiprocessing.get_context("spawn")
    start, stop = context.Barrier(2), context.Event()
    process = context.Process(target=heavy, args=(other, start, stop))
    process.start()
    try:
        start.wait(60)
        return latencies(caller, seconds)
    finally:
        stop.set()
        process.join(60)


def delays(
    roads: list[Road], lab: Lab, agent: SslDirPaths, other: SslDirPaths, seconds: float, turns: int = 2
) -> Iterator[str]:
    """The table of small requests."""
    yield "| an agent's small requests | meanwhile | p50 | p99 | worst | delay at p99 | aim |"
    yield "|---|---|---|---|---|---|---|"
    calm: dict[str, list[float]] = {road.name: [] for road in roads}
    busy: dict[str, list[float]] = {road.name: [] for road in roads}
    for _ in range(turns):
        for road in roads:
            caller, loud = (Caller(road.address, lab.proxy_name, ssldir) for ssldir in (agent, other))
            calm[road.name] += latencies(caller, seconds / turns)
            busy[road.name] += meanwhile(caller, loud, seconds / turns)
    for name in calm:
        late = _percentile(busy[name], 99) - _percentile(calm[name], 99)
        aim = "" if name == RECORDING else aims.at_most(late * 1000, 20, " ms")
        for what, taken, delay, cell in (
            ("nothing else", calm[name], "", ""),
            ("catalogs and reports of 10 MB", busy[name], f"{late * 1000:+.1f} ms", aim),
        ):
            figures = (_percentile(taken, 50), _percentile(taken, 99), max(taken))
            cells = " | ".join(f"{figure * 1000:.1f} ms" for figure in figures)
            yield f"| {name} | {what} | {cells} | {delay} | {cell} |"
    yield ""


def _percentile(taken: list[float], part: int) -> float:
    return statistics.quantiles(taken, n=100)[part - 1]


# -- all --------------------------------------------------------------------------------------------------


def bench(megabytes: int) -> Iterator[str]:
    """The tables."""
    catalog = analysis.catalog(DOCUMENT).body.replace(b"a.example", b"large.example")
    with ExitStack() as stack:
        lab = stack.enter_context(Lab(autosign=True))
        answers = {CATALOG.encode(): catalog, REPORT.encode(): b'{"a":1}'}
        target = stack.enter_context(master(SslDirPaths(lab.directory / "master", lab.master_name), answers))
        agent, other = (enrolled(lab, name, None) for name in ("small.example", "large.example"))
        mine = [stack.enter_context(ours(lab, target, ADDON)), stack.enter_context(ours(lab, target, OWN, own=True))]
        with stock(lab, agent, target, BARE, records=False, stream_large_bodies="1m") as bare:
            yield from streaming([bare, *mine], lab, agent, megabytes)
        with stock(lab, agent, target, RECORDING) as bare:
            yield from delays([bare, *mine], lab, agent, other, SECONDS)


def main() -> None:
    """Measure and print."""
    for line in bench(int(sys.argv[1]) if sys.argv[1:] else 1000):
        print(line, flush=True)


if __name__ == "__main__":
    main()

"""How fast the terminal inspector is: `python -m tests.bench.terminal [EXCHANGES]` (ten minutes; or: make bench).

A capture of 100,000 exchanges in runs of fifty is opened on a pty as a user does it: the time from starting the
process to the first runs on the screen, from a key to the last byte that it draws, and the peak memory. Side by side
with `mitmdump -nr` reading the same exchanges from a flow file. Prints the tables of docs/performance.md.
"""

from __future__ import annotations

import dataclasses
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from itertools import count, islice
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.capture.store import Capture
from inspector.formats.mitm_flows import export_flows
from inspector.model import Connection, Exchange, Leg, Request
from inspector.runs import examples
from inspector.summaries import index, indexer
from tests.bench import aims, analysis
from tests.tui.terminal import Answer, Terminal

if TYPE_CHECKING:
    from collections.abc import Iterator

RESOURCES = 10_000
"""Resources of the large catalog."""
LENGTH = 50
"""Exchanges of a run."""
CALM = 0.15
"""Seconds without output after which nothing more comes of a key."""
WELL = "n0000.example"
"""A node of which the first screen shows something."""
KEY, FILTERED = 50.0, 200.0
"""Milliseconds that a key, and a filter, may take to the first text that they change."""
DOWN, PAGE, LAST, FIRST, ENTER, ESCAPE = "\x1b[B", "\x1b[6~", "\x1b[F", "\x1b[H", "\r", "\x1b"


def long_runs() -> Iterator[list[Exchange]]:
    """Sampled runs, each with so many file requests more that it has ``LENGTH`` exchanges."""
    found = [run for run in analysis.templates() if len(run) > 8]
    for number in count():
        run = analysis.again(found[number % len(found)], number)
        at = next(
            place for place, exchange in enumerate(run) if exchange.request.target.startswith("/puppet/v3/catalog")
        )
        pattern = next(exchange for exchange in run if "/modules/" in exchange.request.target)
        more = []
        for extra in range(LENGTH - len(run)):
            target = re.sub(r"(\.\w+)?\?", rf"-{extra}\1?", pattern.request.target, count=1)
            more.append(dataclasses.replace(pattern, request=dataclasses.replace(pattern.request, target=target)))
        yield run[: at + 1] + more + run[at + 1 :] if more else run


def write(path: Path, number: int) -> None:
    """A capture of so many exchanges."""
    with Capture.create(path) as capture:
        noted: set[str] = set()
        for written, run in enumerate(islice(long_runs(), -(-number // LENGTH)), 1):
            for exchange in run:
                for leg in (exchange.agent, exchange.master):
                    if leg and leg.id not in noted:
                        noted.add(leg.id)
                        capture.note(Connection(leg))
                capture.append(exchange)
            if written % 20 == 0:
                capture.flush()


def with_large_catalog(path: Path) -> None:
    """A capture with one catalog of 10 MB."""
    leg = Leg("a", "agent", "192.0.2.1", 1, connected=1e9, secured=1e9)
    request = Request((("Host", "puppet:8140"),), b"", started=1e9, ended=1e9, method="POST",
                      target="/puppet/v3/catalog/a.example?environment=production")  # fmt: skip
    response = dataclasses.replace(analysis.catalog(10_000_000), started=1e9 + 1, ended=1e9 + 2)
    with Capture.create(path) as capture:
        capture.note(Connection(leg))
        capture.append(Exchange(leg, request, response))


def with_related_catalog(path: Path, number: int) -> None:
    """A capture of one run with so many files in a hundred classes, each with four relationships, and its report."""
    titles = [f"/etc/app/{at}.conf" for at in range(number)]
    resources: list[dict[str, object]] = [
        {"type": "Class", "title": f"App{at}", "parameters": {"require": f"Class[App{at - 1}]"}} for at in range(1, 101)
    ]
    resources += [
        {"type": "File", "title": title, "file": "/site.pp", "line": at, "parameters": {
            "content": "a = 1\n" * 20, "require": [f"File[{titles[at - back]}]" for back in (1, 2, 3) if at >= back],
            "notify": f"File[{titles[-1]}]" if at + 1 < number else []}}
        for at, title in enumerate(titles)
    ]  # fmt: skip
    edges = [{"source": "Stage[main]", "target": f"Class[App{at}]"} for at in range(1, 101)]
    edges += [{"source": f"Class[App{at % 100 + 1}]", "target": f"File[{title}]"} for at, title in enumerate(titles)]
    statuses = {f"File[{title}]": {"changed": at % 7 == 0, "evaluation_time": 0.01} for at, title in enumerate(titles)}
    with Capture.create(path) as capture:
        for record in examples.talk(
            examples.catalog(resources=resources, edges=edges), examples.report(resource_statuses=statuses)
        ):
            capture.append(record)


def peak(pid: int) -> float:
    """Peak memory of a process in MB."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    return int(found[1]) / 1000 if found else 0.0


def opened(path: Path, text: str) -> tuple[float, float]:
    """Seconds until a text stands on the screen, and the peak memory by then, in MB."""
    with Terminal("-m", "inspector.cli", "open", str(path), size=(160, 48)) as terminal:
        return terminal.wait_for(text), peak(terminal.pid)


def keys(path: Path) -> Iterator[str]:
    """The table of keys."""
    moves = {"cursor down": DOWN, "page down": PAGE, "sort": "s", "by agent": "a"}
    yield "| key | first text, median of 10 | aim | worst | whole picture, median of 10 | worst |"
    yield "|---|---|---|---|---|---|"
    with Terminal("-m", "inspector.cli", "open", str(path), size=(160, 48)) as terminal:
        terminal.wait_for("All runs")
        terminal.press("r")
        terminal.wait_for("n0")
        time.sleep(2)  # what the next screens need is loaded meanwhile
        yield _line("first line, last line", [terminal.press(key, CALM) for key in (FIRST, LAST) * 5])
        terminal.press(FIRST)
        for name, key in moves.items():
            yield _line(name, [terminal.press(key, CALM) for _ in range(10)])
        terminal.press(FIRST)
        taken = []
        for _ in range(10):
            taken.append(terminal.press(ENTER, CALM))
            terminal.press(ESCAPE, CALM)
            terminal.press(DOWN)
        yield _line("open a run", taken)
        terminal.press(ENTER, CALM)
        terminal.press(FIRST, CALM)
        for name, key in {"next exchange in a run": DOWN, "waterfall, sequence": "w"}.items():
            yield _line(name, [terminal.press(key, CALM) for _ in range(10)])
        terminal.press(ESCAPE, CALM)
        for text in ("phase:catalog ms:>500", "status:>=400", "rule:R21 agent:n00*"):
            terminal.press("f")
            for key in text:
                terminal.press(key)
            at = len(terminal.drawn)
            taken = [terminal.press(ENTER, CALM)]
            if "shown:" not in terminal.text(at):
                raise SystemExit(f"{text} did nothing: {terminal.text(at)}")
            yield _line(f"filter `{text}`", taken, FILTERED)
            terminal.press(ESCAPE, CALM)
        memory = peak(terminal.pid)
        yield f"| peak memory after all that | {memory:.0f} MB | {aims.at_most(memory, 200, ' MB')} | | | |"


def catalog_keys(path: Path) -> Iterator[str]:
    """The table of keys in a large catalog."""
    yield "| key | first text, median of 10 | aim | worst | whole picture, median of 10 | worst |"
    yield "|---|---|---|---|---|---|"
    with_related_catalog(path, RESOURCES)
    indexer.build(path, index.place(path))
    with Terminal("-m", "inspector.cli", "open", str(path), size=(160, 48)) as terminal:
        terminal.wait_for("node1.example")
        terminal.press(ENTER, CALM)
        time.sleep(2)  # what the next screens need is loaded meanwhile
        at = len(terminal.drawn)
        terminal.press("C", CALM)
        terminal.wait_for("changed", at)
        time.sleep(5)  # the relationships are read meanwhile
        for name, keys in {
            "resources: cursor down": (DOWN,), "resources: sort": ("s",), "tree, table": ("w",),
            "tree: page down": (PAGE,), "tree: close, open a class": ("h", "l"), "tree: next match": ("n",),
        }.items():  # fmt: skip
            if name.startswith("tree: page"):
                terminal.press("w", CALM)
            if name.endswith("match"):
                terminal.press("/", CALM)
                terminal.press("/etc/app/9\r", CALM)
            yield _line(name, [terminal.press(key, CALM) for key in keys * (10 // len(keys))])
        taken = []
        for _ in range(10):
            taken.append(terminal.press("r", CALM))
            terminal.press(ESCAPE, CALM)
        yield _line("relations of a resource", taken)
        terminal.press("r", CALM)
        terminal.press("h", CALM)
        yield _line("relations: go on", [terminal.press(ENTER, CALM) for _ in range(10)])
        yield _line("relations: back", [terminal.press("\x7f", CALM) for _ in range(10)])
        yield f"| peak memory after all that | {peak(terminal.pid):.0f} MB | | | | |"


def _line(name: str, taken: list[Answer], aim: float = KEY) -> str:
    figures = []
    for times in zip(*taken, strict=True):
        figures += [statistics.median(times), max(times)]
    cells = [f"{figure * 1000:.0f} ms" for figure in figures]
    cells.insert(1, aims.at_most(figures[0] * 1000, aim, " ms"))
    return f"| {name} | {' | '.join(cells)} |"


def screens(folder: Path, number: int) -> Iterator[str]:
    """The table of first screens."""
    path = folder / "large.sqlite"
    write(path, number)
    flows = folder / "large.mitm"
    with Capture.open(path) as capture:
        export_flows(capture.records(), flows)
    yield "| | time | aim | peak memory |"
    yield "|---|---|---|---|"
    first, memory = opened(path, "reading record")
    yield f"| first opening, until the screen says that it reads | {first:.2f} s | | {memory:.0f} MB |"
    index.place(path).unlink(missing_ok=True)
    began = time.monotonic()
    indexer.build(path, index.place(path))
    yield f"| the index is made (once) | {time.monotonic() - began:.1f} s | | |"
    taken = [opened(path, WELL) for _ in range(5)]
    middle = statistics.median(sample[0] for sample in taken)
    aim = aims.at_most(middle, 0.5, " s")
    yield f"| first screen, median of 5 | {middle:.2f} s | {aim} | {taken[-1][1]:.0f} MB |"
    began = time.monotonic()
    process = subprocess.Popen([Path(sys.executable).with_name("mitmdump"), "-nr", flows], stdout=subprocess.DEVNULL)
    most = 0.0
    while process.poll() is None:
        most = max(most, peak(process.pid))
        time.sleep(0.05)
    yield f"| `mitmdump -nr` of the same exchanges | {time.monotonic() - began:.1f} s | | {most:.0f} MB |"
    large = folder / "catalog.sqlite"
    with_large_catalog(large)
    indexer.build(large, index.place(large))
    with Terminal("-m", "inspector.cli", "open", str(large), size=(160, 48)) as terminal:
        terminal.wait_for("a.example")
        time.sleep(2)
        at, began = len(terminal.drawn), time.monotonic()
        terminal.press(ENTER)
        terminal.wait_for("Class[App]", at)
        took = time.monotonic() - began
        aim = aims.at_most(took, 1.0, " s")
        yield f"| a catalog of 10 MB, from Enter to its tree | {took:.2f} s | {aim} | {peak(terminal.pid):.0f} MB |"


def command(*arguments: str | Path) -> tuple[float, float]:
    """Seconds that a command takes, and its peak memory in MB."""
    began = time.monotonic()
    program = Path(sys.executable).with_name("puppet-inspector")
    process = subprocess.Popen([program, *arguments], stdout=subprocess.DEVNULL)
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = 0
    return time.monotonic() - began, usage.ru_maxrss / 1000


def scale(folder: Path, number: int) -> Iterator[str]:
    """The table of a capture of a million exchanges."""
    path = folder / "million.sqlite"
    write(path, number)
    size = path.stat().st_size
    yield f"| {number:,} exchanges in {number // LENGTH:,} runs ({size / 1e6:.0f} MB) | measured | aim | peak memory |"
    yield "|---|---|---|---|"
    for name in ("runs", "check", "doctor"):
        took, memory = command(name, path)
        yield f"| `{name}` without an index | {took:.0f} s | {aims.at_most(memory, 300, ' MB')} | {memory:.0f} MB |"
    with Terminal("-m", "inspector.cli", "check", str(path)) as terminal:
        first = terminal.wait_for("All of it is being read.")
    aim = aims.at_most(first, 2, " s")
    yield f"| `check` without an index, until its first answer | {first:.2f} s | {aim} | |"
    useful, _ = opened(path, WELL)
    time.sleep(1)  # the process that made the index notices that nobody reads it any more
    yield f"| first opening, until the newest runs are judged | {useful:.2f} s | {aims.at_most(useful, 2, ' s')} | |"
    index.place(path).unlink(missing_ok=True)
    began = time.process_time()
    indexer.build(path, index.place(path))
    took = time.process_time() - began
    rate = number / took
    aim = aims.at_least(rate, 15_000, "/s")
    yield f"| the index is made, on one core | {took:.0f} s, {rate:,.0f} exchanges/s | {aim} | |"
    share = index.place(path).stat().st_size / size
    yield f"| its size, to that of the capture | {share:.2f} | {aims.at_most(share, 0.3)} | |"
    taken = [opened(path, WELL) for _ in range(5)]
    middle = statistics.median(sample[0] for sample in taken)
    yield f"| first screen, median of 5 | {middle:.2f} s | {aims.at_most(middle, 1.0, ' s')} | {taken[-1][1]:.0f} MB |"
    for name in ("runs", "check", "doctor", "list"):
        took, memory = command(name, path)
        aim = aims.at_most(took, 3, " s") if name != "list" else ""
        yield f"| `{name}` with the index | {took:.1f} s | {aim} | {memory:.0f} MB |"


def main() -> None:
    """Measure and print."""
    number = int(sys.argv[1]) if sys.argv[1:] else 100_000
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for lines in (
            screens(folder, number),
            keys(folder / "large.sqlite"),
            catalog_keys(folder / "related.sqlite"),
            scale(folder, 10 * number),
        ):
            for line in lines:
                print(line, flush=True)
            print()


if __name__ == "__main__":
    main()

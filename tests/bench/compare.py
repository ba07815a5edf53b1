"""What a comparison costs: `python -m tests.bench.compare` (a minute; or: make bench).

Two catalogs of 10 MB are decoded and compared, and the runs that got them as `puppet-inspector diff` does it; then the
runs of 1000 nodes, of which most changed in the same way. Prints the tables of docs/performance.md.
"""

from __future__ import annotations

import dataclasses
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from inspector.compare import catalogs, comparison
from inspector.compare.differences import Differences
from inspector.compare.groups import Groups
from inspector.compare.masks import Masks
from inspector.model import Exchange
from inspector.protocol import documents as d
from inspector.runs.examples import catalog, report, talk
from inspector.summaries import index, indexer
from tests.bench import aims
from tests.support.captures import save
from tests.support.compared import gathered
from tests.support.conversations import numbered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from inspector.model import Record

DOCUMENT = 10_000_000
"""Bytes of a catalog."""
NODES = 1000
RESOURCES = 300
"""Resources of a node's catalog."""
TURNS = 3
CHANGED = 100
"""Of so many resources of a large catalog one is changed."""
MODULE = "/etc/puppetlabs/code/environments/production/modules/app/manifests/init.pp"


def resources(number: int, changed: Callable[[int], bool], name: str = "a") -> list[dict[str, Any]]:
    """File resources, some with another mode."""
    return [
        {
            "type": "File", "title": f"/etc/app/conf.d/{at}.conf", "tags": ["file", "class", "app"], "file": MODULE,
            "line": at, "exported": False,
            "parameters": {
                "ensure": "file", "mode": "0600" if changed(at) else "0644", "owner": "root",
                "content": f"# {name}\n{'x' * 100}{at}\n", "require": "Package[app]",
            },
        }
        for at in range(number)
    ]  # fmt: skip


def large(changed: Callable[[int], bool]) -> bytes:
    """A catalog of 10 MB."""
    size = len(json.dumps(resources(100, changed))) / 100 + 60
    number = round(DOCUMENT / size)
    edges = [{"source": "Class[App]", "target": f"File[/etc/app/conf.d/{at}.conf]"} for at in range(number)]
    return json.dumps({"name": "a", "resources": resources(number, changed), "edges": edges}).encode()


def best(work: Callable[[], object]) -> float:
    """The CPU seconds of the fastest of some turns."""
    taken = []
    for _ in range(TURNS):
        began = time.process_time()
        work()
        taken.append(time.process_time() - began)
    return min(taken)


def of_catalogs(folder: Path) -> Iterator[str]:
    """The table of two large catalogs."""
    yield "| two catalogs of 10 MB | differences | decoded | compared | together | aim | the whole command |"
    yield "|---|---|---|---|---|---|---|"
    before = large(lambda _: False)
    kinds: tuple[tuple[str, Callable[[int], bool]], ...] = (
        ("the same", lambda _: False), (f"one resource in {CHANGED} changed", lambda at: at % CHANGED == 0),
        ("every resource changed", lambda _: True),
    )  # fmt: skip
    for name, changed in kinds:
        after = large(changed)
        old, new = (msgspec.json.decode(body, type=d.Catalog) for body in (before, after))

        def decode(after: bytes = after) -> None:
            for body in (before, after):
                msgspec.json.decode(body, type=d.Catalog)

        def compare(old: d.Catalog = old, new: d.Catalog = new) -> int:
            found = Differences(Masks([old, new]))
            catalogs.compare(old, new, found)
            return len(found.found)

        decoding, comparing = best(decode), best(compare)
        paths = [captured(folder / f"{at}.sqlite", received(body)) for at, body in enumerate((before, after))]
        command = commanded(*paths)
        yield (
            f"| {name} | {compare():,} | {decoding:.2f} s | {comparing:.2f} s | {decoding + comparing:.2f} s "
            f"| {aims.at_most(round(decoding + comparing, 2), 1, ' s')} | {command:.1f} s |"
        )
    yield ""


def received(body: bytes) -> list[Record]:
    """A run whose agent received a catalog."""
    records = []
    for record in talk(catalog(), report()):
        if record.seq == 1:
            assert isinstance(record, Exchange)
            assert record.response is not None
            response = record.response
            record = dataclasses.replace(record, response=dataclasses.replace(response, body=body))
        records.append(record)
    return records


def captured(path: Path, records: list[Record]) -> Path:
    """A capture with its index."""
    path.unlink(missing_ok=True)
    save(path, *records)
    indexer.build(path, index.place(path))
    return path


def commanded(*paths: Path) -> float:
    """The seconds of the whole command."""
    began = time.perf_counter()
    command = [sys.executable, "-m", "inspector.cli", "diff", *map(str, paths), "--json"]
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    return time.perf_counter() - began


def run_of(number: int, *, changed: bool) -> list[Record]:
    """A run of a node: most change in the same way, some in another, some not."""
    name, kind = f"n{number:04}.example", number % 20
    modes = {0: lambda _: False, 1: lambda at: at == 7}.get(kind, lambda at: at % 100 == 0)
    made = resources(RESOURCES, modes if changed else lambda _: False, name)
    return talk(catalog(resources=made), report(), certname=name, after=number * 10.0)


def of_nodes(folder: Path) -> Iterator[str]:
    """The table of many nodes."""
    title = f"{NODES} nodes, catalogs of {RESOURCES} resources"
    yield f"| {title} | groups | compared and grouped | the whole command | aim |"
    yield "|---|---|---|---|---|"
    groups, taken = Groups(), 0.0
    sides: list[list[Record]] = [[], []]
    for number in range(NODES):
        records = [run_of(number, changed=changed) for changed in (False, True)]
        for side, own in zip(sides, records, strict=True):
            side += own
        before, after = map(gathered, records)
        began = time.process_time()
        groups.add(comparison.compare(before, after))
        taken += time.process_time() - began
    began = time.process_time()
    found = len(groups.groups)
    taken += time.process_time() - began
    paths = []
    for at, side in enumerate(sides):
        paths.append(captured(folder / f"nodes{at}.sqlite", numbered(side)))
    command = min(commanded(*paths) for _ in range(TURNS))
    yield (
        f"| {groups.changed} changed, {len(groups.same)} the same | {found} | {taken:.1f} s "
        f"| {command:.1f} s | {aims.at_most(round(command, 1), 5, ' s')} |"
    )
    yield ""


def main() -> None:
    """Print the tables."""
    with tempfile.TemporaryDirectory() as folder:
        for line in (*of_catalogs(Path(folder)), *of_nodes(Path(folder))):
            print(line, flush=True)


if __name__ == "__main__":
    main()

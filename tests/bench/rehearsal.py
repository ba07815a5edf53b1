"""What a rehearsal costs beside the master: `python -m tests.bench.rehearsal` (half a minute; or: make bench).

Agents are rehearsed, one at a time, against a master that has the answers ready. Prints the table of
docs/performance.md.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.capture.store import Capture
from inspector.model import Exchange, Response
from inspector.rehearsal.requests import V4
from inspector.runs.examples import catalog, report, talk
from tests.bench import aims
from tests.bench.compare import CHANGED, RESOURCES, captured, resources
from tests.support.conversations import numbered
from tests.support.rehearsals import JSON, new_master

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inspector.model import Request
    from tests.support.rehearsals import NewMaster

NODES = 200
AIM = 50.0
"""Milliseconds for each node."""


def name_of(number: int) -> str:
    """A node."""
    return f"n{number:04}.example"


def recorded(path: Path) -> Path:
    """A capture with a run of each node."""
    talks = [
        talk(catalog(resources=resources(RESOURCES, lambda _: False, name_of(number))), report(),
             certname=name_of(number), after=number * 10.0)
        for number in range(NODES)
    ]  # fmt: skip
    return captured(path, numbered(record for records in talks for record in records))


def answers() -> dict[str, Response]:
    """The catalog of each node, of which some resources are changed."""
    made = {}
    for number in range(NODES):
        changed = resources(RESOURCES, lambda at: at % CHANGED == 0, name_of(number))
        made[name_of(number)] = {"name": name_of(number), "environment": "production", "resources": changed}
    return {name: Response(status=200, headers=(JSON,), body=json.dumps(each).encode()) for name, each in made.items()}


def measured(master: NewMaster, capture: Path, output: Path, words: list[object]) -> tuple[float, float, float]:
    """The seconds of the command before the first request, of the master, and of the command after the first request,
    the last two for a node."""
    began = time.time()
    command = ["rehearse", capture, *words, "-o", output, "--jobs", "1", "--json"]
    subprocess.run([sys.executable, "-m", "inspector.cli", *map(str, command)], stdout=subprocess.DEVNULL, check=False)
    ended = time.time()
    with Capture.open(output) as made:
        exchanges = [record for record in made.records() if isinstance(record, Exchange)]
    assert len(exchanges) == len(master.received) == NODES
    own = sum(exchange.ended - exchange.time for exchange in exchanges)
    first = min(exchange.time for exchange in exchanges)
    master.received.clear()
    return first - began, own / NODES, (ended - first) / NODES


def rows(folder: Path) -> Iterator[str]:
    """The table."""
    title = f"{NODES} nodes, catalogs of {RESOURCES} resources"
    yield f"| {title} | the master | the rehearsal beside it | aim | beforehand |"
    yield "|---|---|---|---|---|"
    ready = answers()

    def answer(request: Request) -> Response:
        if request.path != V4:
            return ready[request.path.rpartition("/")[2]]
        name = json.loads(request.body)["certname"]
        return Response(status=200, headers=(JSON,), body=b'{"catalog": ' + ready[name].body + b', "logs": []}')

    capture = recorded(folder / "recorded.sqlite")
    with new_master(folder, before=answer) as master:
        master.enrol(*ready)
        for title, words in (("`v4`", master.v4), ("`keys:DIR`", master.as_agents())):
            output = folder / f"{len(title)}.sqlite"
            before, own, whole = measured(master, capture, output, words)
            beside = (whole - own) * 1000
            yield (
                f"| {title} | {own * 1000:.1f} ms | {beside:.1f} ms | {aims.at_most(round(beside, 1), AIM, ' ms')} "
                f"| {before:.1f} s |"
            )
    yield ""


def main() -> None:
    """Print the table."""
    with tempfile.TemporaryDirectory() as folder:
        for line in rows(Path(folder)):
            print(line, flush=True)


if __name__ == "__main__":
    main()

"""Agents in turmoil, for `tests.bench.soak` and a test: some reset their connections, some read slowly, and the master
restarts again and again. An agent asks each request again until it is answered, as real ones do in their next run.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import tempfile
import threading
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from inspector.capture.store import Capture
from inspector.cli import demo
from inspector.host.pki import SslDirPaths
from inspector.lab import Lab
from inspector.model import Exchange
from inspector.proxy.launcher import Proxy
from tests.bench.load import PROCESSES
from tests.bench.roads import Caller, enrolled, master
from tests.e2e.faults import Middle
from tests.e2e.wire import reset

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

REQUESTS = 8
"""Of a run."""
LARGE = 2**20
"""Bytes of what slow readers read."""
UP, DOWN = 10.0, 1.0
"""Seconds that the master is there, and that it is not."""
GIVES_UP = 60.0
"""Seconds after which an agent takes a request for failed."""


@dataclass
class Log:
    """What an agent asked for."""

    runs: int = 0
    failed: int = 0
    """Runs in which a request was never answered."""
    again: int = 0
    """Requests that had to be asked again."""
    answered: list[str] = field(default_factory=list)
    """Names of the files that it got."""
    broken: list[str] = field(default_factory=list)
    """Names of the files that it asked for and reset the connection."""


class Result(NamedTuple):
    """What came of it."""

    runs: int
    failed: int
    again: int
    answered: int
    broken: int
    lost: int
    """Answered requests without a record of the answer."""
    missed: int
    """Reset requests without any record."""
    restarts: int


class Agent:
    """Makes run after run."""

    def __init__(self, caller: Caller) -> None:
        self._caller = caller
        self._chance = random.Random(str(caller.place.path))  # noqa: S311
        self.log = Log()

    def live(self, until: float) -> None:
        certname = self._caller.place.path.name
        time.sleep(self._chance.uniform(0, 1))
        while time.monotonic() < until:
            self.log.runs += 1
            try:
                self._run(f"{certname}-{self.log.runs}")
            except TimeoutError:
                self.log.failed += 1
            time.sleep(self._chance.uniform(0, 2))

    def _run(self, name: str) -> None:
        whim = self._chance.random()
        left = [f"{name}-{number}" for number in range(REQUESTS)]
        if whim < 0.1:
            self._break(f"{name}-reset")
        if whim > 0.95:
            left.append(f"{name}-{LARGE}.bin")
        until = time.monotonic() + GIVES_UP
        while left:
            try:
                with self._caller.connect() as line:
                    while left:
                        line.send(target=_target(left[0]))
                        if left[0].endswith(".bin"):
                            time.sleep(1)  # it reads nothing
                        line.read(0.0)
                        self.log.answered.append(left.pop(0))
            except OSError as error:
                self.log.again += 1
                if time.monotonic() > until:
                    raise TimeoutError from error
                time.sleep(0.2)

    def _break(self, name: str) -> None:
        """Ask, and reset the connection a moment later."""
        with contextlib.suppress(OSError), self._caller.connect() as line:
            line.send(target=_target(name))
            time.sleep(self._chance.uniform(0, 0.05))
            reset(line.connection)
            self.log.broken.append(name)


def _target(name: str) -> str:
    return f"/puppet/v3/file_content/modules/app/{name}?environment=production"


def _agents(callers: list[Caller], seconds: float, out: Connection) -> None:
    """Some of the agents, each a thread of this process; sends what they asked for."""
    agents = [Agent(caller) for caller in callers]
    until = time.monotonic() + seconds
    threads = [threading.Thread(target=agent.live, args=(until,)) for agent in agents]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    out.send([agent.log for agent in agents])


def play(number: int, seconds: float, *, own: bool) -> Result:
    """So many agents for so long."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        lab = stack.enter_context(Lab(autosign=True))
        places = [enrolled(lab, f"agent{each}.lab.example", None) for each in range(number)]
        target = stack.enter_context(master(SslDirPaths(lab.directory / "master", lab.master_name)))
        middle = stack.enter_context(Middle(target))
        options = demo.options(lab, folder / "c.sqlite") | {"puppet_master": "127.0.0.1:{}".format(*middle.address[1:])}
        with Proxy(options, own=own) as proxy:
            callers = [
                Caller(proxy.address, lab.proxy_name, place, f"127.0.{each // 250 + 1}.{each % 250 + 1}")
                for each, place in enumerate(places)
            ]
            logs, restarts = _played(callers, seconds, middle)
        return _judged(logs, restarts, folder)


def _played(callers: list[Caller], seconds: float, middle: Middle) -> tuple[list[Log], int]:
    """Run the agents, and restart the master while they do."""
    context, ends, logs, restarts = get_context("spawn"), [], [], 0
    for part in range(PROCESSES):
        here, there = context.Pipe(duplex=False)
        process = context.Process(target=_agents, args=(callers[part::PROCESSES], seconds, there), daemon=True)
        process.start()
        ends.append((process, here))
    until = time.monotonic() + seconds
    for restarts in itertools.count():  # noqa: B007 - their number
        time.sleep(min(UP, seconds / 3))
        if time.monotonic() > until:
            break
        middle.down()
        time.sleep(DOWN)
        middle.up()
    for process, here in ends:
        logs += here.recv()
        process.join()
    return logs, restarts


def _judged(logs: list[Log], restarts: int, folder: Path) -> Result:
    """Compare what the agents saw with the captures."""
    whole: Counter[str] = Counter()
    some: set[str] = set()
    for path in folder.glob("*.sqlite"):
        with Capture.open(path) as capture:
            for record in capture.records():
                if isinstance(record, Exchange):
                    name = record.request.target.partition("?")[0].rpartition("/")[2]
                    some.add(name)
                    whole[name] += record.error is None and record.response is not None
    answered = [name for each in logs for name in each.answered]
    broken = [name for each in logs for name in each.broken]
    lost, missed = sum(not whole[name] for name in answered), sum(name not in some for name in broken)
    return Result(
        sum(each.runs for each in logs), sum(each.failed for each in logs), sum(each.again for each in logs),
        len(answered), len(broken), lost, missed, restarts,
    )  # fmt: skip

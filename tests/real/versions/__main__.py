"""Play the matrix of versions: ``python -m tests.real.versions [WORDS...] [--write]`` (or: make test-versions).

``--write`` puts what came of it, with date and versions, into docs/coverage.md (what was not played this time stays);
else it is only printed. The last line says what could not be played, because a version cannot be had here; then the
exit status is 1, too.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import re
import shutil
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from inspector import __version__
from tests.real import releases
from tests.real.machine import host_names, missing
from tests.real.through import PROXY_HOST, PROXY_NAME
from tests.real.versions.engine import WAYS, Pair, play
from tests.real.versions.scenarios import SCENARIOS
from tests.real.versions.site import SiteMaster
from tests.support import coverage_table, version_matrix
from tests.support.version_matrix import Cell

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.real.releases import System
    from tests.real.versions.engine import Came, Expected, Scenario, Way
    from tests.support.version_matrix import Matrix

FULL = (Pair("7.23", "7.9.5"), Pair("8.10", "8.7.0"), Pair("9 rc1", "8.7.0"))
PARTIAL = (Pair("8.10", "7.9.5"), Pair("9 rc1", "7.9.5"), Pair("7.23", "8.7.0"))
"""What an upgrade comes by."""
PLACES = {"7.23": None, "7.9.5": None, "8.10": "trixie", "8.7.0": "trixie", "9 rc1": "sid"}
"""The release of Debian that has a version; None: this machine's."""
IDLE = 15
"""Seconds after which the master closes a silent connection, also of an agent that waits for another one's catalog."""
RENEWING = {"allow-auto-renewal": True, "auto-renewal-cert-ttl": "3d"}


type Play = tuple[Pair, Scenario, Way]


class Result(NamedTuple):
    """One play."""

    pair: Pair
    scenario: Scenario
    way: Way
    came: Came
    expected: Expected

    def __str__(self) -> str:
        return f"{self.pair} {self.scenario.name} ({self.way})"

    @property
    def differs(self) -> list[str]:
        return self.came.differences(self.expected)


class Machines:
    """The releases of Debian that can be had here."""

    def __init__(self, names: set[str | None]) -> None:
        self.systems: dict[str | None, System | None] = {}
        self.absent: dict[str | None, str] = {}
        for name in sorted(names, key=str):
            try:
                if reason := missing():
                    raise RuntimeError(reason)
                if name and not shutil.which("debootstrap"):
                    raise RuntimeError("debootstrap is not installed")
                self.systems[name] = releases.stored(name) if name else None
            except RuntimeError as error:
                self.absent[name] = f"{error}".partition("\n")[0]

    def has(self, pair: Pair) -> bool:
        return all(PLACES[version] in self.systems for version in pair)

    def program(self, version: str, directory: Path) -> tuple[str, System | None]:
        """The agent's `puppet` of a version."""
        system = self.systems[PLACES[version]]
        if system is None:
            return shutil.which("puppet") or "puppet", None
        (where := directory / f"programs-{version[0]}").mkdir(exist_ok=True)
        return str(system.program("puppet", where)), system

    @functools.cache  # noqa: B019 - there is one for the whole session
    def versions(self, pair: Pair) -> str:
        """The versions in full, as the programs print them."""
        agent, master = (
            system.done(f"{program} --version")
            if (system := self.systems[PLACES[version]])
            else subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
            for program, version in zip(("puppet", "puppetserver"), pair, strict=True)
        )
        kind = "OpenVox" if pair.agents > 8 else "puppet-agent"
        return f"{kind} {agent.split()[-1]}, puppetserver {master.split()[-1]}, puppet-inspector {__version__}"


def chosen(words: list[str], ways: list[Way], *, missing: bool) -> list[Play]:
    """The plays that fit: all words of ``words`` if there are any; one road after the other.

    ``missing``: without those that were played before, as they are expected now.
    """
    before = version_matrix.load() if missing else version_matrix.Matrix()
    return [
        (pair, scenario, way)
        for way in ways
        for pair in (*FULL, *PARTIAL)
        for scenario in SCENARIOS
        if (scenario.upgrade or pair in FULL) and all(word in f"{pair} {scenario.name}" for word in words)
        if not has(before, pair, scenario, way)
    ]


def main() -> int:
    """Play, print, and write if that is asked for; 1 if something is not as expected, or could not be played."""
    parser = argparse.ArgumentParser(prog="python -m tests.real.versions", description=__doc__)
    parser.add_argument("words", nargs="*", metavar="WORDS", help="only what has all of them in AGENT/MASTER SCENARIO")
    parser.add_argument("--road", choices=WAYS, action="append", help="only this road (again: this one, too)")
    parser.add_argument("--missing", action="store_true", help="only what docs/coverage.md does not have as expected")
    parser.add_argument("--at-once", type=int, default=3, metavar="N", help="how many agents at the same time")
    parser.add_argument("--write", action="store_true", help="into docs/coverage.md")
    parser.add_argument("--logs", type=Path, metavar="DIR", help="write what each play printed into this directory")
    given = parser.parse_args()
    plays = chosen(given.words, given.road or ["proxy", "run", "mitmdump"], missing=given.missing)
    if not plays:
        parser.error("nothing fits, or nothing is missing")
    machines = Machines({PLACES[version] for pair, _, _ in plays for version in pair})
    results: list[Result] = []
    for master in sorted({pair.master for pair, _, _ in plays}):
        own = [each for each in plays if each[0].master == master and machines.has(each[0])]
        for result in played(master, own, machines, given.at_once, given.logs) if own else ():
            results.append(result)
            print(f"{'BAD ' if result.differs else 'good'} {result.came.seconds:3.0f} s {result}"
                  f"{''.join(f'\n       {each}' for each in result.differs)}", flush=True)  # fmt: skip
            if given.write:  # at once: an hour's plays may be interrupted
                write([result], machines)
    if given.write:
        coverage_table.write_page()
    bad = sum(bool(result.differs) for result in results)
    print(f"{len(results) - bad} of {len(results)} as expected")
    for name, reason in machines.absent.items():
        pairs = dict.fromkeys(str(pair) for pair, _, _ in plays if name in {PLACES[version] for version in pair})
        print(f"NOT PLAYED: {', '.join(pairs)}: {reason}")
    return int(bool(machines.absent or bad))


def keep(result: Result, capture: Path, logs: Path) -> None:
    """Keep what a play printed and recorded."""
    logs.mkdir(exist_ok=True, parents=True)
    name = re.sub(r"[^a-z0-9.]+", "-", f"{result}".lower()).strip("-")
    came = result.came
    lines = [*result.differs, f"status {came.status}", *(f"run {run}" for run in came.runs), "", came.output]
    (logs / f"{name}.log").write_text("\n".join(lines))
    if capture.exists():
        shutil.copyfile(capture, logs / f"{name}.sqlite")


def has(matrix: Matrix, pair: Pair, scenario: Scenario, way: Way) -> bool:
    """Whether a matrix has a play that was as it is expected now."""
    ways = matrix.pairs[f"{pair}"].scenarios.get(scenario.name, {}) if f"{pair}" in matrix.pairs else {}
    return way in ways and not ways[way].differs and ways[way].expected == f"{scenario.expected(pair, way)}"


def write(results: list[Result], machines: Machines) -> None:
    """Store what was played in golden/versions.json; what was not stays as it was."""
    matrix = version_matrix.load()
    matrix.pairs = {f"{pair}": matrix.pairs.get(f"{pair}", version_matrix.Played()) for pair in (*FULL, *PARTIAL)}
    bodies = {version: {tuple(row) for row in rows} for version, rows in matrix.bodies.items()}
    for result in results:
        of_pair = matrix.pairs[f"{result.pair}"]
        of_pair.versions = machines.versions(result.pair)
        cell = Cell(f"{datetime.now(UTC):%Y-%m-%d}", f"{result.expected}", "; ".join(result.differs))
        of_pair.scenarios.setdefault(result.scenario.name, {})[result.way] = cell
        for version, rows in result.came.decoded.items():
            bodies.setdefault(version, set()).update(rows)
    for of_pair in matrix.pairs.values():  # in the order of the code, without those that have gone
        names = (each.name for each in SCENARIOS)
        of_pair.scenarios = {name: of_pair.scenarios[name] for name in names if name in of_pair.scenarios}
    matrix.pairs = {pair: of_pair for pair, of_pair in matrix.pairs.items() if of_pair.scenarios}
    matrix.bodies = {version: sorted([*row] for row in rows) for version, rows in sorted(bodies.items())}
    version_matrix.FILE.write_text(version_matrix.dump(matrix))


def played(version: str, plays: list[Play], machines: Machines, at_once: int, logs: Path | None) -> Iterator[Result]:
    """Play with one master, several agents at a time; last on each road what needs it alone."""
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="versions-")))
        directory.chmod(0o755)
        stack.enter_context(host_names({PROXY_NAME: PROXY_HOST}))
        name, host = f"master{version[0]}.example", f"127.0.{version[0]}.7"
        renewing = RENEWING if version[0] != "7" else None
        master = SiteMaster(name, host=host, idle_timeout=IDLE, system=machines.systems[PLACES[version]],
                            ca_settings=renewing)  # fmt: skip
        stack.enter_context(master)
        master.generate(PROXY_NAME)

        def one(pair: Pair, scenario: Scenario, way: Way) -> Result:
            where = directory / f"{scenario.slug}-{pair.agents}-{way}"
            where.mkdir()
            program, system = machines.program(pair.agent, where)
            came, capture = play(scenario, pair, way, master, where, program, system)
            result = Result(pair, scenario, way, came, scenario.expected(pair, way))
            if logs:
                keep(result, capture, logs)
            return result

        pool = ThreadPoolExecutor(at_once)
        stack.callback(pool.shutdown, cancel_futures=True)  # an interruption waits for what has begun, and no more
        for _, of_way in itertools.groupby(plays, key=lambda each: each[2]):
            own = list(of_way)
            for future in [pool.submit(one, *each) for each in own if not each[1].alone]:
                yield future.result()
            yield from (one(*each) for each in own if each[1].alone)


if __name__ == "__main__":
    sys.exit(main())

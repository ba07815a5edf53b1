"""How solid the proxy is: `python -m tests.bench.soak [SECTION...] [--write]` (or: make soak).

Faults of all kinds, kills, many agents at once, and memory over a long time. ``--write`` puts the tables into
docs/reliability.md (what is promised: docs/security.md) with the conditions under which they were measured; else they
are only printed.
"""

from __future__ import annotations

import argparse
import os
import platform
import random
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree

from OpenSSL import SSL

from inspector import __version__
from inspector.host.pki import SslDirPaths
from inspector.lab import Lab
from inspector.rules import all_rules
from tests.bench import aims, floods, strangers, turmoil
from tests.bench.load import Load, besieged, milliseconds, resident
from tests.bench.roads import Caller, Road, _below, enrolled, master, ours
from tests.e2e.faults import CUTS, FAULTS, Scene, Tally, cuts, drained, killed
from tests.real.puppet import RealMaster
from tests.support import message_fuzz, places, tables
from tests.support import planted as secrets
from tests.support.broken_rules import costs_only_itself
from tests.support.recorded import SAMPLES, records_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from inspector.lab.agent import LabAgent

DOCS = places.DOCS
RELIABILITY, SECURITY = DOCS / "reliability.md", DOCS / "security.md"
ADDON, OWN = "`mitmdump -s addons/puppet.py`", "`puppet-inspector proxy`"
PROXIES = {ADDON: False, OWN: True}
GROWTH = 20.0
"""MB that memory may grow by."""
IDLE = 90.0
"""MB that idle connections may take."""
POINTS = 10
"""Times that memory is looked at."""
DAY = 86_400.0
POLLING = 50
"""Agents that poll for a day."""


# -- faults -----------------------------------------------------------------------------------------------


def faults(given: argparse.Namespace) -> Iterator[str]:
    """All faults with both proxies."""
    plays: dict[str, Callable[[Scene], Tally]] = dict(FAULTS)
    for name, (side, way) in CUTS.items():
        plays[name] = lambda scene, side=side, way=way: cuts(scene, side, way, given.step)  # type: ignore[misc]
    tallies: dict[str, list[Tally]] = {name: [] for name in plays}
    for own in PROXIES.values():
        with tempfile.TemporaryDirectory() as folder, Scene(Path(folder), own=own) as scene:
            for name, play in plays.items():
                rounds = 1 if name in CUTS else given.rounds
                tallies[name].append(sum((_played(play, scene) for _ in range(rounds)), Tally()))
    tallies["SIGTERM with requests under way"] = [_alone(drained, own) for own in PROXIES.values()]
    yield f"| fault: tried / run ended as without the proxy / records lost | {' | '.join(PROXIES)} |"
    yield "|---|---|---|"
    for name, both in tallies.items():
        yield f"| {name} | {' | '.join(map(_cell, both))} |"


def _played(play: Callable[[Scene], Tally], scene: Scene) -> Tally:
    try:
        return play(scene)
    except AssertionError:
        return Tally(1)


def _alone(play: Callable[..., Tally], own: bool, **given: float) -> Tally:
    with tempfile.TemporaryDirectory() as folder:
        return play(Path(folder), own=own, **given)


def _cell(tally: Tally) -> str:
    if not tally.tried:
        return "no such place"
    message = f" ({len(tally.gaps)} gaps say so)" if tally.lost and tally.gaps else ""
    whole = tally.same == tally.tried and tally.lost <= len(tally.gaps)
    text = f"{tally.tried:,} / {tally.same:,} / {tally.lost:,}{message}"
    return text if whole else f"**{text}**"


def messages(given: argparse.Namespace) -> Iterator[str]:
    """Nearly right requests, read by the engine and by a real master."""
    first = datetime.now(tz=UTC).date().toordinal() * 10**6  # others every day
    with RealMaster(idle_timeout=1) as real:
        result = message_fuzz.compare((real.host, real.port), first, given.messages)
    for number, what in result.differences:
        print(f"stream {number}: {what}", file=sys.stderr)
    differ = f"{len(result.differences)}" if not result.differences else f"**{len(result.differences)}**"
    yield "| minutes | streams of requests | accepted whole | refused or not complete | other messages for Jetty |"
    yield "|---|---|---|---|---|"
    refused = result.tried - result.accepted
    yield f"| {given.messages / 60:g} | {result.tried:,} | {result.accepted:,} | {refused:,} | {differ} |"


def kills(given: argparse.Namespace) -> Iterator[str]:
    """SIGKILL at random moments."""
    chance = random.Random(given.kills)  # noqa: S311 - moments, no secrets
    yield "| SIGKILL while 4 agents poll | times | the capture opens | exchanges lost that were delivered 1 s before |"
    yield "|---|---|---|---|"
    for name, own in PROXIES.items():
        tallies = [_alone(killed, own, after=chance.uniform(0.2, 3.0)) for _ in range(given.kills // 2)]
        opens, lost = sum(tally.same for tally in tallies), sum(tally.lost for tally in tallies)
        yield f"| {name} | {len(tallies)} | {opens} | {lost} |"


# -- load -------------------------------------------------------------------------------------------------


def load(given: argparse.Namespace) -> Iterator[str]:
    """Agents against a fast master, without a proxy, with each proxy and with workers."""
    whole, short = given.minutes * 60, given.minutes * 12
    with ExitStack() as stack:
        lab = stack.enter_context(Lab(autosign=True))
        places = [enrolled(lab, f"agent{number}.lab.example", None) for number in range(given.agents)]
        target = stack.enter_context(master(SslDirPaths(lab.directory / "master", lab.master_name)))
        yield (
            f"| {given.agents} agents at once | minutes | runs | failed | requests/s "
            "| p50 | p90 | p99 | max | connect p50 | p99 | CPU of each serving process | of the others |"
        )
        yield "|---|---|---|---|---|---|---|---|---|---|---|---|---|"
        for pause, what in ((0.0, "without a pause"), (given.pause, f"a run every {given.pause:g} s")):
            for name, own, workers, seconds in (
                ("no proxy", None, 0, short),
                (ADDON, False, 0, short),
                (OWN, True, 1, whole if not pause else short),
                ("the same with 2 workers", True, 2, short),
            ):
                with _road(lab, target, own, workers) as road:
                    if road:
                        _settled(road.pid)  # a process that it has just made still looks like itself
                    address = road.address if road else target
                    callers = [
                        Caller(address, lab.proxy_name, place, f"127.0.{number // 250 + 1}.{number % 250 + 1}")
                        for number, place in enumerate(places)
                    ]
                    before, began = road.cpu() if road else None, time.monotonic()
                    total = besieged(callers, seconds, pause)
                    took = time.monotonic() - began
                    used = road.cpu() - before if road and before else None
                yield _row(f"{name}, {what}", total, took, used.serving if used else (), used.others if used else None)


@contextmanager
def _road(lab: Lab, target: tuple[str, int], own: bool | None, workers: int) -> Iterator[Road | None]:
    if own is None:
        yield None
        return
    with ours(lab, target, "", *(("--workers", str(workers)) if own else ()), own=own) as road:
        yield road


def _row(name: str, total: Load, took: float, serving: tuple[float, ...], others: float | None) -> str:
    cells = [
        name,
        f"{took / 60:.1f}",
        f"{total.runs:,}",
        f"{total.failed}" if not total.failed else f"**{total.failed}**",
    ]
    cells.append(f"{len(total.requests) / took:,.0f}")
    cells += [milliseconds(total.requests, percent) for percent in (50, 90, 99, 100)]
    cells += [milliseconds(total.connects, percent) for percent in (50, 99)]
    cells.append(", ".join(f"{seconds / took:.0%}" for seconds in serving))
    cells.append("" if others is None else f"{others / took:.0%}")
    for why in sorted(total.why)[:5]:
        print(f"failed: {why}", file=sys.stderr)
    return f"| {' | '.join(cells)} |"


def troubled(given: argparse.Namespace) -> Iterator[str]:
    """Agents that break off and read slowly, and a master that restarts."""
    yield (
        "| agents at once | minutes | restarts of the master | runs | failed | requests answered "
        "| asked more than once | reset by the agent | without a record |"
    )
    yield "|---|---|---|---|---|---|---|---|---|"
    for name, own in PROXIES.items():
        minutes = given.minutes if own else given.minutes / 5
        result = turmoil.play(given.agents, minutes * 60, own=own)
        failed, lost = (f"{bad}" if not bad else f"**{bad}**" for bad in (result.failed, result.lost + result.missed))
        yield (
            f"| {given.agents}, {name} | {minutes:g} | {result.restarts} | {result.runs:,} | {failed} "
            f"| {result.answered:,} | {result.again:,} | {result.broken:,} | {lost} |"
        )


# -- floods -----------------------------------------------------------------------------------------------


def flooded(given: argparse.Namespace) -> Iterator[str]:
    """Floods beside good agents, with each proxy."""
    yield (
        "| good agents beside | runs | failed | request p50 | p99 | max | connect p50 | p99 | max "
        "| p99 while the flood goes elsewhere | times that | aim | memory at most | after 10 s | aim |"
    )
    yield "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"
    for name, own in PROXIES.items():
        yield from floods.table(name, own=own)


# -- memory -----------------------------------------------------------------------------------------------


def memory(given: argparse.Namespace) -> Iterator[str]:
    """One connection with very many exchanges, and a day of many agents, its clock as fast as they are played."""
    yield "| | exchanges | proxy at first | at most | at the end | growth | aim | its other process | growth | aim |"
    yield "|---|---|---|---|---|---|---|---|---|---|"
    series = ((f"{given.exchanges:,} exchanges of one connection", one_connection), ("24 h of 50 agents", polled))
    for what, play in series:
        for name, own in PROXIES.items():
            yield _growth(f"{what}, {name}", *play(given, own))


def one_connection(given: argparse.Namespace, own: bool) -> tuple[int, list[tuple[float, float]]]:
    """Exchanges, and the memory of the proxy and of its other process, after a tenth of them and on."""
    with ExitStack() as stack:
        lab = stack.enter_context(Lab(autosign=True))
        place = enrolled(lab, "agent.lab.example", None)
        target = stack.enter_context(master(SslDirPaths(lab.directory / "master", lab.master_name)))
        road = stack.enter_context(ours(lab, target, "", own=own))
        line = stack.enter_context(Caller(road.address, lab.proxy_name, place).connect())
        found = []
        for _ in range(POINTS):
            for _ in range(given.exchanges // POINTS):
                line.ask()
            found.append(_settled(road.pid))
        return given.exchanges, found


def polled(given: argparse.Namespace, own: bool) -> tuple[int, list[tuple[float, float]]]:
    """The same over a day in which every agent runs each half hour."""
    turns = given.polls // POLLING
    # A turn of all of them is half an hour of the proxy's clock, if they need some 2.5 s for it.
    speed = DAY / 48 / 2.5
    with tempfile.TemporaryDirectory() as folder, Scene(Path(folder), own=own, speed=speed) as scene:
        agents = [
            scene.lab.agent(f"node{number}.lab.example", scene.proxy.address, enrolled=True)
            for number in range(POLLING)
        ]
        found = []
        for turn in range(turns):
            threads = [threading.Thread(target=_run, args=(agents[number::4],)) for number in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            if turn % max(turns // POINTS, 1) == 0:
                found.append(_settled(scene.proxy.process.pid))
        return scene.records()[-1].seq, found


def idle(given: argparse.Namespace) -> Iterator[str]:
    """Connections that have each had a request, and wait for the next."""
    yield "| | connections | proxy without them | with them | more | aim |"
    yield "|---|---|---|---|---|---|"
    for name, own in PROXIES.items():
        with ExitStack() as stack:
            lab = stack.enter_context(Lab(autosign=True))
            place = enrolled(lab, "agent.lab.example", None)
            target = stack.enter_context(master(SslDirPaths(lab.directory / "master", lab.master_name)))
            road = stack.enter_context(ours(lab, target, "", own=own))
            caller = Caller(road.address, lab.proxy_name, place)
            stack.enter_context(caller.connect()).ask()
            before, _ = _settled(road.pid)
            for _ in range(given.idle):
                stack.enter_context(caller.connect()).ask()
            after, _ = _settled(road.pid)
        aim = aims.at_most(round(after - before), IDLE, " MB")
        yield f"| {name} | {given.idle} | {before:.0f} MB | {after:.0f} MB | +{after - before:.0f} MB | {aim} |"


def _run(agents: list[LabAgent]) -> None:
    for agent in agents:
        agent.run()


def _settled(pid: int) -> tuple[float, float]:
    """Memory of a proxy and its other process, once all is recorded and told."""
    below = _below(pid)
    used = -1.0
    while used != (used := sum(_ticks(process) for process in (pid, *below))):
        time.sleep(0.5)
    return resident(pid), sum(map(resident, below))


def _ticks(pid: int) -> float:
    # The proxy's threads look for work a few times a second, which costs next to nothing.
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) // 10


def _growth(name: str, exchanges: int, found: list[tuple[float, float]]) -> str:
    cells = [name, f"{exchanges:,}"]
    for column in zip(*found, strict=True):
        most = max(column)
        if len(cells) == 2:
            cells += [f"{column[0]:.0f} MB", f"{most:.0f} MB"]
        grown = column[-1] - column[0]
        cells += [f"{column[-1]:.0f} MB", f"{grown:+.1f} MB", aims.at_most(round(grown, 1), GROWTH, " MB")]
    return f"| {' | '.join(cells)} |"


# -- what else is promised --------------------------------------------------------------------------------


def rules(_: argparse.Namespace) -> Iterator[str]:
    """Each rule raises whenever it is asked, and every sample is told."""
    tried = [(rule, path) for rule in all_rules() for path in SAMPLES]
    as_ever = sum(costs_only_itself(rule, records_of(path)) for rule, path in tried)
    yield "| exception in each of | with each of | tried | told as without that rule |"
    yield "|---|---|---|---|"
    yield f"| {len(all_rules())} rules | {len(SAMPLES)} captures of real runs | {len(tried)} | {as_ever} |"


def promises(_: argparse.Namespace) -> Iterator[str]:
    """The tests that docs/security.md names."""
    named = list(dict.fromkeys(re.findall(r"`(tests/[\w/]+\.py::\w+)`", SECURITY.read_text())))
    with tempfile.TemporaryDirectory() as folder:
        result = Path(folder) / "result.xml"
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={result}", *named]
        subprocess.run(command, cwd=DOCS.parent, stdout=sys.stderr, check=False)
        (suite,) = ElementTree.parse(result).getroot()  # noqa: S314 - we have just written it
    tests, skipped = int(suite.attrib["tests"]), int(suite.attrib["skipped"])
    failed = int(suite.attrib["failures"]) + int(suite.attrib["errors"])
    yield "| tests that prove the promises | attacks and cases played | held | failed | not played |"
    yield "|---|---|---|---|---|"
    yield f"| {len(named)} | {tests} | {tests - failed - skipped} | {failed} | {skipped} |"


def planted(given: argparse.Namespace) -> Iterator[str]:
    """Secrets of other values every day, in captures that are shared and exported."""
    day = datetime.now(tz=UTC).date().toordinal()
    kinds = " x ".join(str(len(what)) for what in (secrets.KINDS, secrets.PLACES, secrets.ENCODINGS))
    number = sum(1 for _ in secrets.planted(day, given.planted))
    yield "| what leaves | kinds x places x encodings | secrets planted | found |"
    yield "|---|---|---|---|"
    for what, pseudonyms in (("`share`", True), ("`export`", False)):
        leaking = secrets.leaks(day, given.planted, pseudonyms=pseudonyms)
        for leak in leaking:
            print(*leak, sep=", ", file=sys.stderr)
        yield f"| {what} | {kinds} | {number} | {len(leaking)} |"


# -- all --------------------------------------------------------------------------------------------------

SECTIONS: dict[str, Callable[[argparse.Namespace], Iterator[str]]] = {
    "faults": faults,
    "rules": rules,
    "files": strangers.files,
    "databases": strangers.databases,
    "promises": promises,
    "planted": planted,
    "messages": messages,
    "kills": kills,
    "load": load,
    "turmoil": troubled,
    "floods": flooded,
    "memory": memory,
    "idle": idle,
}


def conditions(busy: float) -> str:
    """Under which a table was made; ``busy``: the machine's load before."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    openssl = SSL.OpenSSL_version(SSL.OPENSSL_VERSION).decode().split(" ")[1]
    libraries = f"mitmproxy {version('mitmproxy')}, Python {platform.python_version()}, OpenSSL {openssl}"
    command = shlex.join(["python", "-m", "tests.bench.soak", *sys.argv[1:]])
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, `{command}`: puppet-inspector {__version__}, {libraries}, "
        f"SQLite {sqlite3.sqlite_version}, "
        f"{os.cpu_count()} cores and {memory:.0f} GB for proxy, master and agents together, load {busy:.1f} before."
    )


def write(name: str, lines: list[str]) -> None:
    """Put a section into its document."""
    document = SECURITY if name in ("promises", "planted") else RELIABILITY
    tables.put(document, f"soak:{{}} {name}", lines)


def main() -> None:
    """Measure, print, and write if that is asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench.soak", description=__doc__)
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=f"{', '.join(SECTIONS)}; default: all")
    parser.add_argument("--write", action="store_true", help="into docs/reliability.md and security.md")
    for option, default, what in (
        ("step", 1, "bytes from one reset to the next"),
        ("rounds", 5, "times that every other fault is played"),
        ("kills", 200, "SIGKILLs"),
        ("agents", 200, "agents at once"),
        ("minutes", 10.0, "of the longest load; the others take a fifth"),
        ("pause", 10.0, "seconds between an agent's runs, under half a load"),
        ("mutants", 10_000, "changed files of each kind"),
        ("messages", 3600.0, "seconds in which a real master is asked about messages"),
        ("exchanges", 100_000, "of one connection"),
        ("idle", 500, "idle connections"),
        ("planted", 1.0, "of the secrets that are planted, at most 1"),
        ("polls", 48 * POLLING, "runs of the agents that poll"),
    ):
        parser.add_argument(
            f"--{option}", type=type(default), default=default, metavar="N", help=f"{what} ({default:g})"
        )
    given = parser.parse_args()
    # What was started must end with us.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    if unknown := set(given.sections) - set(SECTIONS):
        parser.error(f"no such section: {', '.join(sorted(unknown))}")
    for name, section in SECTIONS.items():
        if given.sections and name not in given.sections:
            continue
        lines, busy = [], os.getloadavg()[0]
        for line in section(given):
            print(line, flush=True)
            lines.append(line)
        lines += ["", conditions(busy)]
        print(*lines[-2:], "", sep="\n", flush=True)
        if given.write:
            write(name, lines)


if __name__ == "__main__":
    main()

"""Play faults and write their table: ``python -m tests.real.faults [WORDS...] [--write]`` (or: make faults).

``--write`` puts the table into docs/diagnosis.md with the conditions under which it was made; else it is only printed.
"""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from inspector import __version__
from inspector.rules import all_rules
from tests.real import releases
from tests.real.faults.engine import play
from tests.real.faults.every import ALL, EXAMPLES
from tests.real.machine import host_names
from tests.real.puppet import RealMaster
from tests.real.through import PROXY_HOST, PROXY_NAME
from tests.support import places, tables

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.real.faults.engine import Fault, Tally
    from tests.real.releases import System

type Played = tuple[Fault, Tally]

PAIRS = {"9": ("trixie", "sid")}
"""The major version of an agent -> the releases of Debian whose master and whose agent are played with."""


def table(played: Sequence[Played], *, only_bad: bool = False) -> Iterator[str]:
    """What came of each play; ``only_bad``: the rows of those alone that are not good."""
    right = sum(tally.right for _, tally in played)
    works = sum(tally.works for _, tally in played)
    alarms = sum(len(tally.alarms) for _, tally in played)
    harm = sum(len(tally.harm) for _, tally in played)
    kinds = len({fault.kind for fault, _ in played})
    yield (
        f"**{len(played)} faults of {kinds} kinds: the cause is right in {right}, the fix works in {works}, "
        f"{alarms} false alarms, {harm} commands deleted a key or a certificate without saying so.**"
    )
    if only_bad:
        played = [(fault, tally) for fault, tally in played if not tally.good]
        if not played:
            return
    yield ""
    yield "| kind | fault | looked at | cause | cause right | fix works | false alarms |"
    yield "|---|---|---|---|---|---|---|"
    for fault, tally in played:
        looked = "the error message" if "explain" in fault.looks else ", ".join(("capture", *fault.looks))
        cause = _titled(tally.named) if tally.right else f"{_titled(tally.named)}, not {_titled(fault.cause)}"
        healed = ("by hand, as it says" if tally.by_hand else "yes") if tally.works else "**no**"
        cells = [fault.kind, fault.name, looked, cause, "yes" if tally.right else "**no**", healed]
        cells.append(f"**{', '.join(tally.alarms)}**" if tally.alarms else "none")
        yield f"| {' | '.join(cells)} |"


def _titled(name: str) -> str:
    """A rule's id with its title; another name as it is."""
    return next((f"{rule.id} {rule.title}" for rule in all_rules() if rule.id == name), name)


def conditions(agent: str, master: str) -> str:
    """Under which the table was made, with both versions."""
    words = [word for word in sys.argv[1:] if word != "--logs" and not word.startswith("/")]  # no path of this machine
    command = shlex.join(["python", "-m", "tests.real.faults", *words])
    return (
        f"{datetime.now(UTC):%Y-%m-%d}, `{command}`: puppet-inspector {__version__}, agent {agent}, "
        f"puppetserver {master}."
    )


def _version(program: str, system: System | None) -> str:
    """The version of what is installed here, or in another Debian."""
    if system:
        return system.done(f"{program} --version").split()[-1]
    return subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout.split()[-1]


def _not_offered(fault: Fault, version: str, system: System | None) -> str:
    """Why an agent of this version, and of this Debian, cannot fail in this way; empty: it can."""
    if fault.since > int(version.partition(".")[0]):
        return f"it is a fault from version {fault.since} on"
    if fault.agent_needs and system and not (system.root / "usr/bin" / fault.agent_needs).exists():
        return f"the agent there lacks {fault.agent_needs}"
    return ""


@contextmanager
def _running(system: System | None) -> Iterator[RealMaster]:
    """A master that runs, of this machine or of another Debian."""
    name, host = ("master8.example", "127.0.8.1") if system else ("master.example", "127.0.7.1")
    with RealMaster(name, host=host, idle_timeout=2, system=system) as master:
        master.generate(PROXY_NAME)
        yield master


def main() -> int:
    """Play, print, and write if that is asked for; 1 if a cause or a fix is not right."""
    parser = argparse.ArgumentParser(prog="python -m tests.real.faults", description=__doc__)
    parser.add_argument("words", nargs="*", metavar="WORDS", help="only faults whose kind or name contains one of them")
    parser.add_argument("--examples", action="store_true", help="only one of each kind")
    parser.add_argument("--write", action="store_true", help="into docs/diagnosis.md")
    parser.add_argument("--way", choices=("proxy", "mitmdump", "run"), default="proxy", help="how the agent gets there")
    parser.add_argument("--logs", type=Path, metavar="DIR", help="write what happened in each play into this directory")
    parser.add_argument(
        "--release", choices=PAIRS, help="play with Puppet Server 8.7 and this major version of the agent, not with"
        " this machine's; they are installed in directories with debootstrap"
    )  # fmt: skip
    given = parser.parse_args()
    those = EXAMPLES if given.examples else ALL
    chosen = [f for f in those if not given.words or any(word in f"{f.kind}: {f.name}" for word in given.words)]
    if absent := sorted({fault.needs for fault in chosen if fault.needs and not shutil.which(fault.needs)}):
        parser.error(f"not installed: {', '.join(absent)} (apt-get install faketime nginx-light)")
    try:
        masters, agents = map(releases.stored, PAIRS[given.release]) if given.release else (None, None)
    except RuntimeError as error:
        parser.error(f"{error}")
    version = _version("puppet", agents)
    left_out = {fault: reason for fault in chosen if (reason := _not_offered(fault, version, agents))}
    played: list[Played] = []
    with host_names({PROXY_NAME: PROXY_HOST}), _running(masters) as master:
        for fault in chosen:
            if fault in left_out:
                continue
            with tempfile.TemporaryDirectory() as folder:
                tally = play(fault, master, Path(folder), way=given.way, system=agents)
            played.append((fault, tally))
            print(f"{'good' if tally.good else 'BAD '} {tally.seconds:3.0f} s {fault.name}: {tally.named[:60]}"
                  f"{'' if tally.right else ' WRONG CAUSE'}{'' if tally.works else ' NOT HEALED'} "
                  f"{tally.alarms or ''}{tally.harm or ''}",
                  file=sys.stderr, flush=True)  # fmt: skip
            if given.logs:
                given.logs.mkdir(exist_ok=True)
                (given.logs / f"{re.sub(r'[^a-z0-9]+', '-', fault.name.lower())}.log").write_text("\n".join(tally.log))
    whole = given.way == "proxy" and not given.release
    lines = [conditions(version, _version("puppetserver", masters)), "", *table(played, only_bad=not whole)]
    lines += [f"\nNot played: {fault.name}; {reason}." for fault, reason in left_out.items()]
    print("\n".join(lines))
    if given.write:
        place = "table" if whole else " ".join(filter(None, (given.release, given.way)))
        tables.put(places.DOCS / "diagnosis.md", f"faults:{{}} {place}", lines)
    return int(not all(tally.good for _, tally in played))


if __name__ == "__main__":
    sys.exit(main())

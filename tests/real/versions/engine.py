"""Play a scenario with an agent and a master of certain versions, on one of the roads between them.

A scenario is a few commands of a node, and what they do is compared with what is expected of these versions: their exit
status, what the versions print, and what the inspector makes of the recorded traffic.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal, NamedTuple, Self

from inspector.errors import CaptureError
from inspector.host import pki
from tests.real.agent import RealAgent
from tests.real.as_http_proxy import Node, run_command
from tests.real.through import Stage
from tests.support.briefs import documents
from tests.support.coverage_table import TOOL, recorded
from tests.support.proxies import analyzed, records

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import timedelta

    from tests.real.puppet import RealMaster
    from tests.real.releases import System
    from tests.support.coverage_table import Row

type Way = Literal["run", "proxy", "mitmdump"]
WAYS: tuple[Way, ...] = ("run", "proxy", "mitmdump")
_INTERNAL = "internal error"
_PATIENCE = 600
"""Seconds that a command may take."""


class Pair(NamedTuple):
    """Versions of an agent and of a master."""

    agent: str
    master: str

    def __str__(self) -> str:
        return f"{self.agent}/{self.master}"

    @property
    def agents(self) -> int:
        """The agent's major version."""
        return int(self.agent[0])

    @property
    def masters(self) -> int:
        """The master's major version."""
        return int(self.master[0])


@dataclass(frozen=True, slots=True)
class Expected:
    """What is to come of a scenario."""

    status: tuple[int, ...]
    """How each command ends."""
    runs: tuple[str, ...] = ()
    """Of each run in the capture what ``described`` says of it."""
    words: tuple[str, ...] = ()
    """Regular expressions of what the commands print."""
    asked: tuple[str, ...] = ()
    """Endpoints of which bodies must have been read."""
    offered: bool = True
    """Whether these versions have it at all; how they do without it is expected all the same."""

    def __str__(self) -> str:
        parts = [] if self.offered else ["not offered by this version"]
        parts.append(f"exit status {', '.join(map(str, self.status))}")
        parts += self.runs or ["nothing recorded"]
        parts += [f"“{re.sub(r'\\S\+|\.\*', '…', word).replace('\\', '')}”" for word in self.words]
        return "; ".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    """Something that nodes do."""

    name: str
    play: Callable[[Scene], None]
    expected: Callable[[Pair, Way], Expected]
    autosigned: bool = False
    """Whether the master signs its node's request at once."""
    upgrade: bool = False
    """Whether an upgrade meets it: then it is played with all pairs."""
    alone: bool = False
    """Whether it keeps the master from others, so that none may be played meanwhile."""
    spoils_crl: bool = False
    """Whether it spoils the CA's CRL; then the proxy has a sound copy."""

    @property
    def slug(self) -> str:
        """A part of its node's name, by which the master knows what to do."""
        words = re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")
        return f"auto-{words}" if self.autosigned else words


@dataclass(slots=True)
class Came:
    """What came of a scenario."""

    status: list[int] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)
    output: str = ""
    trouble: list[str] = field(default_factory=list)
    """Internal errors, and bodies that were not decoded."""
    decoded: dict[str, set[Row]] = field(default_factory=dict)
    """By the agent's version, the bodies that were."""
    seconds: float = 0

    def differences(self, expected: Expected) -> list[str]:
        """What is not as it is expected."""
        found = list(self.trouble)
        if tuple(self.status) != expected.status:
            found.append(f"exit status {', '.join(map(str, self.status))}")
        if tuple(self.runs) != expected.runs:
            found.append(f"runs: {' | '.join(self.runs) or 'none'}")
        found += [f"not printed: {word}" for word in expected.words if not re.search(word, self.output)]
        endpoints = {row.endpoint for rows in self.decoded.values() for row in rows}
        return found + [f"nothing read of {name}" for name in expected.asked if name not in endpoints]


class Scene:
    """A node of one version, a master of another, and the road between them."""

    def __init__(self, scenario: Scenario, way: Way, master: RealMaster, node: Node, program: str) -> None:
        self.scenario, self.way, self.master, self.node, self._program = scenario, way, master, node, program
        self.stage = Stage(master, node.base, own=way == "proxy")
        self.came = Came()
        self.server, self.port = master.name, master.port
        self._ended = ExitStack()

    def __enter__(self) -> Self:
        if self.way != "run":
            crl = self.master.cadir / "ca_crl.pem"
            if self.scenario.spoils_crl:
                crl = Path(shutil.copyfile(crl, self.node.base / "sound_crl.pem"))
            road = self._ended.enter_context(self.stage.proxy(f"keys:{self.node.ssldir}", puppet_crl=crl))
            self.server, self.port = road.server, road.port
        self.configure()
        return self

    def __exit__(self, *_: object) -> None:
        self._ended.close()
        self.stage.close()

    def configure(self, **settings: object) -> None:
        """Write the node's puppet.conf."""
        self.node.configure(**{"server": self.server, "serverport": self.port, **settings})

    def enrol(self, lifetime: timedelta = pki.LEAF_LIFETIME, *, signed: bool = False) -> None:
        """Give the node a certificate (``Node.enrol``), and its key the mode that Puppet gives it."""
        self.node.enrol(lifetime, signed=signed)
        self.node.key.chmod(0o640)

    def puppet(self, *words: str) -> str:
        """Let the node execute `puppet` with these words; return what it prints."""
        return self.end(self.begin(*words))

    def agent(self, *words: str) -> str:
        """Let the node make a run."""
        return self.puppet("agent", "-t", "--color=false", "--waitforcert", "0", *words)

    def begin(self, *words: str) -> subprocess.Popen[str]:
        """Begin what is ended with ``end``."""
        command = [self._program, *words]
        whole = run_command(self.node, command) if self.way == "run" else self.node.words(command)
        process = self.node.popen(whole)
        self._ended.callback(_end, process)
        return process

    def end(self, process: subprocess.Popen[str]) -> str:
        """Wait for a command; return what it has printed."""
        try:
            out, err = process.communicate(timeout=_PATIENCE)
        except subprocess.TimeoutExpired:
            _end(process)
            raise
        self.came.status.append(process.returncode)
        self.came.output += out + err
        return out + err

    def wait_for(self, condition: Callable[[], bool], seconds: float = _PATIENCE) -> None:
        """Wait until something is true."""
        deadline = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < deadline, "it took too long"
            time.sleep(0.05)


def _end(process: subprocess.Popen[str]) -> None:
    """End a command, if it runs."""
    process.terminate()
    try:
        process.communicate(timeout=30)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()


def described(run: dict[str, object]) -> str:
    """A run as ``runs --json`` has it, in a line."""
    phases = " ".join(phase["phase"] for phase in run["phases"])  # type: ignore[attr-defined]
    verdict: dict[str, object] = run["verdict"] or {}  # type: ignore[assignment]
    rules = {f"{each['rule']} {each['severity']}" for each in run["findings"] if each["severity"] != "notice"}  # type: ignore[attr-defined]
    whose = f"{run['tool']} " if run["tool"] else ""
    words = [f"{whose}{run['outcome']}" + (f" ({phases})" if phases else "")]
    words += [f"cause {cause}"] if (cause := verdict.get("cause")) else []
    return ", ".join([*words, *sorted(rules)])


def play(
    scenario: Scenario, pair: Pair, way: Way, master: RealMaster, directory: Path, program: str, system: System | None
) -> tuple[Came, Path]:
    """Play a scenario in a new directory; return what came of it, and its capture.

    ``program`` is the agent's `puppet`, which lives in ``system``.
    """
    began = time.monotonic()
    name = f"{scenario.slug}-{re.sub('[^0-9a-z]', '', pair.agent)}-{way}.example"
    agent = RealAgent(directory / name, name, system=system, target=f"{directory / name}/managed")
    node = Node(master, directory, name, agent)
    scene = Scene(scenario, way, master, node, program)
    came = scene.came
    try:
        with scene:
            scenario.play(scene)
    except (AssertionError, subprocess.TimeoutExpired, RuntimeError, OSError) as error:
        came.trouble.append(f"stopped: {error!r}")
    came.output += "\n".join(["", *scene.stage.lines])
    if _INTERNAL in came.output:
        came.trouble.append("an internal error")
    _look(came, scene.stage.capture)
    came.seconds = time.monotonic() - began
    return came, scene.stage.capture


def _look(came: Came, capture: Path) -> None:
    """What the inspector makes of the recorded traffic."""
    if not capture.exists():
        return
    try:
        found = records(capture)
        came.runs = [described(run) for run in documents(analyzed(capture).runs)]
    except (CaptureError, AssertionError) as error:
        came.trouble.append(f"not analysed: {error!r}")
        return
    for version, rows in recorded([found]).items():
        if version != TOOL:
            came.decoded[version] = {row for row, real in rows.items() if real.decoded}
        came.trouble += [f"not decoded: {' '.join(row)}" for row, real in rows.items() if real.undecodable]

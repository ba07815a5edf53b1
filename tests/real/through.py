"""A scenario played twice, straight to the real master and through the real proxy, and what the capture tells.

A play gets an agent and the road it has to take, and returns the run that counts. Both times the agent is a
new one; that both runs end with the same exit status is checked here, for every scenario.
"""

from __future__ import annotations

import shutil
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from inspector.host import pki
from inspector.proxy.launcher import Proxy
from tests.real.agent import RealAgent
from tests.real.machine import host_names
from tests.support.briefs import documents
from tests.support.proxies import analyzed

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.real.agent import CompletedRun, RunningAgent
    from tests.real.puppet import RealMaster
    from tests.real.releases import System

    type Play = Callable[[RealAgent, "Road"], CompletedRun]

PROXY_NAME, PROXY_HOST = "proxy.example", "127.0.0.1"


@dataclass(frozen=True, slots=True)
class Road:
    """Where an agent goes."""

    master: RealMaster
    server: str
    port: int

    def run(self, agent: RealAgent, *extra: str, waitforcert: int = 0, timeout: float = 600) -> CompletedRun:
        """One whole run."""
        return agent.run(server=self.server, port=self.port, waitforcert=waitforcert, extra=extra, timeout=timeout)

    def start(self, agent: RealAgent, *, waitforcert: int = 0) -> RunningAgent:
        """A run in the background."""
        return agent.popen(server=self.server, port=self.port, waitforcert=waitforcert)


def a_run(agent: RealAgent, road: Road) -> CompletedRun:
    """The play of one run."""
    return road.run(agent)


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run as ``puppet-inspector runs --json`` tells it, as far as it is the same every time."""

    certname: str | None
    outcome: str
    phases: str
    """In the order first seen."""
    findings: str = ""
    """Rule and severity of each that is more than worth knowing, in order."""


def run_summaries(capture: Path) -> list[RunSummary]:
    """The runs of a capture."""
    return [
        RunSummary(
            run["certname"],
            run["outcome"],
            " ".join(phase["phase"] for phase in run["phases"]),
            ", ".join(sorted(f"{e['rule']} {e['severity']}" for e in run["findings"] if e["severity"] != "notice")),
        )
        for run in documents(analyzed(capture).runs)
    ]


class Stage:
    """Where plays are made: a master, a directory, and new agents and proxies as they are needed."""

    def __init__(self, master: RealMaster, directory: Path, *, own: bool = False) -> None:
        """``directory`` is new or empty. The master has a certificate for ``PROXY_NAME`` in its ssldir. ``own``: the
        proxies are `puppet-inspector proxy`, not mitmdump."""
        self.master, self.directory, self.own = master, directory, own
        self.direct = Road(master, master.name, master.port)
        self.capture = directory / "capture.sqlite"
        self.lines: list[str] = []
        """What the proxy printed."""
        self._names = ExitStack()

    def close(self) -> None:
        """Take the agents' names away again."""
        self._names.close()

    def agent(self, certname: str, *, keylength: int = 2048, system: System | None = None) -> RealAgent:
        """A new agent (of another release: ``system``), which resolves to ``PROXY_HOST`` and is given the demo
        module."""
        self._names.enter_context(host_names({certname: PROXY_HOST}))
        agent = RealAgent(self.directory / certname, certname, keylength=keylength, system=system)
        self.master.demo(certname, agent.target, notice=False)
        return agent

    def enrolled(self, certname: str, *, system: System | None = None) -> RealAgent:
        """A new agent that has its certificate already, and so begins with a verified connection."""
        agent, given = self.agent(certname, system=system), self.master.ssldir
        if not (given / f"certs/{certname}.pem").exists():
            self.master.generate(certname)
        for path in ("certs/ca.pem", f"certs/{certname}.pem", f"private_keys/{certname}.pem"):
            (agent.ssldir / path).parent.mkdir(exist_ok=True)
            shutil.copyfile(given / path, agent.ssldir / path)
        shutil.copyfile(self.master.cadir / "ca_crl.pem", agent.ssldir / "crl.pem")
        return agent

    @contextmanager
    def proxy(
        self,
        identity: str,
        *,
        server: str = PROXY_NAME,
        own: bool = False,
        **options: str | Path | tuple[str, ...] | tuple[str, ...],
    ) -> Iterator[Road]:
        """The proxy, running; without ``puppet_ssldir`` among the options it is a host of its own. ``own``:
        `puppet-inspector proxy`, not mitmdump."""
        master = self.master
        if "puppet_ssldir" not in options:
            pem = self.directory / "proxy.pem"
            parts = [master.ssldir / kind / f"{PROXY_NAME}.pem" for kind in ("private_keys", "certs")]
            pki.write_private(pem, b"".join(part.read_bytes() for part in parts))
            options["puppet_cert"] = pem
            options["puppet_ca"] = master.ssldir / "certs/ca.pem"
            options.setdefault("puppet_crl", master.cadir / "ca_crl.pem")
        options |= {"puppet_identity": identity, "puppet_capture": self.capture}
        options.setdefault("puppet_listen", PROXY_HOST)
        options.setdefault("puppet_master", f"{master.name}:{master.port}")
        proxy = Proxy(
            {name: value for name, value in options.items() if value}, on_line=self.lines.append, own=own or self.own
        )
        with proxy:
            yield Road(master, server, proxy.address[1])
        assert proxy.status == 0, self.lines
        assert not [line for line in self.lines if "-- internal error" in line]

    def compare(
        self,
        play: Play,
        straight: RealAgent,
        through: RealAgent,
        *,
        status: int,
        identity: str = "",
        own: bool = False,
    ) -> list[RunSummary]:
        """Play on both roads, each with an agent (which may be the same); returns what the capture tells.

        ``status`` is what Puppet documents for it, and what both runs must end with. ``identity`` is the
        agent's own keys if it is not given.
        """
        measured = play(straight, self.direct)
        assert measured.status == status, measured.output
        with self.proxy(identity or f"keys:{through.ssldir}", own=own) as road:
            inspected = play(through, road)
        assert inspected.status == measured.status, inspected.output + "\n".join(self.lines)
        return run_summaries(self.capture)

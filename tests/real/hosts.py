"""Shells on the hosts of a play, in which what a fix says is executed as it is written."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.real.agent import RealAgent
    from tests.real.puppet import RealMaster
    from tests.real.releases import System
    from tests.real.through import Road

type Host = Literal["node", "ca", "master", "proxy"]

DONE, NOTHING_TO_REVOKE = 0, 24
"""How ``puppetserver ca`` ends well: 24 if ``clean`` found a request, but no certificate."""
NOT_FOUND = 127
"""How a shell ends that does not know the command."""
_SERVICE = re.compile(r"systemctl (start|stop|restart|reload) puppetserver")


class Hosts:
    """A shell on the node and one on the CA, which is the master: their commands know where these live."""

    def __init__(self, agent: RealAgent, road: Road) -> None:
        """Writes the node's puppet.conf. A file ``clock`` in the agent's directory is its clock, as FAKETIME has it."""
        self.agent, self.road = agent, road
        agent.configure(server=road.server, port=road.port)
        facts = f"RUBYLIB={agent.base}/ruby INVENTED_FACTS={agent.base}/facts.json"
        (programs := agent.base / "programs").mkdir(exist_ok=True)
        puppet, confdir = _program("puppet", agent.system, programs / "agent"), road.master.confdir
        clock = f"{agent.base}/clock"
        # By itself an agent asks again only after two minutes, whoever signs meanwhile.
        self._command("node", "puppet", f'[ "$1" = agent ] && set -- "$@" --waitforcert 0\n'
                      f'[ -f {clock} ] && set -- faketime "$(cat {clock})" {puppet} "$@" || set -- {puppet} "$@"\n'
                      f'{facts} exec "$@" --color=false --confdir {agent.confdir}')  # fmt: skip
        inspector = f'{sys.executable} -m inspector.cli "$@"'
        self._command("node", "puppet-inspector", f'[ -f {clock} ] && exec faketime "$(cat {clock})" {inspector}\n'
                      f'exec {inspector}')  # fmt: skip
        for host in ("ca", "proxy"):
            self._command(host, "puppet-inspector", f"exec {inspector}")
        for name, option in (("puppet", f"--confdir {confdir}"), ("puppetserver", f"--config {confdir}/puppet.conf")):
            program = _program(name, road.master.system, programs / "master")
            self._command("ca", name, f'exec {program} "$@" {option}')

    def _command(self, host: str, name: str, script: str) -> None:
        path = self.agent.base / host / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)

    def shell(self, host: str, command: str) -> subprocess.CompletedProcess[str]:
        """Run what somebody types on a host; a service of puppetserver is the real master."""
        service = _SERVICE.fullmatch(command)
        if service and host != "node":
            _services(self.road.master)[service[1]]()
            return subprocess.CompletedProcess(command, DONE, "")
        folder = self.agent.base / ("ca" if host == "master" else host)
        path = f"{folder}:/usr/sbin:/usr/bin:/sbin:/bin"
        return subprocess.run(
            ["bash", "-c", command], env=os.environ | {"PATH": path, "HOME": str(self.agent.base)},
            cwd=self.agent.base, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=600,
        )  # fmt: skip

    def execute(self, commands: list[str], *, at: Host | None = None) -> list[str]:
        """Each where it belongs (or ``at`` one host), in order; their outputs. On the CA everything succeeds."""
        outputs = []
        for command in commands:
            host = at or host_of(command)
            done = self.shell(host, command)
            assert host == "node" or done.returncode in (DONE, NOTHING_TO_REVOKE), f"{command}\n{done.stdout}"
            assert done.returncode != NOT_FOUND, f"{command}\n{done.stdout}"
            outputs.append(done.stdout)
        return outputs

    def fails(self) -> None:
        """The agent's next run does, in spite of what was executed so far."""
        done = self.shell("node", "puppet agent -t")
        assert done.returncode == 1, done.stdout

    def succeeds(self) -> None:
        """The agent's next run does."""
        done = self.shell("node", "puppet agent -t")
        assert done.returncode in (0, 2), done.stdout


def _program(name: str, system: System | None, directory: Path) -> Path | str | None:
    """A program of this machine, or of another release of Debian, for which a script is written to the directory."""
    if system is None:
        return shutil.which(name)
    directory.mkdir(exist_ok=True)
    return system.program(name, directory)


def host_of(command: str) -> Host:
    """Where a command belongs."""
    ours = command.startswith(("puppetserver ", "systemctl ")) or "--section master" in command
    return "ca" if ours else "node"


def _services(master: RealMaster) -> dict[str, Callable[[], None]]:
    def restart() -> None:
        master.stop()
        master.start()

    return {"start": master.ensure_running, "stop": master.stop, "restart": restart, "reload": master.reload}

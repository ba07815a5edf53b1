"""A real puppet agent in a directory of its own, with invented facts."""

from __future__ import annotations

import functools
import json
import shlex
import shutil
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

from tests.real.machine import end, write_puppet_conf
from tests.real.releases import visible

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from tests.real.releases import System

# Where the agent takes its facts from (a "terminus", an extension point of Puppet). It sends only facts
# of our own and those that came by pluginsync: nothing of the machine can leak, whatever Facter knows.
# A fact that comes by pluginsync must have the name of its file.
FACTS_TERMINUS = """require 'json'
require 'puppet/indirector/facts/facter'

class Puppet::Node::Facts::Invented < Puppet::Node::Facts::Facter
  desc 'Invented facts from a file, and what pluginsync brought.'

  def find(request)
    facter = Puppet.respond_to?(:runtime) ? Puppet.runtime[:facter] : Facter # Puppet 5
    facter.reset
    self.class.setup_external_search_paths(request)
    self.class.setup_search_paths(request)
    values = JSON.parse(File.read(ENV.fetch('INVENTED_FACTS')))
    synced = Dir.glob(["#{Puppet[:plugindest]}/facter/*.rb", "#{Puppet[:pluginfactdest]}/*"])
    synced.map { |path| File.basename(path, '.*') }.each { |name| values[name] = facter.value(name) }
    facts = Puppet::Node::Facts.new(request.key, values.compact)
    facts.add_local_facts
    facts.sanitize
    facts
  end
end
"""


@functools.cache
def installed() -> tuple[int, ...]:
    """The version of this machine's agent: what a test expects may depend on it."""
    version = subprocess.run(["puppet", "--version"], capture_output=True, text=True, check=True, timeout=600).stdout
    return tuple(map(int, version.strip().split(".")[:3]))


@dataclass(frozen=True, slots=True)
class CompletedRun:
    """One agent run that has ended."""

    command: tuple[str, ...]
    status: int
    """0: nothing to do, 2: changes, 4: failures, 6: both, 1: no certificate or no catalog."""
    output: str
    seconds: float


class RunningAgent:
    """An agent in the background; as a context manager it is ended at the latest when the block is left."""

    def __init__(self, command: Sequence[str], environment: Mapping[str, str], log: Path) -> None:
        self.command, self.log, self._began = tuple(command), log, time.monotonic()
        with log.open("wb") as output:
            self.process = subprocess.Popen(command, env=environment, stdout=output, stderr=output)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        end(self.process)

    def wait(self, timeout: float = 600) -> CompletedRun:
        """Wait until it has ended. Raises subprocess.TimeoutExpired after `timeout` seconds."""
        status = self.process.wait(timeout)
        output = self.log.read_text(errors="replace")
        return CompletedRun(self.command, status, output, time.monotonic() - self._began)


class RealAgent:
    """One agent: its configuration, certificates, state and logs lie below `base`, nothing is shared."""

    def __init__(
        self,
        base: Path,
        certname: str,
        *,
        invented_facts: bool = True,
        keylength: int = 2048,
        system: System | None = None,
        **facts: object,
    ) -> None:
        """`invented_facts`: send `scrubbed_facts` and `facts`, else (and slower) the machine's own.

        `keylength`: bits of its RSA key; Puppet's own default is 4096. `system`: another release of Debian whose agent
        it is, instead of this machine's; `base` is seen there, too.
        """
        self.system = system
        self.base, self.certname, self.target = base, certname, base / "managed"
        self.confdir, self.vardir, self.ssldir = base / "conf", base / "var", base / "ssl"
        self._directories = {f"{name}dir": base / name for name in ("conf", "var", "ssl", "run", "log", "public")}
        self._main: dict[str, object] = {**self._directories, "certname": certname, "keylength": keylength}
        self.clock = ""
        """How its clock is wrong, as faketime has it: "+20d"."""
        self._environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "HOME": str(base)}
        self._environment["TMPDIR"] = str(scratch := base / "scratch")  # the name of a file there is in a diff
        terminus = base / "ruby/puppet/indirector/facts/invented.rb"
        for path in (*self._directories.values(), terminus.parent, scratch):
            path.mkdir(parents=True, exist_ok=True)
        if invented_facts:
            terminus.write_text(FACTS_TERMINUS)
            (base / "facts.json").write_text(json.dumps(scrubbed_facts(certname) | facts))
            self._main["facts_terminus"] = "invented"
            self._environment |= {"RUBYLIB": f"{base}/ruby", "INVENTED_FACTS": f"{base}/facts.json"}

    def configure(self, *, server: str, port: int) -> None:
        """Write puppet.conf, for tools that look there for certname, ssldir, server and port."""
        agent: dict[str, object] = {"server": server, "serverport": port}
        write_puppet_conf(self.confdir, {"main": self._main, "agent": agent})

    def command(self, *, server: str, port: int, waitforcert: int = 0, extra: Sequence[str] = ()) -> list[str]:
        """The command of one run; `waitforcert` in seconds between two tries, 0: try once."""
        directories = [word for name, path in self._directories.items() for word in (f"--{name}", str(path))]
        fixed = ["--certname", self.certname, "--server", server, "--serverport", str(port)]
        options = ["--test", "--color=false", "--waitforcert", str(waitforcert), *extra]
        clock = ["faketime", "-f", self.clock] if self.clock else []
        puppet = "puppet" if self.system else shutil.which("puppet") or "puppet"
        words = [*clock, puppet, "agent", *directories, *fixed, *options]
        return self.system.command(f"exec {shlex.join(words)}", *visible(self.base)) if self.system else words

    def popen(self, *, server: str, port: int, waitforcert: int = 0, extra: Sequence[str] = ()) -> RunningAgent:
        """Start one run in the background; puppet.conf holds what the command line says."""
        self.configure(server=server, port=port)
        command = self.command(server=server, port=port, waitforcert=waitforcert, extra=extra)
        return RunningAgent(command, self._environment, self.base / "output.log")

    def run(
        self, *, server: str, port: int, waitforcert: int = 0, extra: Sequence[str] = (), timeout: float = 600
    ) -> CompletedRun:
        """One whole run, at most `timeout` seconds."""
        with self.popen(server=server, port=port, waitforcert=waitforcert, extra=extra) as running:
            return running.wait(timeout)


def scrubbed_facts(certname: str) -> dict[str, object]:
    """Facts of a machine that does not exist: an address for documentation, no mounts, no PATH."""
    hostname, _, domain = certname.partition(".")
    release = {"full": "12.5", "major": "12", "minor": "5"}
    return {
        "os": {"name": "Debian", "family": "Debian", "architecture": "amd64", "release": release},
        "kernel": "Linux",
        "kernelrelease": "6.1.0-18-amd64",
        "networking": {"hostname": hostname, "domain": domain, "fqdn": certname, "ip": "192.0.2.10"},
        "processors": {"count": 2},
        "virtual": "kvm",
        "is_virtual": True,
        "timezone": "UTC",
        "system_uptime": {"seconds": 86400, "hours": 24, "days": 1, "uptime": "1 day"},
    }

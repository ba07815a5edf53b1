"""Real Puppet on loopback: Debian's puppetserver and puppet agent, each in a directory of its own.

For end-to-end tests, samples and benchmarks; knows neither pytest nor the inspector. Needs root: the
server runs as user puppet, and names stand in /etc/hosts for as long as they are needed. Nothing else
of the machine is touched.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

HOSTS = Path("/etc/hosts")
SERVER_JAR = Path("/usr/share/puppetserver/puppetserver.jar")
SERVER_CONFIG = Path("/etc/puppet/puppetserver")

# A session lasts minutes: Java's second compiler costs more than it gives (ready in 21 s, not 30).
JAVA = "java -Xms512m -Xmx1g -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Djruby.lib=/usr/share/jruby/lib"
AS_PUPPET = "setpriv --reuid=puppet --regid=puppet --clear-groups --pdeathsig=TERM"

AUTOSIGN = '#!/bin/sh\ncase "$1" in auto*) exit 0;; esac\nexit 1\n'

DEMO_MODULE: dict[str, bytes] = {
    "lib/facter/demo_role.rb": b"Facter.add(:demo_role) { setcode { 'web' } }\n",
    "facts.d/demo_rack.yaml": b"demo_rack: A7\n",
    "files/tree/app.conf": b"workers = 2\n",
    "files/tree/conf.d/log.conf": b"level = info\n",
    "files/single.txt": b"one file\n",
    "files/fallback.txt": b"the second candidate\n",
    "files/logo.bin": bytes(range(256)),
    "manifests/init.pp": b"""class demo(String $target, Boolean $notice) {
  filebucket { 'main': path => false }
  File { backup => 'main' }
  if $notice { notify { "role ${facts['demo_role']}, rack ${facts['demo_rack']}": } }
  file { $target: ensure => directory }
  file { "${target}/tree": ensure => directory, recurse => true, source => 'puppet:///modules/demo/tree' }
  file { "${target}/single.txt": source => 'puppet:///modules/demo/single.txt' }
  file { "${target}/either.txt":
    source => ["puppet:///modules/demo/${facts['clientcert']}.txt", 'puppet:///modules/demo/fallback.txt'],
  }
  file { "${target}/logo.bin": source => 'puppet:///modules/demo/logo.bin' }
  file { "${target}/content.txt": content => "managed for ${facts['clientcert']}\\n" }
}
""",
}
"""Path below the module -> content: every way in which a catalog makes an agent fetch something."""

# Where the agent takes its facts from (a "terminus", an extension point of Puppet). It sends only facts
# of our own and those that came by pluginsync: nothing of the machine can leak, whatever Facter knows.
# A fact that comes by pluginsync must have the name of its file.
FACTS_TERMINUS = """require 'json'
require 'puppet/indirector/facts/facter'

class Puppet::Node::Facts::Invented < Puppet::Node::Facts::Facter
  desc 'Invented facts from a file, and what pluginsync brought.'

  def find(request)
    facter = Puppet.runtime[:facter]
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


def missing() -> str | None:
    """Why real Puppet cannot be run here, or None when it can."""
    if os.geteuid() != 0:
        return "real Puppet needs root (the server's user, names in /etc/hosts)"
    if not os.access(HOSTS, os.W_OK):
        return f"{HOSTS} is not writable: the names of master and proxy would not resolve"
    absent = [name for name in ("puppet", "puppetserver", "java", "setpriv") if not shutil.which(name)]
    absent += [str(path) for path in (SERVER_JAR, SERVER_CONFIG) if not path.exists()]
    if absent:
        return f"not installed: {', '.join(absent)} (apt-get install puppet-agent puppetserver)"
    return None


@contextmanager
def host_names(names: Mapping[str, str]) -> Iterator[None]:
    """Let each name resolve to its address; lines that a killed session left behind are taken out."""
    added = [f"{address} {name} # puppet-inspector {os.getpid()}\n" for name, address in names.items()]

    def alive(line: str) -> bool:
        marked = re.search(r"# puppet-inspector (\d+)$", line)
        return not marked or Path("/proc", marked[1]).exists()

    def without_ours(lines: list[str]) -> list[str]:
        for line in added:
            lines.remove(line)  # one of each: another block may hold the same name
        return lines

    _edit_hosts(lambda lines: [*filter(alive, lines), *added])
    try:
        yield
    finally:
        _edit_hosts(without_ours)


def _edit_hosts(edit: Callable[[list[str]], list[str]]) -> None:
    with HOSTS.open("r+") as file:
        flock(file, LOCK_EX)
        lines = [line if line.endswith("\n") else f"{line}\n" for line in file]
        file.seek(0)  # in place: in a container it is a mount point, which no rename can replace
        file.write("".join(edit(lines)))
        file.truncate()


def free_port(host: str) -> int:
    """A TCP port that nobody listens on at this moment."""
    with socket.create_server((host, 0)) as server:
        port: int = server.getsockname()[1]
    return port


class RealMaster:
    """Debian's puppetserver with a root and an intermediate CA of its own.

    As a context manager it is started, and afterwards stopped and its directory removed. Certificate
    requests of names that begin with "auto" are signed at once; others wait for `sign`.
    """

    def __init__(
        self,
        name: str = "master.example",
        alt_names: Sequence[str] = (),
        host: str = "127.0.7.1",
        base: Path | None = None,
        idle_timeout: float = 5,
    ) -> None:
        """Only `name` is made to resolve; `alt_names` are further names in the master's certificate.

        `base` must not exist and be reachable for user puppet; it shows in catalogs and reports. Without
        it a new directory in /tmp is used. After `idle_timeout` seconds the server closes a silent
        connection: 30 by default, but a first run without a proxy, and `clean`, wait for just that.
        """
        self.name, self.host, self.port = name, host, free_port(host)
        self.idle_timeout = idle_timeout
        self.alt_names = (name, *alt_names)
        self.confdir = base or Path(tempfile.mkdtemp(prefix="puppet-inspector-"))
        self.ssldir, self.cadir, self.logdir = (self.confdir / part for part in ("ssl", "ca", "log"))
        self.environment = self.confdir / "code/environments/production"
        self._process: subprocess.Popen[bytes] | None = None
        self._cleanup = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.confdir.mkdir(exist_ok=not any(self.confdir.glob("*")))
            stack.callback(shutil.rmtree, self.confdir)
            stack.enter_context(host_names({self.name: self.host}))
            stack.callback(self.stop)
            self._configure()
            self.start()
            self._cleanup = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._cleanup.close()

    def _configure(self) -> None:
        base = self.confdir
        base.chmod(0o755)  # mkdtemp lets nobody else in, and the server is somebody else
        for path in ("var", "run", "gems", "log", "code/environments/production/manifests"):
            (base / path).mkdir(parents=True)
        for name in ("conf.d", "services.d"):
            shutil.copytree(SERVER_CONFIG / name, base / name)
        for name in ("logback.xml", "request-logging.xml"):
            text = (SERVER_CONFIG / name).read_text()
            (base / name).write_text(text.replace("/var/log/puppetserver", str(self.logdir)))
        webserver = {
            "access-log-config": f"{base}/request-logging.xml", "client-auth": "want",
            "ssl-host": self.host, "ssl-port": self.port,
            "idle-timeout-milliseconds": round(self.idle_timeout * 1000),
        }  # fmt: skip
        jruby = {
            "ruby-load-path": ["/usr/lib/puppetserver/ruby/vendor_ruby"], "gem-home": f"{base}/gems",
            "gem-path": [f"{base}/gems", "/usr/lib/puppetserver/vendored-jruby-gems"],
            "server-conf-dir": f"{base}", "server-code-dir": f"{base}/code",
            "server-var-dir": f"{base}/var", "server-run-dir": f"{base}/run",
            "server-log-dir": f"{base}/log", "max-active-instances": 1,
        }  # fmt: skip
        changed: dict[str, dict[str, object]] = {
            "global": {"global": {"logging-config": f"{base}/logback.xml"}},
            "webserver": {"webserver": webserver},
            "ca": {"certificate-authority": {"allow-subject-alt-names": True}},
            "puppetserver": {"jruby-puppet": jruby, "http-client": {}, "profiler": {"enabled": False}},
            "product": {"product": {"check-for-updates": False}, "dropsonde": {"enabled": False}},
        }
        for name, settings in changed.items():  # the format is HOCON, of which JSON is a part
            (base / f"conf.d/{name}.conf").write_text(json.dumps(settings, indent=2))
        (base / "autosign").write_text(AUTOSIGN)
        (base / "autosign").chmod(0o755)
        main = {
            "confdir": base, "codedir": f"{base}/code", "vardir": f"{base}/var", "rundir": f"{base}/run",
            "logdir": self.logdir, "ssldir": self.ssldir, "cadir": self.cadir, "autosign": f"{base}/autosign",
            "certname": self.name, "dns_alt_names": ",".join(self.alt_names), "keylength": 2048,
            "server": self.name, "serverport": self.port, "environment_timeout": 0,
            # no modules but our own, else Debian's are synced too
            "basemodulepath": f"{base}/modules", "vendormoduledir": f"{base}/modules",
        }  # fmt: skip
        _write_puppet_conf(base, {"main": main})
        self.manifest("default", "")
        self._give_to_puppet(self.confdir)
        self.ca("setup")

    def _give_to_puppet(self, path: Path) -> None:
        subprocess.run(["chown", "-R", "puppet:puppet", path], check=True)

    def start(self, timeout: float = 180) -> None:
        """Start the server and wait, at most `timeout` seconds, until it is ready for requests.

        Raises RuntimeError with the end of its logs when it ends or is not ready in time.
        """
        ready = self.confdir / "run/restart"
        ready.write_text("0")
        self._give_to_puppet(self.confdir)
        command = [*AS_PUPPET.split(), *JAVA.split(), "-Dlogappender=F1", "-jar", f"{SERVER_JAR}"]
        command += ["--config", "conf.d", "--bootstrap-config", "services.d", "--restart-file", f"{ready}"]
        with (self.logdir / "console.log").open("wb") as console:
            self._process = subprocess.Popen(command, stdout=console, stderr=console, cwd=self.confdir)
        deadline = time.monotonic() + timeout
        while not ready.read_text().startswith("1"):
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError(f"puppetserver ended or took over {timeout} s:\n{self.log_tail()}")
            time.sleep(0.1)

    def stop(self) -> None:
        """End the server, if it runs; it may be started again."""
        if self._process is not None:
            _end(self._process)
            self._process = None

    def log_tail(self, lines: int = 40) -> str:
        """The last lines of the console and of the server's log."""
        logs = [self.logdir / name for name in ("console.log", "puppetserver.log")]
        tails = [log.read_text(errors="replace").splitlines()[-lines:] for log in logs if log.exists()]
        return "\n".join(line for tail in tails for line in tail)

    def ca(self, action: str, *arguments: str) -> str:
        """`puppetserver ca ACTION`: its output. Raises RuntimeError when it fails."""
        command = ["puppetserver", "ca", action, *arguments, "--config", f"{self.confdir}/puppet.conf"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(command)} ended with {done.returncode}:\n{done.stdout}{done.stderr}")
        return done.stdout

    def sign(self, certname: str, timeout: float = 30) -> None:
        """Sign the request of this agent; wait for the request at most `timeout` seconds."""
        deadline = time.monotonic() + timeout
        while not (self.cadir / f"requests/{certname}.pem").exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        self.ca("sign", "--certname", certname)

    def revoke(self, certname: str) -> None:
        """Put the certificate on the CRL; the running server refuses it a moment later."""
        self.ca("revoke", "--certname", certname)

    def clean(self, certname: str) -> None:
        """Revoke the certificate and forget it, so that the agent may ask for a new one."""
        self.ca("clean", "--certname", certname)

    def generate(self, certname: str, alt_names: Sequence[str] = ()) -> None:
        """A key and a certificate signed by the CA, in `ssldir`/private_keys and `ssldir`/certs."""
        more = ["--subject-alt-names", ",".join(alt_names)] if alt_names else []
        self.ca("generate", "--certname", certname, *more)

    def module_file(self, module: str, path: str, content: bytes) -> None:
        """Write one file of a module, `path` relative to it; counts from the next run on."""
        self._site_file(self.environment / "modules" / module / path, content)

    def manifest(self, certname: str, code: str) -> None:
        """What the master manages on this node. A syntax error in one node's code stops all nodes."""
        node = certname if certname == "default" else f"'{certname}'"
        path = self.environment / f"manifests/{certname}.pp"
        self._site_file(path, f"node {node} {{\n{code}\n}}\n".encode())

    def _site_file(self, path: Path, content: bytes) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        self._give_to_puppet(self.environment)  # no more: the server's own files come and go

    def demo(self, certname: str, target: Path, *, notice: bool = True) -> None:
        """Give this node the demo module, which manages files below `target` on the agent's side.

        `notice`: with a notify resource, which is a change (exit status 2) in every run.
        """
        for path, content in DEMO_MODULE.items():
            self.module_file("demo", path, content)
        self.manifest(certname, f"class {{ 'demo': target => '{target}', notice => {str(notice).lower()} }}")


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
        _end(self.process)

    def wait(self, timeout: float = 60) -> CompletedRun:
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
        **facts: object,
    ) -> None:
        """`invented_facts`: send `scrubbed_facts` and `facts`, else (and slower) the machine's own.

        `keylength`: bits of its RSA key; Puppet's own default is 4096.
        """
        self.base, self.certname, self.target = base, certname, base / "managed"
        self.confdir, self.vardir, self.ssldir = base / "conf", base / "var", base / "ssl"
        self._directories = {f"{name}dir": base / name for name in ("conf", "var", "ssl", "run", "log", "public")}
        self._main: dict[str, object] = {**self._directories, "certname": certname, "keylength": keylength}
        self._environment = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LANG": "C.UTF-8", "HOME": str(base)}
        terminus = base / "ruby/puppet/indirector/facts/invented.rb"
        for path in (*self._directories.values(), terminus.parent):
            path.mkdir(parents=True, exist_ok=True)
        if invented_facts:
            terminus.write_text(FACTS_TERMINUS)
            (base / "facts.json").write_text(json.dumps(scrubbed_facts(certname) | facts))
            self._main["facts_terminus"] = "invented"
            self._environment |= {"RUBYLIB": f"{base}/ruby", "INVENTED_FACTS": f"{base}/facts.json"}

    def configure(self, *, server: str, port: int) -> None:
        """Write puppet.conf, for tools that look there for certname, ssldir, server and port."""
        agent: dict[str, object] = {"server": server, "serverport": port}
        _write_puppet_conf(self.confdir, {"main": self._main, "agent": agent})

    def command(self, *, server: str, port: int, waitforcert: int = 0, extra: Sequence[str] = ()) -> list[str]:
        """The command of one run; `waitforcert` in seconds between two tries, 0: try once."""
        directories = [word for name, path in self._directories.items() for word in (f"--{name}", str(path))]
        fixed = ["--certname", self.certname, "--server", server, "--serverport", str(port)]
        options = ["--test", "--color=false", "--waitforcert", str(waitforcert), *extra]
        return [shutil.which("puppet") or "puppet", "agent", *directories, *fixed, *options]

    def popen(self, *, server: str, port: int, waitforcert: int = 0, extra: Sequence[str] = ()) -> RunningAgent:
        """Start one run in the background; puppet.conf holds what the command line says."""
        self.configure(server=server, port=port)
        command = self.command(server=server, port=port, waitforcert=waitforcert, extra=extra)
        return RunningAgent(command, self._environment, self.base / "output.log")

    def run(
        self, *, server: str, port: int, waitforcert: int = 0, extra: Sequence[str] = (), timeout: float = 60
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


def _write_puppet_conf(confdir: Path, sections: Mapping[str, Mapping[str, object]]) -> None:
    lines: list[str] = []
    for section, settings in sections.items():
        lines += [f"[{section}]", *(f"{name} = {value}" for name, value in settings.items())]
    (confdir / "puppet.conf").write_text("\n".join([*lines, ""]))


def _end(process: subprocess.Popen[bytes]) -> None:
    process.send_signal(signal.SIGTERM)  # does nothing to a process that has already been waited for
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()

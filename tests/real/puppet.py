"""Real Puppet on loopback: Debian's puppetserver in a directory of its own (the agent is in ``agent``).

For end-to-end tests, samples and benchmarks; knows neither pytest nor the inspector. Needs root: the
server runs as user puppet, and names stand in /etc/hosts for as long as they are needed. Nothing else
of the machine is touched.
"""

from __future__ import annotations

import json
import shlex
import shutil
import signal
import subprocess
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Self

from tests.real.machine import SERVER_CONFIG, SERVER_JAR, end, free_port, host_names, write_puppet_conf
from tests.real.releases import visible
from tests.real.site import DEMO_MODULE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from tests.real.releases import System

# A session lasts minutes: Java's second compiler costs more than it gives (ready in 21 s, not 30).
JAVA = "java -Xms512m -Xmx1g -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Djruby.lib=/usr/share/jruby/lib"
# A session under nohup ignores SIGHUP, and so would the server, which reads its configuration anew at it.
AS_PUPPET = "env --default-signal=HUP setpriv --reuid=puppet --regid=puppet --clear-groups --pdeathsig=TERM"

ABSENT = "absent"
"""A directory in which files of Ruby are empty: the server takes what they would define as not installed."""
AUTOSIGN = '#!/bin/sh\ncase "$1" in {}) exit 0;; esac\nexit 1\n'


class RealMaster:
    """Debian's puppetserver with a root and an intermediate CA of its own.

    As a context manager it is started, and afterwards stopped and its directory removed. Certificate
    requests of names that fit the pattern `autosign` are signed at once; others wait for `sign`.
    """

    def __init__(
        self,
        name: str = "master.example",
        alt_names: Sequence[str] = (),
        host: str = "127.0.7.1",
        base: Path | None = None,
        idle_timeout: float = 5,
        autosign: str = "auto*",
        system: System | None = None,
        ca_settings: Mapping[str, object] | None = None,
        heir_of: Path | None = None,
        port: int = 0,
    ) -> None:
        """Only `name` is made to resolve; `alt_names` are further names in the master's certificate.

        `base` must not exist and be reachable for user puppet; it shows in catalogs and reports. Without
        it a new directory in /tmp is used. After `idle_timeout` seconds the server closes a silent
        connection (30 by its own default); a first run without a proxy, and `clean`, wait for just that. A server that
        gets no processor for as long closes connections on which a request has just arrived, and that run fails.
        `system`: another release of Debian whose server it is, instead of this machine's.
        `ca_settings`: more for its ca.conf.
        `heir_of`: the directory of a master of this name whose CA and certificate it takes over, as in an upgrade.
        `port`: 0 for one that is free.
        """
        self.system, self._ca_settings, self._heir_of = system, dict(ca_settings or {}), heir_of
        self.name, self.host, self.port = name, host, port or free_port(host)
        self.idle_timeout, self.autosign = idle_timeout, autosign
        self.alt_names = (name, *alt_names)
        self.confdir = base or Path(tempfile.mkdtemp(prefix="puppet-inspector-"))
        self.ssldir, self.cadir, self.logdir = (self.confdir / part for part in ("ssl", "ca", "log"))
        self.environment = self.confdir / "code/environments/production"
        self.clock = ""
        """How the server's clock is wrong from its next start on, as libfaketime has it: "+20y"."""
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
        packaged = self.system.root / SERVER_CONFIG.relative_to("/") if self.system else SERVER_CONFIG
        for name in ("conf.d", "services.d"):
            shutil.copytree(packaged / name, base / name)
        for name in ("logback.xml", "request-logging.xml"):
            text = (packaged / name).read_text()
            (base / name).write_text(text.replace("/var/log/puppetserver", str(self.logdir)))
        webserver = {
            "access-log-config": f"{base}/request-logging.xml", "client-auth": "want",
            "ssl-host": self.host, "ssl-port": self.port,
            "idle-timeout-milliseconds": round(self.idle_timeout * 1000),
        }  # fmt: skip
        jruby = {
            "ruby-load-path": [f"{base}/{ABSENT}", "/usr/lib/puppetserver/ruby/vendor_ruby"],
            "gem-home": f"{base}/gems",
            "gem-path": [f"{base}/gems", "/usr/lib/puppetserver/vendored-jruby-gems"],
            "server-conf-dir": f"{base}", "server-code-dir": f"{base}/code",
            "server-var-dir": f"{base}/var", "server-run-dir": f"{base}/run",
            "server-log-dir": f"{base}/log", "max-active-instances": 1,
        }  # fmt: skip
        changed: dict[str, dict[str, object]] = {
            "global": {"global": {"logging-config": f"{base}/logback.xml"}},
            "webserver": {"webserver": webserver},
            "puppetserver": {"jruby-puppet": jruby, "http-client": {}, "profiler": {"enabled": False}},
            "product": {"product": {"check-for-updates": False}, "dropsonde": {"enabled": False}},
        }
        for name, settings in changed.items():  # the format is HOCON, of which JSON is a part
            (base / f"conf.d/{name}.conf").write_text(json.dumps(settings, indent=2))
        self._hide_terminus()
        self._write_ca_conf(True)
        (base / "autosign").write_text(AUTOSIGN.format(self.autosign))
        (base / "autosign").chmod(0o755)
        main = {
            "confdir": base, "codedir": f"{base}/code", "vardir": f"{base}/var", "rundir": f"{base}/run",
            "logdir": self.logdir, "ssldir": self.ssldir, "cadir": self.cadir, "autosign": f"{base}/autosign",
            "certname": self.name, "dns_alt_names": ",".join(self.alt_names), "keylength": 2048,
            "server": self.name, "serverport": self.port, "environment_timeout": 0,
            # no modules but our own, else Debian's are synced too
            "basemodulepath": f"{base}/modules", "vendormoduledir": f"{base}/modules",
        }  # fmt: skip
        write_puppet_conf(base, {"main": main})
        self.manifest("default", "")
        if self._heir_of:
            for part in ("ssl", "ca"):
                shutil.copytree(self._heir_of / part, base / part)
        self.give_to_puppet(self.confdir)
        if not self._heir_of:
            self.ca("setup")

    def give_to_puppet(self, path: Path) -> None:
        """Let the server's user own a file, or a directory with all in it."""
        subprocess.run(self._command("chown", "-R", "puppet:puppet", f"{path}"), check=True)

    def _command(self, *words: str, at: Path | None = None) -> list[str]:
        """Return a command as it is run where the server is, in a directory if it matters which."""
        if self.system is None:
            return [*words]
        return self.system.command(f"cd {at or '/'} && exec {shlex.join(words)}", *visible(self.confdir))

    def start(self, timeout: float = 9000) -> None:
        """Start the server and wait, at most `timeout` seconds, until it is ready for requests.

        Raises RuntimeError with the end of its logs when it ends or is not ready in time.
        """
        ready = self.confdir / "run/restart"
        ready.write_text("0")
        self.give_to_puppet(self.confdir)
        # Not the program `faketime`: it stays between, and ending it would leave the server running.
        # With its fix of the monotonic clock, Java spins: it needs minutes to start.
        clock = ["env", "LD_PRELOAD=/usr/$LIB/faketime/libfaketime.so.1", "FAKETIME_DONT_FAKE_MONOTONIC=1"]
        clock += ["FAKETIME_FORCE_MONOTONIC_FIX=0", f"FAKETIME={self.clock}"]
        command = [
            *AS_PUPPET.split(),
            *(clock if self.clock else ()),
            *JAVA.split(),
            "-Dlogappender=F1",
            "-jar",
            f"{SERVER_JAR}",
        ]
        command += ["--config", "conf.d", "--bootstrap-config", "services.d", "--restart-file", f"{ready}"]
        with (self.logdir / "console.log").open("wb") as console:
            where = self._command(*command, at=self.confdir)
            self._process = subprocess.Popen(where, stdout=console, stderr=console, cwd=self.confdir)
        deadline = time.monotonic() + timeout
        try:
            self._wait(lambda: ready.read_text().startswith("1"), deadline)
            self._wait(self._handles_sighup, deadline)
        except RuntimeError:
            self.stop()
            raise

    def _handles_sighup(self) -> bool:
        """Whether SIGHUP lets the server, which is ready, read its configuration anew: for a moment it still ends it.

        Java writes what its threads do to the console at SIGQUIT; the main one waits once all is set up.
        """
        self.signal(signal.SIGQUIT)
        return "wait_for_app_shutdown" in (self.logdir / "console.log").read_text(errors="replace")

    def _wait(self, condition: Callable[[], bool], deadline: float) -> None:
        """Wait, until this moment of `time.monotonic`, for what the server, which runs, is to do."""
        assert self._process is not None
        while not condition():
            if self._process.poll() is not None:
                raise RuntimeError(f"puppetserver ended with {self._process.returncode}:\n{self.log_tail()}")
            if time.monotonic() > deadline:
                raise RuntimeError(f"puppetserver took too long:\n{self.log_tail()}")
            time.sleep(0.1)

    def ensure_running(self) -> None:
        """Start the server, unless it runs."""
        if self._process is None or self._process.poll() is not None:
            self.start()

    def stop(self) -> None:
        """End the server, if it runs; it may be started again."""
        if self._process is not None:
            end(self._process)
            self._process = None

    def _hide_terminus(self) -> None:
        for kind in ("catalog", "facts", "node", "resource"):
            path = self.confdir / ABSENT / f"puppet/indirector/{kind}/puppetdb.rb"
            path.parent.mkdir(parents=True)
            path.touch()

    @contextmanager
    def with_terminus(self) -> Iterator[None]:
        """Let the server find PuppetDB's terminus, from the next reload on for as long as the block lasts: whether it
        is installed, no other master has it."""
        shutil.rmtree(self.confdir / ABSENT)
        try:
            yield
        finally:
            self._hide_terminus()

    @contextmanager
    def configured(self, **settings: object) -> Iterator[None]:
        """Set something in the server's puppet.conf, for as long as the block lasts."""
        conf = self.confdir / "puppet.conf"
        before = conf.read_text()
        # Of a setting that is there twice, the first would count.
        others = [line for line in before.splitlines() if line.partition(" = ")[0] not in settings]
        conf.write_text("\n".join([*others, *(f"{name} = {value}" for name, value in settings.items()), ""]))
        try:
            self.reload()
            yield
        finally:
            conf.write_text(before)
            self.reload()

    @contextmanager
    def believing_headers(self) -> Iterator[None]:
        """Let the server take an agent's identity from headers, and from no certificate, as long as the block lasts."""
        conf = self.confdir / "conf.d/auth.conf"
        before = conf.read_text()
        conf.write_text(before.replace("version: 1", "version: 1\n    allow-header-cert-info: true", 1))
        try:
            self.reload()
            yield
        finally:
            conf.write_text(before)
            self.reload()

    def signal(self, number: signal.Signals) -> None:
        """Send the server's process a signal."""
        if self._process is not None:
            self._process.send_signal(number)

    def allow_alt_names(self, allow: bool, timeout: float = 900) -> None:
        """Write the setting into ca.conf and let the server, which runs, read it."""
        self._write_ca_conf(allow)
        self.reload(timeout)

    def reload(self, timeout: float = 900) -> None:
        """Let the server, which runs, read its configuration anew (as `systemctl reload` does)."""
        ready = self.confdir / "run/restart"
        before = ready.read_text()  # counts the starts
        self.signal(signal.SIGHUP)
        self._wait(lambda: ready.read_text() not in ("", before), time.monotonic() + timeout)

    def _write_ca_conf(self, allow: bool) -> None:
        setting = {"certificate-authority": {"allow-subject-alt-names": allow, **self._ca_settings}}
        (self.confdir / "conf.d/ca.conf").write_text(json.dumps(setting))

    def log_tail(self, lines: int = 40) -> str:
        """The last lines of the console and of the server's log."""
        logs = [self.logdir / name for name in ("console.log", "puppetserver.log")]
        tails = [log.read_text(errors="replace").splitlines()[-lines:] for log in logs if log.exists()]
        return "\n".join(line for tail in tails for line in tail)

    def ca(self, action: str, *arguments: str) -> str:
        """`puppetserver ca ACTION`: its output. Raises RuntimeError when it fails."""
        command = ["puppetserver", "ca", action, *arguments, "--config", f"{self.confdir}/puppet.conf"]
        done = subprocess.run(self._command(*command), capture_output=True, text=True, timeout=600)
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
        self.give_to_puppet(self.environment)  # no more: the server's own files come and go

    def demo(self, certname: str, target: Path, *, notice: bool = True) -> None:
        """Give this node the demo module, which manages files below `target` on the agent's side.

        `notice`: with a notify resource, which is a change (exit status 2) in every run.
        """
        for path, content in DEMO_MODULE.items():
            self.module_file("demo", path, content)
        self.manifest(certname, f"class {{ 'demo': target => '{target}', notice => {str(notice).lower()} }}")

"""A real PuppetDB on loopback, with a PostgreSQL of its own: Debian's packages, in a directory of their own.

Both are children of this process, and end with it. Needs root: they run as users postgres and puppet.
"""

from __future__ import annotations

import configparser
import json
import re
import shutil
import subprocess
import tempfile
import time
import urllib.error
import urllib.request
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from tests.real.machine import end, free_port, host_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from tests.real.puppet import RealMaster

NAME, HOST = "puppetdb.example", "127.0.7.2"
JAR = Path("/usr/share/puppetdb/puppetdb.jar")
CONFIG = Path("/etc/puppetdb")
TERMINUS = Path("/usr/lib/ruby/vendor_ruby/puppet/indirector/facts/puppetdb.rb")
POSTGRES = Path("/usr/lib/postgresql")
JAVA = "java -Xmx384m -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Djava.security.egd=/dev/urandom"
ACCESS_LOG = """<configuration><appender name="FILE" class="ch.qos.logback.core.FileAppender"><file>{}</file>
<encoder><pattern>%r %s</pattern></encoder></appender><appender-ref ref="FILE" /></configuration>"""
LOGGING = """<configuration><appender name="F1" class="ch.qos.logback.core.FileAppender"><file>{}</file>
<encoder><pattern>%d %-5p [%c{{2}}] %m%n</pattern></encoder></appender>
<root level="info"><appender-ref ref="F1" /></root></configuration>"""
PATIENCE = 600


def missing() -> str | None:
    """Why PuppetDB cannot be run here, or None when it can."""
    absent = [str(path) for path in (JAR, CONFIG, TERMINUS) if not path.exists()]
    absent += [] if list(POSTGRES.glob("*/bin/postgres")) else ["postgres"]
    if absent:
        return f"not installed: {', '.join(absent)} (apt-get install puppetdb puppet-terminus-puppetdb postgresql)"
    return None


class RealPuppetDB:
    """PuppetDB with a certificate of the master's CA; as a context manager it runs, and stores nothing before."""

    def __init__(self, master: RealMaster) -> None:
        self.master = master
        self.port, self._plain, self._sql = free_port(HOST), free_port(HOST), free_port(HOST)
        self._cleanup = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self.base = Path(tempfile.mkdtemp(prefix="puppet-inspector-puppetdb-"))
            stack.callback(shutil.rmtree, self.base)
            self.base.chmod(0o755)
            stack.enter_context(host_names({NAME: HOST}))
            stack.callback(end, self._postgres())
            self._directory("puppetdb", "puppet")
            stack.callback(self.stop)
            self.start()
            self._cleanup = stack.pop_all()
        return self

    def start(self, **settings: Mapping[str, object]) -> None:
        """Start it, with further settings by section; it is to be stopped before."""
        self._process = self._puppetdb(settings)
        self._wait_until(lambda: self._process.poll() is not None or self._ready(), "PuppetDB is not ready")
        assert self._process.poll() is None, self._logs()

    def ensure_running(self) -> None:
        """Start it, unless it runs."""
        if self._process.poll() is not None:
            self.start()

    def stop(self) -> None:
        """End it, but not its database."""
        end(self._process)

    def __exit__(self, *_: object) -> None:
        self._cleanup.close()

    def _postgres(self) -> subprocess.Popen[bytes]:
        binaries = max(POSTGRES.glob("*/bin/postgres"), key=lambda path: int(path.parts[-3])).parent
        data = self._directory("sql", "postgres")
        as_user = ["setpriv", "--reuid=postgres", "--regid=postgres", "--clear-groups", "--pdeathsig=TERM"]
        initdb: list[str | Path] = [
            binaries / "initdb",
            "-D",
            data,
            "--auth=trust",
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",
        ]
        subprocess.run([*as_user, *initdb], check=True, capture_output=True, cwd=data)
        settings = {"listen_addresses": HOST, "port": self._sql, "unix_socket_directories": data, "fsync": "off"}
        options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
        server: list[str | Path] = [*as_user, binaries / "postgres", "-D", data, *options]
        process = subprocess.Popen(server, cwd=data, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._psql: list[str | Path] = [
            binaries / "psql",
            "-h",
            HOST,
            "-p",
            str(self._sql),
            "-U",
            "postgres",
            "-q",
            "-v",
            "ON_ERROR_STOP=1",
        ]

        try:
            self._wait_until(lambda: self.execute("postgres", "select 1"), "PostgreSQL does not start")
            for database, command in (
                ("postgres", "create database puppetdb"),
                ("puppetdb", "create extension pg_trgm"),
            ):
                assert self.execute(database, command), command
        except BaseException:
            end(process)
            raise
        return process

    def execute(self, database: str, command: str) -> bool:
        """Execute SQL, and return whether that worked."""
        return subprocess.run([*self._psql, "-c", command, database], capture_output=True, check=False).returncode == 0

    def _puppetdb(self, settings: Mapping[str, Mapping[str, object]]) -> subprocess.Popen[bytes]:
        base, master = self.base / "puppetdb", self.master
        if not (master.ssldir / f"certs/{NAME}.pem").exists():
            master.generate(NAME)
        self._log = base / "access.log"
        (base / "logback.xml").write_text(LOGGING.format(base / "puppetdb.log"))
        (base / "access.xml").write_text(ACCESS_LOG.format(self._log))
        ssl = master.ssldir
        sections: dict[str, dict[str, object]] = {
            "global": {"vardir": base / "var", "logging-config": base / "logback.xml"},
            "database": {"subname": f"//{HOST}:{self._sql}/puppetdb", "username": "postgres", "password": "unused"},
            "puppetdb": {"disable-update-checking": "true"},
            "jetty": {
                "host": HOST, "port": self._plain, "ssl-host": HOST, "ssl-port": self.port,
                "ssl-key": ssl / f"private_keys/{NAME}.pem", "ssl-cert": ssl / f"certs/{NAME}.pem",
                "ssl-ca-cert": ssl / "certs/ca.pem", "access-log-config": base / "access.xml",
            },
        }  # fmt: skip
        conf = configparser.ConfigParser()
        conf.read_dict(sections)
        conf.read_dict(settings)
        for name in ("var", "conf.d"):
            (base / name).mkdir(exist_ok=True)
        shutil.copyfile(CONFIG / "conf.d/auth.conf", base / "conf.d/auth.conf")
        with (base / "conf.d/puppetdb.ini").open("w") as file:
            conf.write(file)
        subprocess.run(["chown", "-R", "puppet:puppet", base], check=True)
        as_user = ["setpriv", "--reuid=puppet", "--regid=puppet", "--clear-groups", "--pdeathsig=TERM"]
        command: list[str | Path] = [
            *as_user, *JAVA.split(), "-cp", JAR, "clojure.main", "-m", "puppetlabs.puppetdb.core", "services",
            "--config", base / "conf.d", "--bootstrap-config", CONFIG / "bootstrap.cfg",
        ]  # fmt: skip
        with (base / "console.log").open("wb") as console:
            return subprocess.Popen(command, stdout=console, stderr=console, cwd=base)

    def _directory(self, name: str, user: str) -> Path:
        path = self.base / name
        path.mkdir(mode=0o700)
        shutil.chown(path, user, user)
        return path

    def _wait_until(self, true: Callable[[], bool], otherwise: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while not true():
            if time.monotonic() > deadline:
                raise RuntimeError(f"{otherwise}\n{self._logs()}")
            time.sleep(0.2)

    def _logs(self) -> str:
        return "\n".join(path.read_text(errors="replace")[-3000:] for path in self.base.glob("puppetdb/*.log"))

    def _ready(self) -> bool:
        try:
            return isinstance(self.query("nodes"), list)
        except (urllib.error.URLError, OSError):
            return False

    # -- what it stores ----------------------------------------------------------------------------------

    def query(self, path: str) -> Any:
        """What it answers to a query. Raises OSError."""
        url = f"http://{HOST}:{self._plain}/pdb/query/v4/{path}"
        with urllib.request.urlopen(url, timeout=60) as answer:
            return json.load(answer)

    def data(self, certname: str) -> dict[str, Any]:
        """All that it knows of a node, when it stored that included."""
        return {kind: self.query(f"{kind}/{certname}") for kind in ("nodes", "catalogs", "factsets")}

    def wait_for(self, certname: str, true: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Wait until it knows of a node what is expected (it stores some time after it answered), and return that."""

        def known() -> bool:
            try:
                return true(self.data(certname))
            except urllib.error.HTTPError:  # 404: it has none
                return False

        self._wait_until(known, f"PuppetDB does not store what is expected of {certname}")
        return self.data(certname)

    @property
    def commands(self) -> int:
        """How often it was told to store something."""
        return self._log.read_text().count("POST /pdb/cmd/")

    def commands_for(self, certname: str) -> list[str]:
        """What it was told to store of a node, by its own log."""
        found = re.findall(r"POST /pdb/cmd/\S*?certname=([^&\s]+)\S*?command=(\w+)", self._log.read_text())
        return [command.replace("_", " ") for name, command in found if name == certname]

    # -- its master --------------------------------------------------------------------------------------

    @contextmanager
    def used(self, address: str = "", by: RealMaster | None = None, **settings: str) -> Iterator[None]:
        """Let the master, or another one, store there, or at another address, for as long as the block lasts;
        ``settings`` are further ones of the master."""
        master = by or self.master
        conf = master.confdir / "puppetdb.conf"
        conf.write_text(f"[main]\nserver_urls = https://{address or f'{NAME}:{self.port}'}\n")
        try:
            with (
                master.with_terminus(),
                master.configured(storeconfigs="true", storeconfigs_backend="puppetdb", **settings),
            ):
                yield
        finally:
            conf.unlink()

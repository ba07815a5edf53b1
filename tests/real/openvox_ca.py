"""A real openvox-ca on loopback, and a puppetserver whose agents have it as their CA.

The program is no package of Debian's: the environment variable PUPPET_INSPECTOR_OPENVOX_CA names it. Its command,
openvox-ca-ctl, lies beside it.
"""

from __future__ import annotations

import json
import os
import shutil
import ssl
import subprocess
import time
import urllib.request
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from inspector.host import pki
from tests.real.machine import end, free_port, host_names
from tests.real.puppet import RealMaster

PROGRAM = "PUPPET_INSPECTOR_OPENVOX_CA"
NOT_HAD = "no openvox-ca could be had"
"""Begins the reason for which tests with one are not run; the session's last line names it (tests/conftest)."""
ADMINISTRATOR = "admin.example"
NO_CA = (
    "puppetlabs.services.ca.certificate-authority-disabled-service/certificate-authority-disabled-service\n"
    "puppetlabs.trapperkeeper.services.watcher.filesystem-watch-service/filesystem-watch-service\n"
)
"""A master's services.d/ca.cfg without a CA service."""


def program() -> Path | None:
    """The openvox-ca to play with; None: none is named."""
    named = os.environ.get(PROGRAM)
    return Path(named) if named else None


class OpenvoxCa:
    """A running openvox-ca that signs every request; ended when the block is left."""

    def __init__(
        self, program: Path, base: Path, *names: str, name: str = "ca.example", host: str = "127.0.8.2"
    ) -> None:
        """``base`` is new or empty. ``names`` get a key and a certificate in its ``ssldir``. Certificates are valid for
        three days, so that agents of 8 renew them in each run."""
        self.program, self.base, self.name, self.host = program, base, name, host
        self.port = free_port(host)
        self.cadir, self.ssldir, self._made = base / "cadir", base / "ssl", (name, ADMINISTRATOR, *names)
        self._config = base / "config.yaml"
        self._names = ExitStack()
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        self.cadir.mkdir(parents=True)
        self._config.write_text("leaf_validity_days: 3\n")
        self._names.enter_context(host_names({self.name: self.host}))
        # Without TLS it gives keys to everybody: also its own, with which it is started again.
        self._start("http")
        try:
            for name in self._made:
                self._generate(name)
        finally:
            self.stop()
        certificate, key = (self.ssldir / kind / f"{self.name}.pem" for kind in ("certs", "private_keys"))
        self._start("https", "--tls-cert", f"{certificate}", "--tls-key", f"{key}", "--puppet-server", ADMINISTRATOR)
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()
        self._names.close()

    def _generate(self, name: str) -> None:
        url = f"http://{self.host}:{self.port}/puppet-ca/v1/generate/{name}?dns={name}"
        request = urllib.request.Request(url, method="POST")
        with urllib.request.urlopen(request, timeout=30) as answer:  # noqa: S310 - it is ours
            made = json.load(answer)
        for kind, content in (("private_keys", made["private_key"]), ("certs", made["certificate"])):
            (self.ssldir / kind).mkdir(parents=True, exist_ok=True)
            pki.write_private(self.ssldir / kind / f"{name}.pem", content.encode())

    def ctl(self, *words: str) -> None:
        """Let its administrator use its command, which lies beside it. Raises CalledProcessError when it fails."""
        certificate, key = (f"{self.ssldir / kind / ADMINISTRATOR}.pem" for kind in ("certs", "private_keys"))
        server = "--server-url", f"https://{self.name}:{self.port}", "--ca-cert", f"{self.cadir}/ca_crt.pem"
        program = self.program.with_name("openvox-ca-ctl")
        command = [f"{program}", *words, *server, "--client-cert", certificate, "--client-key", key]
        subprocess.run(command, check=True, timeout=60)

    def stop(self) -> None:
        if self._process is not None:
            end(self._process)
            self._process = None

    def log(self) -> str:
        """What it printed."""
        return (self.base / "ca.log").read_text(errors="replace")

    def _start(self, scheme: str, *more: str) -> None:
        command = [f"{self.program}", "--config", f"{self._config}", "--cadir", f"{self.cadir}", "--host", self.host,
                   "--port", f"{self.port}", "--hostname", self.name, "--autosign-config", "true", *more]  # fmt: skip
        with (self.base / "ca.log").open("ab") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        deadline = time.monotonic() + 60
        while not _answers(f"{scheme}://{self.name}:{self.port}/healthz/ready"):
            if self._process.poll() is not None or time.monotonic() > deadline:
                self.stop()
                raise RuntimeError(f"openvox-ca is not ready:\n{self.log()[-4000:]}")
            time.sleep(0.1)


class Compiler(RealMaster):
    """A puppetserver without a CA service, whose ssldir has certificates of an openvox-ca."""

    def __init__(self, authority: OpenvoxCa, name: str = "compiler.example", host: str = "127.0.8.3") -> None:
        super().__init__(name, host=host)
        self.authority, self.cadir = authority, authority.cadir

    @property
    def ca_settings(self) -> dict[str, object]:
        """Where its agents find their CA."""
        return {"ca_server": self.authority.name, "ca_port": self.authority.port}

    def ca(self, action: str, *arguments: str) -> str:
        if action != "setup":
            raise RuntimeError(f"a compiler has no `puppetserver ca {action}`")
        conf = self.confdir / "puppet.conf"
        conf.write_text(
            "\n".join((conf.read_text(), *(f"{name} = {value}" for name, value in self.ca_settings.items())))
        )
        (self.confdir / "services.d/ca.cfg").write_text(NO_CA)
        command = ["puppet", "ssl", "bootstrap", "--confdir", f"{self.confdir}"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"the compiler has no certificate:\n{done.stdout}{done.stderr}\n{self.authority.log()}")
        shutil.copytree(self.authority.ssldir, self.ssldir, dirs_exist_ok=True)
        return done.stdout


def _answers(url: str) -> bool:
    """Whether a server answers a request with success, whatever certificate it has."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with urllib.request.urlopen(url, timeout=5, context=context):  # noqa: S310 - it is ours
            return True
    except OSError:
        return False

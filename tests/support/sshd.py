"""Another node: this host, behind an sshd of its own on a loopback address, with keys of its own."""

from __future__ import annotations

import contextlib
import getpass
import os
import shutil
import signal
import socket
import subprocess
from contextlib import closing
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Self

from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Mapping

SSHD = shutil.which("sshd", path="/usr/sbin:/usr/local/sbin")
HOST = "node"


def missing() -> str:
    """Return why there can be no such node; empty if there can be one."""
    if os.geteuid() != 0:
        return "a run on another node needs root"
    if not (SSHD and shutil.which("ssh-keygen")):
        return "openssh-server is not installed"
    return "" if shutil.which("ssh") else "openssh-client is not installed"  # in sid the server does without it


class Node:
    """A node that `ssh node` reaches with ``environment``. As a context manager its sshd runs."""

    def __init__(self, base: Path, settings: Mapping[str, str] = MappingProxyType({})) -> None:
        """``settings``: variables of whoever logs in; TMPDIR is where a program is brought."""
        self.base, self.place = base, base / "place"
        self.place.mkdir(mode=0o700, parents=True)
        for name in ("host", "user"):
            subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", base / name], check=True)
        shutil.copy(base / "user.pub", base / "authorized")
        with closing(socket.socket()) as probe:
            probe.bind(("127.0.0.1", 0))
            self.port = probe.getsockname()[1]
        variables = " ".join(f'"{name}={value}"' for name, value in {"TMPDIR": str(self.place), **settings}.items())
        (base / "sshd_config").write_text(f"""\
ListenAddress 127.0.0.1:{self.port}
HostKey {base}/host
AuthorizedKeysFile {base}/authorized
PidFile none
StrictModes no
UsePAM no
PermitRootLogin prohibit-password
PasswordAuthentication no
SetEnv {variables}
""")
        (base / "ssh_config").write_text(f"""\
Host {HOST}
    HostName 127.0.0.1
    Port {self.port}
    User {getpass.getuser()}
    IdentityFile {base}/user
    IdentitiesOnly yes
    StrictHostKeyChecking no
    UserKnownHostsFile /dev/null
    LogLevel ERROR
""")
        # OpenSSH reads the configuration of the user's entry in the passwd file, wherever HOME is.
        program = base / "bin/ssh"
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\nexec {shutil.which('ssh')} -F '{base}/ssh_config' \"$@\"\n")
        program.chmod(0o755)
        self.environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}"}
        self._process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        Path("/run/sshd").mkdir(exist_ok=True)  # where Debian's separates its privileges
        with (self.base / "log").open("wb") as log:
            self._process = subprocess.Popen([str(SSHD), "-D", "-e", "-f", self.base / "sshd_config"], stderr=log)
        eventually(self._listens)
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process is not None
        self._process.terminate()
        self._process.wait(10)

    def _listens(self) -> bool:
        with closing(socket.socket()) as probe:
            return probe.connect_ex(("127.0.0.1", self.port)) == 0

    def kill_sessions(self) -> None:
        """Kill all that has a connection."""
        for each in self._sessions():
            with contextlib.suppress(ProcessLookupError):  # it ended with the one before
                os.kill(each, signal.SIGKILL)

    def _sessions(self) -> list[int]:
        """Return the processes of sshd that have a connection: one for each, from OpenSSH 9.8 on one below another."""
        assert self._process is not None
        found = [self._process.pid]
        for parent in found:
            children = map(int, Path(f"/proc/{parent}/task/{parent}/children").read_text().split())
            found += [each for each in children if Path(f"/proc/{each}/comm").read_text().startswith("sshd")]
        return found[1:]

    @property
    def left(self) -> list[str]:
        """What is in the directory where a program is brought."""
        return [path.name for path in self.place.rglob("*")]

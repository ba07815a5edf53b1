"""What real Puppet needs of this machine: names in /etc/hosts, free ports, the installed programs."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
from contextlib import contextmanager
from fcntl import LOCK_EX, flock
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

HOSTS = Path("/etc/hosts")
SERVER_JAR = Path("/usr/share/puppetserver/puppetserver.jar")
SERVER_CONFIG = Path("/etc/puppet/puppetserver")


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


def write_puppet_conf(confdir: Path, sections: Mapping[str, Mapping[str, object]]) -> None:
    """Write a puppet.conf of these sections."""
    lines: list[str] = []
    for section, settings in sections.items():
        lines += [f"[{section}]", *(f"{name} = {value}" for name, value in settings.items())]
    (confdir / "puppet.conf").write_text("\n".join([*lines, ""]))


def end(process: subprocess.Popen[bytes]) -> None:
    """End a process, if it runs, and wait for it."""
    process.send_signal(signal.SIGTERM)  # does nothing to a process that has already been waited for
    try:
        process.wait(20)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()

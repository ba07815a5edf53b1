"""A node that is reached over ssh, as Bolt reaches it: this machine in a directory, behind an sshd of its own."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tests.real.machine import end, free_port
from tests.real.overlay import overlay
from tests.support.places import ROOT
from tests.support.programs import program

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.real.overlay import Overlay
    from tests.real.through import Stage

MODULE = ROOT / "addons/puppet_inspector"
NAME = "task.example"
"""The certname of a node with an enrolled agent."""
TASKS = "/srv/module/tasks"
SMALL = "/srv/small"
"""A directory of the node with 60 MB: enough for the one-file build, not for what is in it."""


class Node:
    """A machine that is reached over ssh."""

    def __init__(self, machine: Overlay, directory: Path, port: int) -> None:
        self.machine, self.directory = machine, directory
        known = directory / "known_hosts"
        known.write_text(f"[127.0.0.1]:{port} {(directory / 'host.pub').read_text()}")
        options = ("-F", "none", "-i", f"{directory}/key", "-o", f"UserKnownHostsFile={known}", "-o", "BatchMode=yes")
        self.words = ["ssh", *options, "-p", str(port), "root@127.0.0.1"]
        """What begins the command that runs something there."""
        self._copying = ["scp", "-q", "-r", *options, "-P", str(port)]

    def ssh(self, command: str, given: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command there."""
        return subprocess.run([*self.words, command], input=given, capture_output=True, text=True, timeout=600)

    def copy(self, source: str, target: str) -> subprocess.CompletedProcess[str]:
        """Copy with scp; ``node:`` begins a path there."""
        paths = [path.replace("node:", "root@127.0.0.1:") for path in (source, target)]
        return subprocess.run([*self._copying, *paths], capture_output=True, text=True)

    def task(self, name: str, **parameters: object) -> dict[str, Any]:
        """Run a task; return what it answers."""
        done = self.ssh(f"{TASKS}/{name}.rb", json.dumps({**parameters, "_task": f"puppet_inspector::{name}"}))
        answer: dict[str, Any] = json.loads(done.stdout)
        assert (done.returncode == 0) == ("_error" not in answer), done.stdout + done.stderr
        return answer

    def left(self) -> list[str]:
        """What is on the node that was not there before; also in the directories that are in memory."""
        tests = str(self.directory.parents[1]).strip("/")
        return self.machine.left(tests, "etc/puppet", "var/lib/puppet", "var/cache/puppet/")

    def wait_until_nothing_is_left(self) -> None:
        for _ in range(900):
            if not self.left():
                return
            time.sleep(0.1)
        raise AssertionError(self.left())

    def enrol(self, stage: Stage, server: str = "") -> list[str]:
        """Let the node have the certificate of ``NAME``, and return the command of its agent's runs. ``server``: what
        its puppet.conf names instead of the stage's master."""
        agent, changes = stage.enrolled(NAME), self.machine.changes
        agent.configure(server=server or stage.master.name, port=stage.master.port)
        shutil.copytree(stage.directory, changes / "srv/agent", dirs_exist_ok=True)
        own = f"/srv/agent/{NAME}"
        facts = f"RUBYLIB={own}/ruby INVENTED_FACTS={own}/facts.json"
        (changes / "srv/puppet").write_text(f'#!/bin/sh\n{facts} exec /usr/bin/puppet "$@"\n')
        (changes / "srv/puppet").chmod(0o755)
        directories = [f"--{name}dir={own}/{name}" for name in ("conf", "var", "ssl", "run", "log")]
        return ["/srv/puppet", "agent", "-t", "--color=false", *directories]


@contextmanager
def reached(base: Path) -> Iterator[Node]:
    """A node with the module's tasks, for as long as the block lasts. The server's configuration and keys are its own;
    ``base`` is an empty directory."""
    server = program("sshd", "openssh-server")
    directory = base / "ssh"
    for path in (directory, base / "node"):
        path.mkdir()
    for name in ("key", "host"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", directory / name], check=True)
    port = free_port("127.0.0.1")
    (directory / "sshd_config").write_text("\n".join([
        "ListenAddress 127.0.0.1", f"Port {port}", "HostKey /srv/ssh/host", "AuthorizedKeysFile /srv/ssh/key.pub",
        "PidFile none", "UsePAM no", "StrictModes no", "PermitRootLogin prohibit-password",
        "PasswordAuthentication no", "Subsystem sftp internal-sftp", "",
    ]))  # fmt: skip
    mounts = [f"mkdir -p {{root}}/run/sshd {{root}}{SMALL}",
              f"mount -t tmpfs -o size=60m,mode=1777 none {{root}}{SMALL}"]  # fmt: skip
    with overlay(Path("/"), base / "node", mounts) as machine:
        shutil.copytree(MODULE, machine.changes / "srv/module")
        shutil.copytree(directory, machine.changes / "srv/ssh")
        command = machine.command(f"exec {server} -D -e -f /srv/ssh/sshd_config")
        with (directory / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
            try:
                while "listening" not in (directory / "log").read_text():
                    assert process.poll() is None, (directory / "log").read_text()
                    time.sleep(0.05)
                yield Node(machine, directory, port)
            finally:
                end(process)

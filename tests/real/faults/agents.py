"""What is wrong on the node alone: its files, its locks, its settings. Most of it never reaches the master."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

from inspector.host import pki
from tests.real.faults.engine import Fault
from tests.real.machine import end

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.real.faults.engine import Scene

KIND = "agent's own"


def _disabled(scene: Scene) -> None:
    assert scene.hosts.shell("node", "puppet agent --disable 'maintenance'").returncode == 0


def _locked(scene: Scene) -> None:
    """A process that is named as an agent's holds the lock."""
    program = scene.agent.base / "puppet"
    shutil.copyfile("/bin/sleep", program)
    program.chmod(0o755)
    process = subprocess.Popen([program, "1000"])
    scene.later(end, process)
    lock = scene.agent.vardir / "state/agent_catalog_run.lock"
    lock.parent.mkdir(exist_ok=True)
    lock.write_text(str(process.pid))
    scene.later(lock.unlink, True)


def _garbage(name: str) -> Callable[[Scene], None]:
    def make(scene: Scene) -> None:
        (scene.agent.ssldir / name.format(scene.certname)).write_text("-----BEGIN nothing\n")

    return make


def _empty(name: str) -> Callable[[Scene], None]:
    def make(scene: Scene) -> None:
        (scene.agent.ssldir / name.format(scene.certname)).write_text("")

    return make


def _other_key(scene: Scene) -> None:
    path = scene.agent.ssldir / f"private_keys/{scene.certname}.pem"
    path.write_bytes(pki.key_pem(pki.new_key(2048)))


def _unreadable(scene: Scene) -> None:
    """The agent runs as root, who reads everything; but not a directory in the place of a file."""
    path = scene.agent.ssldir / "certs/ca.pem"
    scene.later(path.write_bytes, path.read_bytes())
    path.unlink()
    path.mkdir()
    scene.later(path.rmdir)


_SSL = ("ssldir", "cadir")
FAULTS = (
    Fault(name="the agent is disabled", kind=KIND, make=_disabled, cause="disabled the agent", looks=("explain",),
          true=("the reason has gone",)),
    Fault(name="another run holds the lock", kind=KIND, make=_locked, cause="An earlier run", looks=("explain",),
          true=("the process is no agent",), agent_needs="ps"),
    Fault(name="ca.pem is garbage", kind=KIND, make=_garbage("certs/ca.pem"), agent="enrolled",
          cause="certs/ca.pem is not", looks=_SSL),
    Fault(name="ca.pem is empty", kind=KIND, make=_empty("certs/ca.pem"), agent="enrolled",
          cause="certs/ca.pem is not", looks=_SSL),
    Fault(name="crl.pem is garbage", kind=KIND, make=_garbage("crl.pem"), agent="enrolled",
          cause="crl.pem is not", looks=_SSL),
    Fault(name="the private key is garbage", kind=KIND, make=_garbage("private_keys/{}.pem"), agent="enrolled",
          cause="is not a valid private key", looks=_SSL, true=("there is no backup",)),
    Fault(name="the certificate is garbage", kind=KIND, make=_garbage("certs/{}.pem"), agent="enrolled",
          cause="is not a valid certificate", looks=_SSL),
    Fault(name="the private key does not match the certificate", kind=KIND, make=_other_key, agent="enrolled",
          cause="B22", looks=_SSL),
    Fault(name="a directory in the place of ca.pem", kind=KIND, make=_unreadable, agent="enrolled",
          cause="not a regular file", looks=_SSL, corrects="Look at it"),
)  # fmt: skip

"""Record `captures/samples/` from real Puppet: `python -m tests.real.record_samples` (as root, a minute).

What the samples hold of a machine is made up here: names under .example, neutral directories, invented
facts. `tests/test_samples.py` checks what came of it.
"""

from __future__ import annotations

import shutil
import sqlite3
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from tests.real.machine import host_names, missing
from tests.real.puppet import RealMaster
from tests.real.through import PROXY_HOST, PROXY_NAME, Stage
from tests.support import places

if TYPE_CHECKING:
    from tests.real.agent import RealAgent

SAMPLES = places.SAMPLES
MASTER, AGENTS = Path("/srv/puppet"), Path("/srv/agent")
"""Where master and agents live while this runs: catalogs and reports hold these paths."""


class Recording:
    """One capture at a time, of what an agent does through the proxy."""

    def __init__(self, stage: Stage, directory: Path) -> None:
        self.stage, self.directory = stage, directory

    def run(self, name: str, agent: RealAgent, expected: int) -> None:
        """Record one run; a second one for the same sample is added to it."""
        self.stage.capture = self.directory / f"{name}.sqlite"
        with self.stage.proxy(f"keys:{agent.ssldir}") as road:
            done = road.run(agent)
        assert done.status == expected, done.output

    def first_run(self, agent: RealAgent) -> None:
        """A fresh agent, signed at once; every kind of resource and of source."""
        self.stage.master.demo(agent.certname, agent.target, notice=True)
        self.run("first-run", agent, 2)

    def out_of_sync(self, agent: RealAgent) -> None:
        """The next run finds nothing to do; then somebody changes a file, which goes to the filebucket."""
        self.stage.master.demo(agent.certname, agent.target, notice=False)
        self.run("out-of-sync", agent, 0)
        (agent.target / "single.txt").write_text("changed by hand\n")
        self.run("out-of-sync", agent, 2)

    def compile_error(self, agent: RealAgent) -> None:
        """The manifest cannot be compiled (and `--test` does without the cached catalog)."""
        self.stage.master.manifest(agent.certname, "fail('no role for this node')")
        self.run("compile-error", agent, 1)

    def mismatched_key(self, agent: RealAgent) -> None:
        """The agent has lost its key and certificate; the CA still holds the certificate for the old key."""
        for kind in ("private_keys", "certs"):
            (agent.ssldir / kind / f"{agent.certname}.pem").unlink()
        self.run("mismatched-key", agent, 1)

    def bootstrap_waiting(self, agent: RealAgent) -> None:
        """A fresh agent asks every 2 s until somebody signs, then runs."""
        self.stage.capture = self.directory / "bootstrap-waiting.sqlite"
        with self.stage.proxy(f"keys:{agent.ssldir}") as road, road.start(agent, waitforcert=2) as running:
            pending = self.stage.master.cadir / f"requests/{agent.certname}.pem"
            while not pending.exists():
                time.sleep(0.05)
            time.sleep(5)
            self.stage.master.sign(agent.certname)
            done = running.wait()
        assert done.status == 2, done.output

    def revoked(self, agent: RealAgent) -> None:
        """The agent's certificate was revoked; it is refused in the handshake."""
        self.stage.master.revoke(agent.certname)
        self.run("revoked", agent, 1)


def record(directory: Path) -> None:
    """Record every sample anew."""
    with ExitStack() as stack:
        stack.enter_context(host_names({PROXY_NAME: PROXY_HOST}))
        for base in (MASTER, AGENTS):
            if base.exists():
                raise SystemExit(f"{base} exists; it is needed for the recording, and removed afterwards.")
        master = stack.enter_context(
            RealMaster("puppet.example", host="127.0.7.2", base=MASTER, autosign="node1.example")
        )
        master.generate(PROXY_NAME)
        AGENTS.mkdir()
        stack.callback(shutil.rmtree, AGENTS)
        stage = Stage(master, AGENTS)
        stack.callback(stage.close)
        recording = Recording(stage, directory)
        one, two = stage.agent("node1.example"), stage.agent("node2.example")
        recording.first_run(one)
        recording.out_of_sync(one)
        recording.compile_error(one)
        recording.mismatched_key(one)
        recording.bootstrap_waiting(two)
        recording.revoked(two)


def publish(capture: Path, folder: Path = SAMPLES) -> None:
    """Put a capture among the samples, as one file that needs no other beside it."""
    with sqlite3.connect(capture, isolation_level=None) as database:
        database.execute("PRAGMA journal_mode=DELETE")
        database.execute("VACUUM")
    database.close()
    for suffix in ("-wal", "-shm"):
        (folder / f"{capture.name}{suffix}").unlink(missing_ok=True)
    shutil.copyfile(capture, folder / capture.name)
    (folder / capture.name).chmod(0o644)


def main() -> None:
    """Record, and publish only when everything was recorded."""
    if reason := missing():
        raise SystemExit(reason)
    with tempfile.TemporaryDirectory() as directory:
        record(Path(directory))
        for capture in sorted(Path(directory).glob("*.sqlite")):
            publish(capture)
            print(f"{capture.name}  {capture.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()

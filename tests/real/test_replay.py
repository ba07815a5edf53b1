"""Every sample is replayed to a real agent: what it reports is what it reported when the sample was recorded.

The agent is where it was then (``/srv/agent``), with the facts of then; only the master is a replay.
"""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from inspector.capture.store import Capture
from inspector.replay.agent_command import Command
from inspector.replay.enrolment import ATTRIBUTES
from tests.real.agent import RealAgent, installed
from tests.real.record_samples import AGENTS
from tests.real.record_upgrade import LEGACY, ROLES
from tests.real.reports import sent
from tests.support.replays import NAME, of_sample, replayed, sample, served

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inspector.replay.master import ReplayMaster
    from tests.real.agent import CompletedRun
    from tests.real.reports import Account


LOCK = Path(tempfile.gettempdir()) / "puppet-inspector-tests-replay.lock"


@pytest.fixture(autouse=True)
def place() -> Iterator[Path]:
    """Where agents lived when the samples were recorded; only one test at a time may be there."""
    with LOCK.open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        reason = ""
        if os.geteuid() != 0 or shutil.which("puppet") is None:
            reason = "needs root, and puppet-agent"
        elif AGENTS.exists():
            reason = f"{AGENTS} exists"
        if reason:
            (pytest.fail if os.environ.get("PUPPET_INSPECTOR_REAL") == "required" else pytest.skip)(reason)
        AGENTS.mkdir()
        yield AGENTS
        shutil.rmtree(AGENTS)


class Replayed:
    """An agent that runs against one replay after the other."""

    def __init__(self, folder: Path, certname: str) -> None:
        self.folder, self.agent = folder, RealAgent(AGENTS / certname, certname)
        self.reports: list[Account] = []
        """Of the latest run."""
        self.missing: list[str] = []
        """What the latest run asked for and was not recorded."""

    def run(self, name: str, number: int | None = None, waitforcert: int = 0) -> CompletedRun:
        """Run against a replay of a sample; each has a CA of its own, so the agent enrols anew."""
        shutil.rmtree(self.agent.ssldir)
        folder = self.folder / f"{Path(name).name}-{number}"
        folder.mkdir()
        with replayed(folder, of_sample(folder, name, number)) as master:
            shutil.copy(folder / "replay" / ATTRIBUTES, self.agent.confdir)
            done = self.agent.run(server=NAME, port=master.address[1], waitforcert=waitforcert)
        self._take(master)
        return done

    def _take(self, master: ReplayMaster) -> None:
        happened = served(master)
        self.reports = _comparable(sent(one.record for one in happened))
        self.missing = [one.missing.reason for one in happened if one.missing]


def _comparable(accounts: list[Account]) -> list[Account]:
    """The reports, which agents of Puppet 7 sent; to an agent of 8 without what those leave out of theirs, and add."""
    if installed() < (8,):
        return accounts
    return [
        replace(
            one,
            resources={ref: status for ref, status in one.resources.items() if any(status)},
            logs=[line for line in one.logs if not line[2].startswith("Requesting catalog from ")],
        )
        for one in accounts
    ]


def recorded(folder: Path, name: str) -> list[Account]:
    (folder / "recorded").mkdir(exist_ok=True)
    with Capture.open(sample(folder / "recorded", name)) as capture:
        return _comparable(sent(capture.records()))


def test_the_samples_of_one_node_in_their_order(tmp_path: Path) -> None:
    """One test: each sample continues where the one before it ended."""
    node = Replayed(tmp_path, "node1.example")

    done = node.run("first-run")
    assert (done.status, node.missing) == (2, []), done.output
    assert node.reports == recorded(tmp_path, "first-run")
    assert (node.agent.target / "logo.bin").read_bytes() == bytes(range(256))

    unchanged, changed = recorded(tmp_path, "out-of-sync")
    done = node.run("out-of-sync", 1)
    assert (done.status, node.missing) == (0, []), done.output
    assert node.reports == [unchanged]

    (node.agent.target / "single.txt").write_text("changed by hand\n")
    done = node.run("out-of-sync", 2)
    assert (done.status, node.missing) == (2, []), done.output
    assert node.reports == [changed]
    assert (node.agent.target / "single.txt").read_text() == "one file\n"

    done = node.run("compile-error")
    assert (done.status, node.missing) == (1, []), done.output
    assert node.reports == recorded(tmp_path, "compile-error")

    done = node.run("mismatched-key")
    assert (done.status, node.missing, node.reports) == (1, [], [])
    assert "The certificate for 'CN=node1.example' does not match its private key" in done.output


def test_the_samples_of_the_other_node(tmp_path: Path) -> None:
    node = Replayed(tmp_path, "node2.example")

    done = node.run("bootstrap-waiting", waitforcert=1)
    assert (done.status, node.missing) == (2, []), done.output
    assert done.output.count("Will try again in 1 seconds") == 3
    assert node.reports == recorded(tmp_path, "bootstrap-waiting")

    done = node.run("revoked")
    assert (done.status, node.missing, node.reports) == (1, [], [])
    assert "certificate revoked" in done.output


def test_the_nodes_of_the_upgrade_in_their_order(tmp_path: Path) -> None:
    """The second one finds what the first one has made."""
    expected = recorded(tmp_path, "upgrade/recorded")
    found = []
    for number, name in enumerate(ROLES, 1):
        node = Replayed(tmp_path, name)
        facts = node.agent.base / "facts.json"
        facts.write_text(json.dumps(json.loads(facts.read_text()) | LEGACY))
        done = node.run("upgrade/recorded", number)
        assert (done.status in (0, 2), node.missing) == (True, []), done.output
        found += node.reports
    assert found == expected
    assert len(found) == len(ROLES)


def test_an_agent_with_another_key_is_refused(tmp_path: Path) -> None:
    stranger = RealAgent(AGENTS / "node1.example", "node1.example")
    with replayed(tmp_path, of_sample(tmp_path, "first-run")) as master:
        done = stranger.run(server=NAME, port=master.address[1])
    assert (done.status, [*stranger.target.glob("*")]) == (1, []), done.output
    assert "Failed to submit the CSR, HTTP response was 403" in done.output
    assert "for another key than the prepared one" in next(one.refused for one in served(master) if one.refused)


@pytest.mark.parametrize(
    ("name", "status"),
    [("first-run", 0), ("bootstrap-waiting", 0), ("out-of-sync", 0), ("compile-error", 1), ("mismatched-key", 1),
     ("revoked", 1)],
)  # fmt: skip
def test_the_command_that_is_printed(tmp_path: Path, name: str, status: int) -> None:
    """It completes without an identity, a plugin or a fact of the recording, and changes nothing that is managed."""
    with replayed(tmp_path, of_sample(tmp_path, name)) as master:
        words = Command(master.recording, tmp_path / "replay", NAME, master.address[1]).words
        done = subprocess.run(words, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == status, done.stdout + done.stderr
    assert [*AGENTS.iterdir()] == []
    noop = [report.noop for report in sent(one.record for one in served(master))]
    assert noop == ([True] if name in ("first-run", "bootstrap-waiting", "out-of-sync", "compile-error") else [])

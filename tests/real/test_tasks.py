"""The tasks of the Puppet module, on a node that is reached over ssh, as Bolt does it: whatever goes wrong, nothing of
it stays there."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from inspector.capture.store import Capture
from tests.real.machine import free_port
from tests.real.over_ssh import NAME, SMALL, TASKS, reached
from tests.support import packages

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.real.over_ssh import Node
    from tests.real.through import Stage


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Node]:
    with reached(tmp_path_factory.mktemp("node")) as machine:
        yield machine


@contextmanager
def _recording(node: Node, place: str, options: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
    """The task `record`, whose proxy listens."""
    given = {"directory": place, "file": f"{place}/puppet-inspector", "minutes": 60, "runs": 1, "options": options}
    with subprocess.Popen([*node.words, f"{TASKS}/record.rb"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as client:
        assert client.stdin
        assert client.stdout
        client.stdin.write(json.dumps(given).encode())
        client.stdin.close()
        while options["puppet_listen"] not in node.ssh(f"cat {place}/output.txt").stdout:
            assert client.poll() is None, client.stdout.read()
        yield client


@pytest.fixture
def place(node: Node) -> str:
    """A directory of the node with the one-file build, as the plan makes it."""
    assert node.left() == []
    directory = str(node.task("place", lease=600)["directory"])
    copied = node.copy(str(packages.one_file()), f"node:{directory}/puppet-inspector")
    assert copied.returncode == 0, copied.stderr
    return directory


def test_one_run_comes_back_and_nothing_stays(node: Node, place: str, stage: Stage, tmp_path: Path) -> None:
    command = node.enrol(stage)
    answer = node.task("one_run", directory=place, file=f"{place}/puppet-inspector", command=command)
    assert answer["status"] == 2, answer
    assert [(run["certname"], run["outcome"]) for run in answer["runs"]] == [(NAME, "complete")]
    assert (answer["directory"], answer["files"]) == (place, ["report.html", "shared.sqlite"])
    # Only the results wait there.
    assert node.ssh(f"ls {place}").stdout == "lock\nresults\n"
    assert node.copy(f"node:{place}/results", f"{tmp_path}/results").returncode == 0
    node.ssh(f"rm -rf -- {shlex.quote(place)}")
    assert node.left() == []
    assert NAME in (tmp_path / "results/report.html").read_text()
    with Capture.open(tmp_path / "results/shared.sqlite") as shared:
        assert len(list(shared.records())) > 5


def test_a_run_that_fails_comes_back_too(node: Node, place: str, tmp_path: Path) -> None:
    command = ["puppet", "agent", "-t", "--server", "nowhere.invalid", "--ssldir", "/srv/fresh"]
    answer = node.task("one_run", directory=place, file=f"{place}/puppet-inspector", command=command, raw=True)
    assert answer["status"] == 1
    assert answer["runs"][0]["verdict"]["cause"] == "T19"
    assert answer["files"] == ["capture.sqlite", "output.txt", "report.html", "shared.sqlite"]
    assert node.copy(f"node:{place}/results", f"{tmp_path}/results").returncode == 0
    node.ssh(f"rm -rf -- {shlex.quote(place)}")
    assert node.left() == []
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "results").iterdir()} == {0o600}


def test_a_command_that_is_none_is_an_error(node: Node, place: str) -> None:
    answer = node.task("one_run", directory=place, file=f"{place}/puppet-inspector", command=["/nowhere"])
    assert answer["_error"]["msg"].startswith("The run was not recorded: puppet-inspector: "), answer
    assert node.left() == []


def test_a_full_disk(node: Node) -> None:
    directory = node.task("place", base=SMALL)["directory"]
    assert node.copy(str(packages.one_file()), f"node:{directory}/puppet-inspector").returncode == 0
    answer = node.task("one_run", directory=directory, file=f"{directory}/puppet-inspector")
    assert answer["_error"]["msg"].startswith(f"Cannot unpack in {directory}: "), answer
    assert "No space left on device" in answer["_error"]["msg"]
    assert node.ssh(f"ls {SMALL}").stdout == ""
    assert node.left() == []


def test_the_connection_is_lost_while_the_agent_runs(node: Node, place: str) -> None:
    """The run goes on to its end."""
    agent = "puppet agent -t --server nowhere.invalid --ssldir /srv/fresh"
    script = f'touch /srv/began; while [ -e /srv/began ]; do sleep 0.1; done; {agent} "$@"; echo $? > /srv/ended'
    given = {"directory": place, "file": f"{place}/puppet-inspector", "command": ["sh", "-c", script, "sh"]}
    with subprocess.Popen(
        [*node.words, f"{TASKS}/one_run.rb"], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as client:
        assert client.stdin
        client.stdin.write(json.dumps(given).encode())
        client.stdin.close()
        while not (node.machine.changes / "srv/began").exists():
            assert client.poll() is None
            time.sleep(0.05)
        client.kill()
    node.ssh("rm /srv/began")
    node.wait_until_nothing_is_left()
    assert (node.machine.changes / "srv/ended").read_text() == "1\n"


def test_the_connection_is_lost_before_or_after_the_run(node: Node) -> None:
    directory = node.task("place", lease=2)["directory"]
    node.copy(str(packages.one_file()), f"node:{directory}/puppet-inspector")
    node.wait_until_nothing_is_left()


def test_doctor(node: Node, place: str, stage: Stage) -> None:
    agent = stage.enrolled(NAME)
    shutil.copytree(agent.ssldir, node.machine.changes / "srv/doctor", dirs_exist_ok=True)
    answer = node.task("doctor", file=f"{place}/puppet-inspector", ssldir="/srv/doctor")
    assert answer["diagnosis"]
    node.ssh(f"rm -rf -- {shlex.quote(place)}")
    assert node.left() == []


def test_a_recording_ends_after_a_run_or_with_the_connection(node: Node, place: str, stage: Stage) -> None:
    agent = stage.enrolled(NAME)
    (agent.ssldir / f"private_keys/{NAME}.pem").chmod(0o600)
    shutil.copytree(agent.ssldir, node.machine.changes / "srv/recorded")
    port = free_port("127.0.0.1")
    options = {
        "puppet_ssldir": "/srv/recorded",
        "puppet_listen": f"127.0.0.1:{port}",
        "puppet_master": f"{stage.master.name}:{stage.master.port}",
    }
    with _recording(node, place, options) as client:
        assert agent.run(server=NAME, port=port).status == 2
        assert client.stdout
        answer = json.loads(client.stdout.read())
    assert [(run["certname"], run["outcome"]) for run in answer["runs"]] == [(NAME, "complete")]

    # Without the connection the proxy ends, and all is gone.
    node.ssh(f"rm -r {place}/results")
    node.copy(str(packages.one_file()), f"node:{place}/puppet-inspector")
    with _recording(node, place, options) as client:
        client.kill()
    node.wait_until_nothing_is_left()

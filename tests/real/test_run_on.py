"""`puppet-inspector run --on` with real agents on another node: an sshd of the test's own."""

from __future__ import annotations

import os
import shlex
import subprocess
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from inspector import installation
from inspector.summaries import reading
from tests.real.as_http_proxy import AGENT, Theatre
from tests.support import sshd
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.real.as_http_proxy import Node
    from tests.real.puppet import RealMaster


@pytest.fixture(autouse=True)
def _needs_sshd() -> None:
    if reason := sshd.missing():
        (pytest.fail if os.environ.get("PUPPET_INSPECTOR_REAL") == "required" else pytest.skip)(reason)


@pytest.fixture
def node(master: RealMaster, tmp_path: Path, request: pytest.FixtureRequest) -> Node:
    return Theatre(master, tmp_path).node(request.node.name.replace("_", "-"))


@pytest.fixture
def program(tmp_path: Path) -> Path:
    """What starts this checkout, as the one-file build would start itself."""
    path = tmp_path / "program"
    path.write_text(f'#!/bin/sh\nexec {shlex.join(installation.command("inspector.cli.main"))} "$@"\n')
    path.chmod(0o755)
    return path


@contextmanager
def _reached(node: Node) -> Iterator[sshd.Node]:
    with sshd.Node(
        node.base / "there", {name: node.environment[name] for name in ("RUBYLIB", "INVENTED_FACTS")}
    ) as there:
        yield there


def _command(node: Node, program: Path, *options: str) -> list[str]:
    """The command that does a run of the node over ssh, into ``_copy(node)``."""
    own = ("--on", sshd.HOST, "--program", str(program), "-o", str(_copy(node)), *options)
    return installation.command("inspector.cli.main", "run", *own, "--", *node.words(AGENT))


def _copy(node: Node) -> Path:
    return node.base / "copies/copy.sqlite"


def _ran(node: Node, there: sshd.Node, program: Path, *options: str) -> subprocess.CompletedProcess[str]:
    command = _command(node, program, *options)
    return subprocess.run(command, env=there.environment, capture_output=True, text=True, timeout=600)


def _runs(node: Node) -> list[tuple[str, str | None]]:
    return [(run.outcome, run.cause) for run in reading.read(_copy(node)).briefs]


def test_a_run_that_completes(node: Node, master: RealMaster, program: Path) -> None:
    node.enrol()
    master.manifest(node.certname, "notify { 'a change': }")
    with _reached(node) as there:
        done = _ran(node, there, program)
        assert done.returncode == 2, done.stderr
        assert "Notice: Applied catalog in" in done.stdout
        assert node.certname in done.stdout
        assert f"check {_copy(node)}" in done.stdout or f"no findings: {_copy(node)}" in done.stdout
        assert str(there.place) not in done.stdout + done.stderr
        assert there.left == []
    assert _runs(node) == [("complete", None)]
    copied = _copy(node).read_bytes()
    assert node.certname.encode() not in copied
    assert b"PRIVATE KEY" not in copied
    assert not node.trusts_a_run()


def test_a_run_that_fails(node: Node, master: RealMaster, program: Path) -> None:
    node.enrol()
    master.manifest(node.certname, "fail('no such role')")
    with _reached(node) as there:
        done = _ran(node, there, program, "--raw")
        assert there.left == []
    assert done.returncode == 1
    assert "no such role" in done.stderr
    assert "S01" in done.stdout
    assert _runs(node) == [("failed", "S01")]
    assert node.certname.encode() in _copy(node).read_bytes()
    assert not Path(f"{_copy(node)}-wal").exists()


def test_a_disk_that_is_full(node: Node, program: Path) -> None:
    node.enrol()
    with _reached(node) as there, _disk(there, 512):
        done = _ran(node, there, program)
        assert "Notice: Applied catalog in" in done.stdout
        assert done.returncode == 0
        assert "puppet-inspector: cannot write the capture (only " in done.stderr
        assert there.left == []
    assert _runs(node) == []


def test_a_disk_without_room_for_the_program(node: Node, program: Path) -> None:
    with program.open("a") as file:
        file.write(f"# {os.urandom(1 << 20).hex()}\n")
    with _reached(node) as there, _disk(there, 512):
        done = _ran(node, there, program)
        assert done.returncode == 2
        assert "puppet-inspector: The program cannot be unpacked on node: " in done.stderr
        assert "  Free 150 MB in" in done.stderr
        assert there.left == []


@contextmanager
def _disk(there: sshd.Node, size: int) -> Iterator[None]:
    """Let the place where a program is brought have so many kilobytes."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}k", "none", there.place], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", there.place], check=True)


def test_a_connection_that_is_lost(node: Node, program: Path) -> None:
    node.enrol()
    with _reached(node) as there:
        process = subprocess.Popen(
            _command(node, program), env=there.environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert process.stdout is not None
        assert process.stdout.readline()  # of the agent
        agents = _agents(node)
        assert agents
        there.kill_sessions()
        _, error = process.communicate(timeout=600)
        assert process.returncode == 2
        assert "puppet-inspector: The connection with node was lost." in error
        assert eventually(lambda: there.left == [])
        assert not _agents(node)
        assert not node.trusts_a_run()

        again = _ran(node, there, program)
        assert again.returncode in (0, 2), again.stderr
        assert _runs(node) == [("complete", None)]


def _agents(node: Node) -> list[str]:
    """The processes of the node's agent."""
    found = []
    for place in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = place.read_bytes()
        except OSError:
            continue
        if str(node.agent.confdir).encode() in words and b"--http_proxy_host" in words:
            found.append(place.parent.name)
    return found

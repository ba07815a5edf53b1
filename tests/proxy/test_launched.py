"""What a command started, a proxy or an agent, ends with that command, however the command ends."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from inspector import installation
from inspector.proxy import launched
from tests.support.waiting import eventually, is_running

_STARTS = """
import sys, time
from pathlib import Path
from inspector.cli import demo
from inspector.lab import Lab
from inspector.proxy.launcher import Proxy
with Lab() as lab, Proxy(demo.options(lab, Path(sys.argv[1])), own=sys.argv[2] == "own") as proxy:
    print(proxy.process.pid, flush=True)
    time.sleep(600)
"""


def below(process: int) -> set[int]:
    """The processes that a process started, and those that these started."""
    threads = Path(f"/proc/{process}/task").glob("*/children")
    children = {int(number) for thread in threads for number in thread.read_text().split()}
    return children.union(*(below(child) for child in children))


@pytest.mark.slow
@pytest.mark.parametrize("own", ["own", "mitmdump"])
def test_a_proxy_ends_when_its_parent_is_killed(own: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", _STARTS, str(tmp_path / "c.sqlite"), own]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        proxy = int(parent.stdout.readline())
        # The proxy answers before its own thread has started the analysis.
        assert eventually(lambda: bool(below(proxy)))
        processes = {proxy, *below(proxy)}
        parent.kill()
    assert eventually(lambda: not any(map(is_running, processes)))


_STARTS_AGENT = """
import os, subprocess, sys, time
from inspector import installation
launched = "inspector.proxy.launched"
command = installation.command(launched, str(os.getpid()), f"{launched}:execute", "sleep", "600")
print(subprocess.Popen(command).pid, flush=True)
time.sleep(600)
"""


def command(*words: str, parent: int | None = None) -> list[str]:
    """What becomes these words, an agent's."""
    module = launched.__name__
    return installation.command(module, str(parent or os.getpid()), f"{module}:execute", *words)


def test_it_becomes_the_command() -> None:
    done = subprocess.run(command("sh", "-c", 'echo "$0 $$"; exit 3', "a b"), capture_output=True, text=True)
    words = done.stdout.split()
    assert (done.returncode, words[:2], done.stderr) == (3, ["a", "b"], "")


def test_it_is_the_same_process() -> None:
    with subprocess.Popen(command("sh", "-c", "echo $$"), stdout=subprocess.PIPE, text=True) as process:
        assert process.communicate()[0] == f"{process.pid}\n"


def test_a_file_that_is_no_program_is_said(tmp_path: Path) -> None:
    program = tmp_path / "puppet"
    program.touch()
    done = subprocess.run(command(str(program)), capture_output=True, text=True)
    assert done.returncode == launched.CANNOT_RUN
    assert done.stderr == f"puppet-inspector: {program} cannot be run: Permission denied.\n"


@pytest.mark.parametrize("signal", ["kill", "terminate"])
def test_an_agent_ends_when_its_parent_does(signal: str) -> None:
    with subprocess.Popen([sys.executable, "-c", _STARTS_AGENT], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        agent = int(parent.stdout.readline())
        assert eventually(lambda: _name(agent) == "sleep")
        getattr(parent, signal)()
    assert eventually(lambda: not is_running(agent))


def test_it_does_not_begin_without_its_parent() -> None:
    """Who started it is gone already: its process is another one's child by now."""
    done = subprocess.run(
        command("echo", "begun", parent=1 if os.getppid() != 1 else 2), capture_output=True, text=True
    )
    assert done.stdout == ""


def _name(process: int) -> str:
    try:
        return Path(f"/proc/{process}/comm").read_text().strip()
    except OSError:
        return ""

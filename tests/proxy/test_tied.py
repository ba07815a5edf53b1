"""What `run` starts ends with it."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from inspector import installation
from inspector.proxy import tied
from tests.support.waiting import eventually, is_running

if TYPE_CHECKING:
    from pathlib import Path

_STARTS = """
import os, subprocess, sys, time
from inspector import installation
tied = installation.command("inspector.proxy.tied", str(os.getpid()), "sleep", "600")
print(subprocess.Popen(tied).pid, flush=True)
time.sleep(600)
"""


def command(*words: str) -> list[str]:
    return installation.command("inspector.proxy.tied", str(os.getpid()), *words)


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
    assert done.returncode == tied.CANNOT_RUN
    assert done.stderr == f"puppet-inspector: {program} cannot be run: Permission denied.\n"


@pytest.mark.parametrize("signal", ["kill", "terminate"])
def test_it_ends_when_its_parent_is_killed(signal: str) -> None:
    with subprocess.Popen([sys.executable, "-c", _STARTS], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        agent = int(parent.stdout.readline())
        assert eventually(lambda: _name(agent) == "sleep")
        getattr(parent, signal)()
    assert eventually(lambda: not is_running(agent))


def test_it_does_not_begin_without_its_parent() -> None:
    """Who started it is gone already: its process is another one's child by now."""
    words = installation.command("inspector.proxy.tied", "1" if os.getppid() != 1 else "2", "echo", "begun")
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.stdout == ""


def _name(process: int) -> str:
    from pathlib import Path

    try:
        return Path(f"/proc/{process}/comm").read_text().strip()
    except OSError:
        return ""

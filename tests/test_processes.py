"""A process ends with the one that started it, however that one ends."""

from __future__ import annotations

import subprocess
import sys

from tests.support.waiting import eventually, is_running

_CHILD = """
import os, signal, sys, time
from inspector import processes
processes.end_with(int(sys.argv[1]), signal.SIGKILL)
print(os.getpid(), flush=True)
time.sleep(600)
"""
_PARENT = """
import os, subprocess, sys
subprocess.run([sys.executable, "-c", sys.argv[1], str(os.getpid())])
"""


def test_it_ends_when_its_parent_is_killed() -> None:
    with subprocess.Popen([sys.executable, "-c", _PARENT, _CHILD], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        child = int(parent.stdout.readline())
        assert is_running(child)
        parent.kill()
    assert eventually(lambda: not is_running(child))


def test_it_ends_at_once_if_its_parent_has_ended_before() -> None:
    done = subprocess.run([sys.executable, "-c", _CHILD, "1"], capture_output=True, text=True, check=True)
    assert done.stdout == ""

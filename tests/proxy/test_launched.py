"""A proxy that a command started ends with that command, however the command ends."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("own", ["own", "mitmdump"])
def test_it_ends_when_its_parent_is_killed(own: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", _STARTS, str(tmp_path / "c.sqlite"), own]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout
        proxy = int(parent.stdout.readline())
        processes = {proxy, *below(proxy)}
        parent.kill()
    assert len(processes) > 1
    assert eventually(lambda: not any(map(is_running, processes)))

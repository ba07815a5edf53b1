"""Programs of Debian that tests ask for their verdict: they are required in CI (PUPPET_INSPECTOR_REAL=required)."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path


def program(name: str, package: str) -> str:
    """The path of a program; without it the test fails in CI, and is skipped elsewhere."""
    found = shutil.which(name)
    if found is None:
        if os.environ.get("PUPPET_INSPECTOR_REAL") == "required":
            pytest.fail(f"{name} is missing: apt-get install {package}")
        pytest.skip(f"{name} is missing")
    return found


def promtool(*arguments: str, text: str = "") -> str:
    """What promtool says of a text, which it must accept."""
    command = [program("promtool", "prometheus"), *arguments]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def tshark(path: Path, *arguments: str) -> str:
    """What tshark prints of a file, which it must be able to read. It needs no key but those in the file."""
    # Else a port that happens to be another protocol's (44818, 57000) is taken for that.
    contents_first = ("-o", "tcp.try_heuristic_first:TRUE")
    command = [program("tshark", "tshark"), "-n", *contents_first, "-r", str(path), *arguments]
    environment = {**os.environ, "HOME": "/nonexistent", "LC_ALL": "C.UTF-8"}
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False, env=environment)
    assert done.returncode == 0, done.stderr
    return done.stdout


def fields(path: Path, wanted: str, *names: str) -> list[list[str]]:
    """Fields of the packets that match a display filter; several values of a field are separated by a bar."""
    options = [option for name in names for option in ("-e", name)]
    text = tshark(path, "-Y", wanted, "-T", "fields", "-E", "separator=/t", "-E", "aggregator=|", *options)
    return [line.split("\t") for line in text.splitlines()]


def tree(path: Path, wanted: str) -> list[dict[str, Any]]:
    """The layers of the packets that match a display filter."""
    packets = json.loads(tshark(path, "-Y", wanted, "-T", "json", "--no-duplicate-keys"))
    return [packet["_source"]["layers"] for packet in packets]

"""Processes beside a proxy: which there are, what they do, and how to make one do harm."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from inspector import installation
from inspector.proxy import side_process

if TYPE_CHECKING:
    import pytest


def state(process: int) -> str:
    """The state of a process: R, S, T, Z; Z also if there is none any more."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def running(module: str, argument: str) -> list[int]:
    """The processes that run a module with an argument."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            words = (folder / "cmdline").read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if argument in words and any(f"from {module} import main" in word for word in words):
            found.append(int(folder.name))
    return found


def replace_code(monkeypatch: pytest.MonkeyPatch, code: str) -> None:
    """Run this code in place of every process beside a proxy, and start it again without a pause."""
    monkeypatch.setattr(side_process, "PAUSES", (0.0,))
    code = f"import sys; sys.path.insert(0, {str(installation.PACKAGE.parent)!r})\n{code}"
    monkeypatch.setattr(installation, "command", lambda _module, *given: [sys.executable, "-P", "-c", code, *given])

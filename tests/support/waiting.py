"""Waiting for what must come, however slow the machine is."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE = 300.0
"""Seconds after which what was awaited will not come."""
AT_ONCE = 0.02
"""Seconds between two looks."""


def eventually(true: Callable[[], bool]) -> bool:
    """Whether something comes true in good time."""
    until = time.monotonic() + PATIENCE
    while not (found := true()) and time.monotonic() < until:
        time.sleep(AT_ONCE)
    return found


def is_running(process: int) -> bool:
    """Whether there is a process, and it has not ended."""
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False

"""Processes that end with the one that started them."""

from __future__ import annotations

import ctypes
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import signal

_PARENT_DEATH_SIGNAL = 1


def end_with(parent: int, number: signal.Signals) -> None:
    """Let the kernel send a signal to this process when its parent, whose process number is given, has ended."""
    ctypes.CDLL(None).prctl(_PARENT_DEATH_SIGNAL, number)
    if os.getppid() != parent:
        sys.exit(0)

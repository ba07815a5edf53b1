"""Standard output as if it were a terminal of some width."""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING

from rich.cells import cell_len

if TYPE_CHECKING:
    import pytest

COLOUR = re.compile(r"\x1b\[[0-9;]*m")


def pretend(monkeypatch: pytest.MonkeyPatch, width: int) -> None:
    """Let the output be a terminal with colours."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("NO_COLOR", "FORCE_COLOR"):
        monkeypatch.delenv(name, raising=False)


def plain(text: str) -> str:
    """Return what was printed without its colours."""
    return COLOUR.sub("", text)


def too_long(text: str, width: int) -> list[str]:
    """Return the lines that a terminal would break in the middle of a word, unless they are one word (with a label), or
    to be copied: the command of a fix, or of what to do next."""
    return [
        line
        for line in plain(text).splitlines()
        if cell_len(line) > width and len(line.split()) > 2 and not COMMAND.search(line)
    ]


COMMAND = re.compile(r"^ +(?:puppet|puppetserver|find|openssl|date|timedatectl) |: puppet-inspector check ")

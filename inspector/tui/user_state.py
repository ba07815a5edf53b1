"""What the terminal inspector remembers for its user from one time to the next: small files in the XDG state folder."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def folder() -> Path:
    """The folder of these files, which need not exist."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "puppet-inspector"


def write(name: str, text: str) -> None:
    """Replace a file, readable for its owner only. Never raises."""
    path = folder() / name
    written = path.with_name(f".{path.name}.{os.getpid()}")
    with contextlib.suppress(OSError, ValueError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        written.replace(path)

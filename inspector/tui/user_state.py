"""What the terminal inspector remembers for its user from one time to the next: small files in the XDG state folder.

Nothing here raises: a file that cannot be read counts as empty, and a home that cannot be written to is no error.
"""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

from inspector import inputs


def folder() -> Path:
    """The folder of these files, which need not exist."""
    state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(state) / "puppet-inspector"


def read(name: str) -> bytes:
    """The content of a file; empty if it cannot be read."""
    with contextlib.suppress(OSError, ValueError):
        return inputs.read(folder() / name, inputs.SMALL, links=False)
    return b""


def read_object(name: str) -> dict[str, Any]:
    """The JSON object in a file; empty if the file holds none."""
    with contextlib.suppress(ValueError, RecursionError):
        found = json.loads(read(name))
        return found if isinstance(found, dict) else {}
    return {}


def write(name: str, text: str) -> None:
    """Replace a file, readable for its owner only."""
    path = folder() / name
    written = path.with_name(f".{path.name}.{os.getpid()}")
    with contextlib.suppress(OSError, ValueError):
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
        written.replace(path)

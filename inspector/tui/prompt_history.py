"""The history of the prompt, which is saved between sessions."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

from inspector import inputs
from inspector.text import clean

MOST = 200
"""Maximum number of lines in a history."""


class History:
    """The lines typed before, the latest last. One file per user, for all captures. Never raises."""

    def __init__(self, name: str) -> None:
        self._name = name
        state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
        self._path = Path(state) / "puppet-inspector" / "history.json"
        self.lines = self._read().get(name, [])

    def _read(self) -> dict[str, list[str]]:
        try:
            found = json.loads(inputs.read(self._path, inputs.SMALL, links=False))
            return {
                str(name): [line for line in lines if isinstance(line, str) and clean(line) == line]
                for name, lines in found.items()
            }
        except (OSError, ValueError, AttributeError, TypeError, RecursionError):
            return {}

    def add(self, line: str) -> None:
        """Add a line as the latest."""
        if not line.strip():
            return
        histories = self._read()  # another process may have written since
        self.lines = [*(earlier for earlier in histories.get(self._name, self.lines) if earlier != line), line][-MOST:]
        histories[self._name] = self.lines
        written = self._path.with_name(f".{self._path.name}.{os.getpid()}")
        with contextlib.suppress(OSError, ValueError):
            self._path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            descriptor = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
            with os.fdopen(descriptor, "w", encoding="utf-8") as file:
                json.dump(histories, file, indent=1)
            written.replace(self._path)

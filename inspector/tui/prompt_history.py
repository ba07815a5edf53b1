"""The history of the prompt, which is saved between sessions."""

from __future__ import annotations

import json

from inspector import inputs
from inspector.text import clean
from inspector.tui import user_state

MOST = 200
"""Maximum number of lines in a history."""
_FILE = "history.json"


class History:
    """The lines typed before, the latest last. One file per user, for all captures. Never raises."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._path = user_state.folder() / _FILE
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
        user_state.write(_FILE, json.dumps(histories, indent=1))

"""Filters that the user saved under a name, for all captures."""

from __future__ import annotations

import json

from inspector import inputs
from inspector.text import clean
from inspector.tui import user_state

MOST = 100
"""Maximum number of saved filters; the one saved first is dropped."""
LONGEST = 40
"""Characters of a name."""
_FILE = "filters.json"


def all_saved() -> dict[str, str]:
    """Return the saved filters by name. Never raises."""
    try:
        found = json.loads(inputs.read(user_state.folder() / _FILE, inputs.SMALL, links=False))
        return {
            name: text
            for name, text in found.items()
            if isinstance(text, str) and clean(name) == name and clean(text) == text
        }
    except (OSError, ValueError, AttributeError, TypeError, RecursionError):
        return {}


def save(name: str, text: str) -> None:
    """Save a filter under a name, in the place of the one that has it. Never raises."""
    saved = all_saved()  # another process may have written since
    saved.pop(name, None)
    _write({**saved, clean(name.strip())[:LONGEST]: text})


def remove(name: str) -> None:
    """Remove a saved filter. Never raises."""
    _write({other: text for other, text in all_saved().items() if other != name})


def _write(saved: dict[str, str]) -> None:
    user_state.write(_FILE, json.dumps(dict(list(saved.items())[-MOST:]), indent=1))

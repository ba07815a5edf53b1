"""Two sets of facts by path; what changes by itself all the time is apart."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inspector import regex
from inspector.compare import meaning
from inspector.compare.differences import Section
from inspector.privacy.names import named

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inspector.compare.differences import Differences
    from inspector.protocol.documents import Facts

VOLATILE = (
    "uptime*", "system_uptime.*", "load_averages.*", "memory.*.available*", "memory.*.used*", "memory.*.capacity",
    "memoryfree*", "swapfree*", "mountpoints.*.available*", "mountpoints.*.used*", "mountpoints.*.capacity",
    "processors.speed", "sp_uptime", "dhcp_servers.*", "networking.dhcp", "networking.interfaces.*.dhcp",
    "networking.interfaces.*.operational_state", "zfs_*available", "_timestamp",
)  # fmt: skip
"""Patterns of facts that may be another at any time."""
_AS_TEXT = frozenset({"load_averages", "memory", "mountpoints", "system_uptime"})
"""Structured facts with volatile parts; agents of 3 send each as one text."""


class Volatile:
    """Which facts are volatile."""

    def __init__(self, patterns: Sequence[str] = VOLATILE) -> None:
        self._patterns = [regex.compile(_pattern(text), regex.DOTALL) for text in patterns]

    def covers(self, path: str) -> bool:
        """Whether a fact, or one that it is part of, is volatile."""
        return any(pattern.fullmatch(path) for pattern in self._patterns)


def _pattern(text: str) -> str:
    return "".join(".*" if character == "*" else regex.escape(character) for character in text.strip())


def compare(before: Facts, after: Facts, found: Differences, changing: Differences, volatile: Volatile) -> None:
    """Add the differences of two sets of facts; of volatile ones to ``changing``."""
    waiting: list[tuple[str, str, Any, Any]] = [("", "", before.values, after.values)]
    while waiting:
        path, name, old, new = waiting.pop()
        if isinstance(old, dict) and isinstance(new, dict):
            names = sorted({*old, *new}, key=str, reverse=True)
            # What is in a secret is one, whatever its own name is.
            waiting += [
                (
                    f"{path}.{each}" if path else str(each),
                    name if named(name) else str(each),
                    old.get(each),
                    new.get(each),
                )
                for each in names
            ]
        elif not meaning.same(old, new):
            text = path in _AS_TEXT and isinstance(old, str) and isinstance(new, str)
            differences = changing if volatile.covers(path) or text else found
            differences.add(Section.FACTS, path, "", old, new, named=name)

"""What captures in tables are called: by their files, as people know them, where the tables have an identity."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duckdb import DuckDBPyConnection


class CaptureNames(NamedTuple):
    """The names of all captures."""

    names: Mapping[str, str]
    """By identity: the name of its file, with its site if other sites have one of that name; else with its identity."""

    @classmethod
    def of(cls, connection: DuckDBPyConnection) -> CaptureNames:
        """Return the names in the tables that a database shows."""
        statement = "SELECT capture, any_value(site), any_value(name) FROM captures WHERE name <> '' GROUP BY capture"
        rows = connection.execute(statement).fetchall()
        files = Counter(name for _, _, name in rows)
        placed = Counter((site, name) for _, site, name in rows)
        names = {}
        for capture, site, name in rows:
            where = name if files[name] == 1 else f"{site}/{name}"
            names[capture] = where if placed[site, name] == 1 else f"{where} ({capture})"
        return cls(names)

    def run(self, run: str) -> str:
        """Return a run, given as ``capture:run``, with the name of its capture."""
        capture, _, number = run.rpartition(":")
        return f"{self.names.get(capture, capture)}:{number}"

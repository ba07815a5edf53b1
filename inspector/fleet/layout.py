"""How a directory of tables is recognised: without loading what reads it, which would delay the first screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

KEY = ".key"
"""The file with the key of the hashes of parameters: there before any row is."""
CLOSED = ".closed"
"""The file that says that tables are closed."""
PARTS = "part-*.parquet"
"""The pattern of the names of parts."""


def has_tables(path: Path) -> bool:
    """Whether a path is a directory of tables; a copy of one may be without its key."""
    return (path / KEY).is_file() or any(path.glob(f"*/date=*/site=*/{PARTS}"))

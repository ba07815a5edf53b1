"""Put measured tables into the documentation, between markers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


def put(document: Path, marker: str, lines: Sequence[str]) -> None:
    """Replace what is between a document's comments ``NAME:begin PLACE`` and ``NAME:end PLACE``; ``marker`` is
    ``NAME:{} PLACE``."""
    begin, end = (f"<!-- {marker.format(what)} -->" for what in ("begin", "end"))
    before, _, rest = document.read_text().partition(begin)
    _, found, after = rest.partition(end)
    if not found:
        raise SystemExit(f"{document.name} has no place for {marker}")
    document.write_text("\n".join([before + begin, "", *lines, "", end + after]))

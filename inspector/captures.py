"""Where captures are, when nobody names one."""

from __future__ import annotations

from pathlib import Path

from inspector.errors import InspectorError

FOLDER = Path("captures")
"""Where a proxy records unless it is told otherwise."""


def newest() -> Path:
    """The capture in ``FOLDER`` that was written last. Raises InspectorError."""
    found = max(FOLDER.glob("*.sqlite"), key=written, default=None)
    if found is None:
        raise InspectorError(
            f"There is no capture in {FOLDER}/.", "Start the proxy here or `puppet-inspector demo`, or name a capture."
        )
    return found


def written(path: Path) -> float:
    """When a capture was last written to, also by a proxy that still does."""
    times = []
    for each in (path, path.with_name(f"{path.name}-wal")):
        try:
            times.append(each.stat().st_mtime)
        except OSError:
            continue
    return max(times, default=0.0)

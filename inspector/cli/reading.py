"""Read the whole messages behind findings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.capture.store import Capture
from inspector.summaries import whole_messages

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.model import Finding


def whole_message(capture: Path, finding: Finding | None) -> str | None:
    """Return the whole message behind a finding; None if its evidence contains none. Raises CaptureError."""
    with Capture.open(capture) as records:
        return whole_messages.of_finding(finding, records)

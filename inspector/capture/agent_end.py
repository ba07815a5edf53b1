"""How the agent ended that `run` started: an item of its capture's metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from inspector.capture.store import Capture

_ITEM = "agent_end"
_LONGEST = 200_000
"""Characters of the item: of a few captures that were merged."""


class AgentEnd(msgspec.Struct, frozen=True):
    """How an agent ended."""

    began: float
    ended: float
    """Both in seconds since the epoch, by the node's clock."""
    status: int
    """Its exit status; 128 plus the number of the signal that ended it."""
    lines: tuple[str, ...] = ()
    """Errors and warnings that it printed, with secrets masked; the first explains most if a message is known."""
    master_ahead: float | None = None
    """Seconds by which the master's clock is ahead of the node's; None if nobody asked."""


def write(capture: Capture, end: AgentEnd) -> None:
    """Set how the latest agent ended. Raises sqlite3.Error."""
    capture.set_meta([(_ITEM, msgspec.json.encode(end).decode())])


def read(capture: Capture) -> AgentEnd | None:
    """Return how the latest agent ended; None if `run` started none. Raises CaptureError."""
    text = capture.meta().get(_ITEM, "")[:_LONGEST]
    try:
        # In a merged capture there may be several, separated by commas.
        ends = msgspec.json.decode(f"[{text}]", type=list[AgentEnd])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
    return max(ends, key=lambda end: end.ended, default=None)

"""Recorded answers, and why some cannot be given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inspector.model import Exchange, Response

LONGEST = 600.0
"""Seconds that an answer is delayed at most: agents wait as long."""
REDIRECTS = (301, 302, 303, 307, 308)


@dataclass(frozen=True, slots=True)
class Answer:
    """A recorded answer."""

    seq: int
    response: Response | None
    """None: the connection ended without one, or it cannot be given."""
    delay: float
    """Seconds from the request to the answer."""
    trouble: str = ""
    """Why it cannot be given; empty if it can."""


def of(exchange: Exchange) -> Answer:
    """Return the answer of an exchange."""
    response = exchange.response
    if response is None:
        return Answer(exchange.seq, None, 0.0)
    delay = (response.started or 0.0) - (exchange.request.ended or response.started or 0.0)
    delay = min(max(delay, 0.0), LONGEST) if delay == delay else 0.0  # NaN
    if response.lost:
        trouble = f"only {len(response.body)} of its {response.size} bytes were recorded (puppet_keep_body)"
        return Answer(exchange.seq, None, delay, trouble)
    if response.status in REDIRECTS:
        return Answer(exchange.seq, None, delay, "it leads to another server")
    return Answer(exchange.seq, response, delay)

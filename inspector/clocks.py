"""Moments and durations as texts and as seconds, and how far the clocks of agent and master are from the proxy's.

Each observation bounds an offset from both sides (something happened after this and before that); all of
them together narrow it. What is never observed stays None.
"""

from __future__ import annotations

import datetime
import math
from dataclasses import dataclass

from inspector import regex
from inspector.remembering import remembered

_RUBY = regex.compile(r"(\d{4}-\d\d-\d\d)[ T](\d\d:\d\d:\d\d)(\.\d+)? ?(Z|UTC|[+-]\d\d:?\d\d)?")

MINUTE, HOUR, DAY = 60.0, 3600.0, 86_400.0
UNITS = {"s": 1.0, "m": MINUTE, "h": HOUR, "d": DAY, "w": 7 * DAY}
"""Seconds of each unit that a user can write."""
SKEW = 300.0
"""Seconds by which a CRL may begin in the future before agents refuse it (docs/protocol.md#clocks)."""
FIRST, LAST = -62_135_596_800.0, 253_402_300_799.0
"""The first and the last second that a calendar has (years 1 and 9999), since the epoch."""
LATEST = 9_000_000_000.0
"""The last second of which 63 bits can count the nanoseconds (the year 2255)."""


def date(time: float) -> datetime.datetime:
    """A moment's date, UTC; the nearest that there is for one beyond all calendars."""
    return datetime.datetime.fromtimestamp(max(FIRST, min(time, LAST)), datetime.UTC)


@dataclass(frozen=True, slots=True)
class Offset:
    """How far a clock is ahead of the proxy's: between ``low`` and ``high`` seconds."""

    low: float
    high: float

    @property
    def seconds(self) -> float:
        """The middle of what is possible."""
        return (self.low + self.high) / 2

    @property
    def known(self) -> bool:
        """False while only one side is bounded."""
        return math.isfinite(self.low) and math.isfinite(self.high)

    @property
    def uncertainty(self) -> float:
        """How far the truth may be from ``seconds``, to either side."""
        return (self.high - self.low) / 2

    def narrowed(self, other: Offset) -> Offset:
        """Return what both observations allow; only the other one if they contradict each other (the clock was set)."""
        low, high = max(self.low, other.low), min(self.high, other.high)
        return Offset(low, high) if low <= high else other


def combined(known: Offset | None, observed: Offset | None) -> Offset | None:
    """Return an offset narrowed by one more observation."""
    if known is None or observed is None:
        return observed or known
    return known.narrowed(observed)


def of_date_header(date: str | None, request_time: float | None, response_time: float | None) -> Offset | None:
    """The sender's clock by a response's ``Date`` (whole seconds), written between request and answer."""
    if not date or request_time is None or response_time is None or response_time < request_time:
        return None
    written = http_date(date)
    return None if written is None else Offset(written - response_time, written + 1 - request_time)


@remembered(1024)
def http_date(text: str) -> float | None:
    """A date of an HTTP header; None if it is none."""
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(text).timestamp()
    except (ValueError, TypeError, IndexError, OverflowError):
        return None


def of_timestamp(text: str | None, after: float | None, before: float | None) -> Offset | None:
    """The writer's clock by a time in a document that was written between two moments on the wire."""
    written = moment(text)
    if written is None or after is None or before is None or before < after:
        return None
    # Up to 3.x agents cut their seconds off.
    exact = "." in (text or "")
    return Offset(written - before, written - after + (0 if exact else 1))


def at_least(written: float | None, before: float | None) -> Offset | None:
    """The writer's clock by a time that was past for it when it wrote, which was before this moment here."""
    return None if written is None or before is None else Offset(written - before, math.inf)


def iso(text: str) -> float:
    """A date or a time in ISO 8601 (UTC by default). Raises ValueError, OverflowError."""
    time = datetime.datetime.fromisoformat(text)
    return (time if time.tzinfo else time.replace(tzinfo=datetime.UTC)).timestamp()


def moment(text: str | None) -> float | None:
    """A time as agents write it (ISO 8601, or Ruby's ``2014-01-31 10:00:00.123456789 +01:00``)."""
    found = _RUBY.match(text or "")
    if found is None:
        return None
    date, clock, fraction, zone = found.groups()
    zone = "+00:00" if zone in (None, "Z", "UTC") else zone
    try:
        return datetime.datetime.fromisoformat(f"{date}T{clock}{(fraction or '')[:7]}{zone}").timestamp()
    except (ValueError, OverflowError):
        return None


def nanoseconds(time: float | None) -> int:
    """Return a moment as nanoseconds since the epoch, exact to a microsecond, as the formats of other tools count; one
    that they cannot express is the nearest that they can, an unknown one 0."""
    if time is None or math.isnan(time):
        return 0
    return round(max(0.0, min(time, LATEST)) * 1e6) * 1000


def finite(duration: float) -> float:
    """A duration as JSON can hold it: a damaged capture may have any times."""
    return 0.0 if math.isnan(duration) else min(max(duration, FIRST), LAST)

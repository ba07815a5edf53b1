"""A line of puppetserver's access log, in the patterns that its versions came with (request-logging.xml).

Newest first; a later one ends earlier:

- ``%h %l %u [%t] "%r" %s %b "%i{Referer}" "%i{User-Agent}" %D %i{Content-Length} %mdc{jruby.borrow-time:--}``
- the same up to ``%i{Content-Length}``, and up to ``%D`` (since 2016)
- ``%h %l %u %user %date "%r" %s %b %h %a %localPort %D`` (before 2016)
- the common log format, ``%h %l %u [%t] "%r" %s %b``: it says nothing about time

What stands behind these fields is ignored, except a ``traceparent`` (``%i{traceparent}``), wherever it stands there.

Measured on puppetserver 7.9.5 (Jetty 9.4, logback-access): ``%t`` is when the answer was written, cut to the second.
``%D`` is in milliseconds, from the request's head to the last byte of the answer: it contains a slow upload, the wait
for a JRuby, and a slow download. ``jruby.borrow-time`` is in milliseconds too, for how long a JRuby was held: with a
slow upload, without a slow download and without the wait for it; ``-`` if none was.

The lines contain what agents sent: a path or a user agent may be made to look like other fields, of its own line only.
"""

from __future__ import annotations

import datetime
from functools import lru_cache
from typing import Final, Literal, NamedTuple

PATTERN = '%h %l %u [%t] "%r" %s %b "%i{Referer}" "%i{User-Agent}" %D %i{Content-Length} %mdc{jruby.borrow-time:--}'
"""The one of puppetserver 7."""
NO_JRUBY: Final = "none"
_NAMES = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_MONTHS = {name: at for at, name in enumerate(_NAMES, 1)}
_DIGITS = 12
"""Most digits of a number: milliseconds of thirty years."""
_DATED = 40
"""Most characters of a date."""
_HEXADECIMAL = frozenset("0123456789abcdef")
_TRACE = (2, 32, 16, 2)
"""Digits of the four parts of a traceparent (W3C Trace Context)."""


class AccessLine(NamedTuple):
    """A request as the master logged it."""

    time: float
    """When its answer was written, by the master's clock, cut to the second."""
    host: str
    """Who sent it: the proxy."""
    method: str
    target: str
    status: int
    sent: int | None
    """Bytes of the request's body; None: not known, or there was none."""
    took: float | None
    """``%D`` in seconds; None: the pattern does not have it."""
    held: float | Literal["none"] | None
    """For how many seconds a JRuby was held; ``NO_JRUBY``: none was; None: the pattern does not have it."""
    trace: str | None
    """The traceparent."""


def parse(line: str) -> AccessLine | None:
    """Return what a line says; None if it is in no known pattern. It takes linear time."""
    head, _, rest = line.rstrip("\r\n").partition('"')
    time = _dated(head)
    end = _end_of_request(rest)
    if time is None or end < 0:
        return None
    method, _, located = rest[:end].partition(" ")
    target = located.rpartition(" ")[0] or located
    status, _, more = rest[end + 2 :].partition(" ")
    _, _, tail = more.partition(" ")
    tail, trace = _without_trace(tail)
    took, sent, held = _measured(tail)
    return AccessLine(time, head.partition(" ")[0], method, target, int(status), sent, took, held, trace)


def dated(line: str) -> float | None:
    """Return when a line was written, long before all of it is parsed; None if it has no date."""
    return _dated(line[: line.find('"')])


def _dated(head: str) -> float | None:
    """Return the date before the request: in brackets, or the last two words."""
    opened, closed = head.rfind("["), head.rfind("]")  # an address may have brackets too
    text = head[opened + 1 : closed] if 0 <= opened < closed else " ".join(head[-_DATED:].split(" ")[-3:-1])
    return moment(text) if len(text) <= _DATED else None


@lru_cache(maxsize=64)
def moment(text: str) -> float | None:
    """Return the time of ``25/Nov/2026:13:18:25 +0000`` since the epoch; None if it is none."""
    date, _, zone = text.partition(" ")
    day, _, rest = date.partition("/")
    month, _, rest = rest.partition("/")
    numbers = [day, *rest.split(":"), zone[1:]]
    if len(numbers) != 6 or month not in _MONTHS or zone[:1] not in ("+", "-"):
        return None
    if not all(number.isascii() and number.isdecimal() and len(number) <= 4 for number in numbers):
        return None
    days, year, hours, minutes, seconds, offset = map(int, numbers)
    away = (offset // 100 * 60 + offset % 100) * (-60 if zone[0] == "-" else 60)
    try:
        began = datetime.datetime(year, _MONTHS[month], days, hours, minutes, min(seconds, 59), tzinfo=datetime.UTC)
    except ValueError:
        return None
    return began.timestamp() - away


def _end_of_request(rest: str) -> int:
    """Return where the quotation mark is that ends a request: a status follows it. -1: there is none."""
    at = rest.find('" ')
    while at >= 0:
        status = rest[at + 2 : at + 5]
        if len(status) == 3 and status.isascii() and status.isdecimal() and rest[at + 5 : at + 6] in (" ", ""):
            return at
        at = rest.find('" ', at + 1)
    return -1


def _without_trace(tail: str) -> tuple[str, str | None]:
    """Return what follows the answer's size without the last traceparent in it, and that."""
    words = tail.split(" ")
    for at in range(len(words) - 1, -1, -1):
        word = words[at].strip('"')
        if is_trace(word):
            return " ".join(words[:at] + words[at + 1 :]), word
    return tail, None


def is_trace(word: str) -> bool:
    """Whether a word is a traceparent."""
    if len(word) != sum(_TRACE) + 3:
        return False
    parts = word.split("-")
    return tuple(map(len, parts)) == _TRACE and _HEXADECIMAL.issuperset("".join(parts))


def _measured(tail: str) -> tuple[float | None, int | None, float | Literal["none"] | None]:
    """Return the time that a request took, the bytes of its body, and for how long it held a JRuby."""
    quoted = tail.rfind('"')
    words = tail[quoted + 1 :].split()
    if quoted < 0:
        words = words[3:4]  # host, address, port, %D
    took = _number(words[0]) if words else None
    sent = _number(words[1]) if len(words) > 1 else None
    held: float | Literal["none"] | None = None
    if len(words) > 2:
        milliseconds = _number(words[2])
        held = NO_JRUBY if words[2] == "-" else None if milliseconds is None else milliseconds / 1000
    return None if took is None else took / 1000, sent, held


def _number(word: str) -> int | None:
    return int(word) if word.isascii() and word.isdecimal() and len(word) <= _DIGITS else None

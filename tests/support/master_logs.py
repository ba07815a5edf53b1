"""Logs of a master, as puppetserver would have written them about recorded exchanges."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

from inspector.model import Exchange

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from inspector.model import Record

type Line = Callable[[str, str, str, str], str]


def _with(end: str) -> Line:
    def made(time: str, request: str, status: str, ms: str) -> str:
        agent = '"-" "Puppet/7.23.0 Ruby/3.1.2-p20 (x86_64-linux-gnu)"'
        return f'192.0.2.7 - - [{time}] "{request}" {status} 51 {agent} {end.format(ms=ms)}'

    return made


PATTERNS: dict[str, Line] = {
    "puppetserver 7": _with("{ms} - {ms}"),
    "without borrow-time": _with("{ms} 1682"),
    "since 2016": _with("{ms}"),
    "before 2016": lambda time, request, status, ms: (
        f'192.0.2.7 - - - {time} "{request}" {status} 51 192.0.2.7 192.0.2.8 8140 {ms}'
    ),
    "common": lambda time, request, status, ms: f'192.0.2.7 - - [{time}] "{request}" {status} 51',
    "with more": _with("{ms} - {ms} 17 something"),
}
"""How a line looks: of the time, the request, the status and the milliseconds that it took."""


def clf(time: float, zone: int = 0) -> str:
    """A time as the access log has it, in a zone so many hours ahead."""
    there = datetime.timezone(datetime.timedelta(hours=zone))
    return datetime.datetime.fromtimestamp(time, there).strftime("%d/%b/%Y:%H:%M:%S %z")


def took(exchange: Exchange) -> float:
    """For how long the proxy waited for a master, or received from it: at most what the master can have logged."""
    return max(0.0, exchange.ended - (exchange.request.ended or exchange.time))


def access_line(
    exchange: Exchange, *, ahead: float = 0.0, queue: float = 0.0, pattern: str = "", zone: int = 0, more: str = ""
) -> str:
    """The line of an exchange, by a clock that is ahead; ``queue`` seconds of its time it waited for a JRuby."""
    request, response = exchange.request, exchange.response
    assert response
    time, whole = clf(exchange.ended + ahead, zone), took(exchange)
    line = f"{request.method} {request.target} HTTP/1.1"
    ms = f"{whole * 1000:.0f}"
    if pattern:
        return PATTERNS[pattern](time, line, str(response.status), ms)
    held = f"{max(0.0, whole - queue) * 1000:.0f}"
    sent = len(request.body) or "-"
    return f'192.0.2.7 - - [{time}] "{line}" {response.status} 51 "-" "Puppet/7" {ms} {sent} {held}{more}'


def server_line(time: float, message: str) -> str:
    """A line of the server log."""
    return logged(time, f"Puppet {message}", "INFO", thread=57)


def logged(time: float, text: str, level: str = "ERROR", *, thread: int = 50, zone: int = 0) -> str:
    """A line of any text, level and thread, and what follows it; the zone is so many hours ahead."""
    there = datetime.timezone(datetime.timedelta(hours=zone))
    date = datetime.datetime.fromtimestamp(time, there).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    return f"{date} {level:<5} [qtp1646369420-{thread}] [puppetserver] {text}"


def answered(records: Iterable[Record]) -> list[Exchange]:
    """The exchanges that a master's access log has a line of, in the order of their ends."""
    found = [record for record in records if isinstance(record, Exchange) and record.response]
    return sorted(found, key=lambda exchange: exchange.ended)


def write(path: Path, lines: Iterable[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines))
    return path

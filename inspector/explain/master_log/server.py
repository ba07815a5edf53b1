"""A line of puppetserver's own log (puppetserver.log): its parts, and what it says about where time went.

Of the latter two are known: ``Compiled catalog for NODE in environment ENVIRONMENT in 1.23 seconds``, written when the
compiler is done and the answer is not yet (``puppet/indirector/catalog/compiler.rb``), and ``Error 503 on SERVER at
PATH: ...``, written when a request was turned away: no JRuby became free in time (``borrow-timeout``), or too many
waited already (``max-queued-requests``; both in ``puppetlabs/puppetserver/jruby_request.clj``).

The pattern (logback.xml) is ``%d{yyyy-MM-dd'T'HH:mm:ss.SSSXXX} %-5p [%t] [%c{2}] %m%n``, before puppetserver 5
``%d %-5p [%t] [%c{2}] %m%n``: without a zone, which is read as UTC. A message may contain line feeds that an agent
sent, so a line may be forged; what it says is never taken to be more than was measured on the wire.
"""

from __future__ import annotations

from typing import NamedTuple

from inspector import clocks, regex

PATTERN = "%d{yyyy-MM-dd'T'HH:mm:ss.SSSXXX} %-5p [%t] [%c{2}] %m%n"
_HEAD = regex.compile(
    r"(\d{4}-\d\d-\d\d[T ](\d\d:\d\d:\d\d)[.,]\d{3}(?:Z|[+-]\d\d:\d\d)?) +([A-Z]+) +\[([^\]]*)\] \[[^\]]*\] "
)
_LONGEST = 200
"""Most characters before a message."""
_COMPILED = regex.compile(
    r"(?:Puppet )?Compiled (?:static )?catalog for (\S+)(?: in environment (\S+))?"
    r" in (\d{1,9}(?:\.\d{1,9})?) seconds"
)
_REFUSED = regex.compile(r"Error 503 on SERVER at (\S+): .*JRuby")


class Entry(NamedTuple):
    """A line that begins an entry; further lines of its message follow it."""

    time: float
    """When it was written, by the master's clock."""
    clock: str
    """The time of day as it is written, to the second: by this it is found in the log."""
    level: str
    thread: str
    """Each request is worked on by one thread, which takes the next one after it."""
    text: str


class Compiled(NamedTuple):
    """A catalog was compiled."""

    time: float
    """When, by the master's clock."""
    certname: str
    environment: str | None
    took: float
    """Seconds."""


class Refused(NamedTuple):
    """A request was turned away because no JRuby was free."""

    time: float
    path: str


type ServerLine = Compiled | Refused


def parse(line: str) -> ServerLine | None:
    """Return what a line says about time; None if nothing."""
    if "Compiled " in line and (written := entry(line)) and (found := _COMPILED.match(written.text)):
        return Compiled(written.time, found[1] or "", found[2], float(found[3] or 0))
    if "Error 503 " in line and (written := entry(line)) and (found := _REFUSED.match(written.text)):
        return Refused(written.time, found[1] or "")
    return None


def entry(line: str) -> Entry | None:
    """Return the parts of a line; None if it does not begin as the pattern does."""
    found = _HEAD.match(line[:_LONGEST])
    time = clocks.moment(found[1].replace(",", ".")) if found else None
    if found is None or time is None:
        return None
    return Entry(time, found[2], found[3], found[4], line[found.end() :].rstrip("\r\n"))


def dated(line: str) -> float | None:
    """Return when a line was written; None if it does not begin as the pattern does."""
    found = entry(line)
    return found.time if found else None

"""A line of puppetserver's own log (puppetserver.log) that says where time went.

Two are known: ``Compiled catalog for NODE in environment ENVIRONMENT in 1.23 seconds``, written when the compiler is
done and the answer is not yet (``puppet/indirector/catalog/compiler.rb``), and ``Error 503 on SERVER at PATH: ...``,
written when a request was turned away: no JRuby became free in time (``borrow-timeout``), or too many waited already
(``max-queued-requests``; both in ``puppetlabs/puppetserver/jruby_request.clj``).

The pattern (logback.xml) is ``%d{yyyy-MM-dd'T'HH:mm:ss.SSSXXX} %-5p [%t] [%c{2}] %m%n``, before puppetserver 5
``%d %-5p [%t] [%c{2}] %m%n``: without a zone, which is read as UTC. A message may contain line feeds that an agent
sent, so a line may be forged; what it says is never taken to be more than was measured on the wire.
"""

from __future__ import annotations

from typing import NamedTuple

from inspector import clocks, regex

PATTERN = "%d{yyyy-MM-dd'T'HH:mm:ss.SSSXXX} %-5p [%t] [%c{2}] %m%n"
_HEAD = r"(\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.,]\d{3}(?:Z|[+-]\d\d:\d\d)?) +[A-Z]+ +\[[^\]]*\] \[[^\]]*\] "
_LINE = regex.compile(_HEAD)
_COMPILED = regex.compile(
    _HEAD
    + r"(?:Puppet )?Compiled (?:static )?catalog for (\S+)(?: in environment (\S+))?"
    + r" in (\d{1,9}(?:\.\d{1,9})?) seconds"
)
_REFUSED = regex.compile(_HEAD + r"Error 503 on SERVER at (\S+): .*JRuby")


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
    if "Compiled " in line and (found := _COMPILED.match(line)):
        time = _moment(found[1])
        return None if time is None else Compiled(time, found[2] or "", found[3], float(found[4] or 0))
    if "Error 503 " in line and (found := _REFUSED.match(line)):
        time = _moment(found[1])
        return None if time is None else Refused(time, found[2] or "")
    return None


def dated(line: str) -> float | None:
    """Return when a line was written; None if it does not begin as the pattern does."""
    found = _LINE.match(line[:200])
    return _moment(found[1]) if found else None


def _moment(text: str | None) -> float | None:
    return clocks.moment((text or "").replace(",", "."))

"""The logs of masters, read for what they say about the requests of a capture (``explain/master_log``)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from inspector import inputs
from inspector.capture.store import Capture
from inspector.clocks import SKEW
from inspector.errors import InspectorError
from inspector.explain import time_split
from inspector.explain.master_log import access, server
from inspector.explain.master_log.matching import Logged, Matching, Wanted
from inspector.explain.master_log.measured import NOTHING, MasterTime, MasterTimes
from inspector.model import Exchange
from inspector.progress import unwatched, watched
from inspector.protocol.kinds import Kind
from inspector.summaries import listing
from inspector.summaries.indexed import IndexedCapture
from inspector.text import clean, plural, seconds, utc_second

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from inspector.explain.master_log.access import AccessLine
    from inspector.explain.master_log.matching import Assigned
    from inspector.explain.master_log.server import ServerLine
    from inspector.explain.time_split import RunTime
    from inspector.progress import Watch
    from inspector.summaries.summary import Brief

RETURNED = 503
"""The status of a request that is turned away because no JRuby is free (or the master stops)."""
DATED = 5.0
"""Seconds by which a log's clock may differ from that of the dates of answers: it is the same one. Without dates it may
be ``SKEW``; but then the lines of another run, a minute later, are not told from those of this one."""
NOTABLE = 1.0
"""Seconds by which clocks differ, from which on a note says so."""
ACCESS_WHERE = "The pattern in use is in request-logging.xml, which access-log-config in webserver.conf names."
SERVER_WHERE = "The pattern in use is in logback.xml, which logging-config in global.conf names."


class MasterLogs(NamedTuple):
    """The logs that a user names."""

    access: Sequence[Path] = ()
    server: Sequence[Path] = ()


def check(logs: MasterLogs) -> None:
    """Raise InspectorError if a log cannot be opened."""
    for path in (*logs.access, *logs.server):
        try:
            with inputs.opened(path):
                pass
        except OSError as error:
            raise unreadable(path, error) from error


def read(capture: Path, logs: MasterLogs, watch: Watch = unwatched) -> MasterTimes:
    """Return what logs say about the requests of a capture. Raises InspectorError, also if no line is about any."""
    if not (logs.access or logs.server):
        return NOTHING
    return _Reading(capture, watch).times(logs)


def run_times(capture: Path, times: MasterTimes, watch: Watch = unwatched) -> Iterator[tuple[int, RunTime]]:
    """Yield where the time of each run went, and of each of its records, by the run's number; 0 has the records that
    are in no run. Without logs (``NOTHING``) it is what the proxy measured. Raises InspectorError."""
    with IndexedCapture.whole(capture) as indexed:
        if indexed is not None:
            for run in indexed.runs:
                yield run.number, time_split.of_run(indexed.briefs(run.number), times)
    by_run: dict[int, list[Brief]] = {}
    for brief, owner in listing.listed(capture, "", watch):
        number = owner.number if owner else 0
        if indexed is None or not number:
            by_run.setdefault(number, []).append(brief)
    for number, briefs in by_run.items():
        yield number, time_split.of_run(briefs, times)


class _Reading:
    """A capture, and what is looked for in logs."""

    def __init__(self, capture: Path, watch: Watch) -> None:
        self._capture, self._watch = capture, watch
        self._requests: Matching[AccessLine] = Matching(1.0)
        self._catalogs: Matching[ServerLine] = Matching(0.001, within=True)
        self._worked_on: set[int] = set()
        """Requests for catalogs."""
        self._answered = 0
        """Requests with an answer."""
        self._first, self._last = math.inf, -math.inf
        ahead: dict[int, float] = {}
        for brief, run in listing.listed(capture, "", watch):
            if run and (offset := run.clocks.get("master")) and offset.known:
                ahead[run.number] = offset.seconds
            self._want(brief)
        self._expected = median(ahead.values()) if ahead else 0.0
        """By how many seconds the master's clock is ahead, by the dates of its answers."""
        off = max((abs(seconds - self._expected) for seconds in ahead.values()), default=SKEW)
        self._reach = min(SKEW, DATED + off)
        """By how many seconds more or less a log's clock may be."""
        self._requests.prepare()
        self._catalogs.prepare()

    def _want(self, brief: Brief) -> None:
        if brief.kind != "exchange" or brief.status is None or not math.isfinite(brief.time + brief.ended):
            return
        if brief.master is None and not brief.imported:
            return  # the proxy answered
        self._answered += 1
        self._first, self._last = min(self._first, brief.time), max(self._last, brief.ended)
        times = (brief.seq, brief.time, max(brief.time, brief.ended))
        self._requests.add((brief.method, brief.target, brief.status), Wanted(*times, brief.sent))
        if brief.request_kind is Kind.CATALOG and brief.status == 200:
            name = unquote(brief.target.partition("?")[0].rpartition("/")[2])
            self._catalogs.add(("compiled", name), Wanted(*times))
            self._worked_on.add(brief.seq)
        elif brief.status == RETURNED:
            self._catalogs.add(("refused", brief.target.partition("?")[0]), Wanted(*times))

    def times(self, logs: MasterLogs) -> MasterTimes:
        """Return what logs say. Raises InspectorError."""
        requests = [LogFile(path, self._access, access.PATTERN, ACCESS_WHERE) for path in logs.access]
        catalogs = [LogFile(path, self._server, server.PATTERN, SERVER_WHERE) for path in logs.server]
        answers = self._matched(self._requests, requests)
        compiled = self._matched(self._catalogs, catalogs)
        if not answers.lines and not compiled.lines and self._answered:
            raise self._nothing([*requests, *catalogs])
        made = {
            seq: self._time(seq, answers.lines.get(seq), compiled.lines.get(seq))
            for seq in sorted(answers.lines.keys() | compiled.lines.keys())
        }
        notes = [*self._notes(requests, answers), *self._compiler_notes(catalogs, compiled)]
        return MasterTimes(made, tuple(notes), tuple(_file_notes([*requests, *catalogs])))

    # -- lines --------------------------------------------------------------------------------------------

    def _access(self, line: str) -> tuple[float, Logged[object] | None] | None:
        time = access.dated(line)
        if time is not None and not self._near(time):
            return time, None
        entry = access.parse(line)
        if entry is None:
            return None
        key = (entry.method, entry.target, entry.status)
        if not self._requests.wants(key):
            return entry.time, None
        return entry.time, Logged(key, entry.time, entry, entry.took, entry.sent, entry.trace)

    def _server(self, line: str) -> tuple[float, Logged[object] | None] | None:
        entry = server.parse(line)
        if entry is None:
            # Messages have further lines, which begin with anything.
            time = server.dated(line)
            return None if time is None else (time, None)
        if isinstance(entry, server.Refused):
            return entry.time, Logged(("refused", entry.path), entry.time, entry)
        return entry.time, Logged(("compiled", entry.certname), entry.time, entry, entry.took)

    def _near(self, time: float) -> bool:
        """Whether a moment, by a log's clock, may be one of the capture's."""
        return self._first - self._reach <= time - self._expected <= self._last + self._reach

    def _matched[Line](self, matching: Matching[Line], logs: Sequence[LogFile]) -> Assigned[Line]:
        """Match the lines of logs, in two passes over each. Raises InspectorError."""
        traced = False

        def near(log: LogFile) -> Iterator[Logged[Any]]:
            nonlocal traced
            for time, logged in log.logged(self._watch):
                log.first, log.last = min(log.first, time), max(log.last, time)
                if logged and self._near(time):
                    traced |= logged.trace is not None
                    yield logged

        def around(log: LogFile, difference: float) -> Iterator[Logged[Any]]:
            log.within = 0
            for time, logged in log.logged(self._watch):
                log.within += self._first - 1 <= time - difference <= self._last + 1
                if logged and self._near(time):
                    yield logged

        for log in logs:
            log.difference = matching.difference(near(log), self._expected, self._reach)
        if traced:
            traces = _traces(self._capture, self._watch)
            for wanted in matching.every():
                wanted.trace = traces.get(wanted.seq)
        for log in logs:
            if log.difference is not None:
                matching.note(around(log, log.difference), log.difference)
        return matching.assigned()

    # -- what they say ------------------------------------------------------------------------------------

    def _time(self, seq: int, line: AccessLine | None, entry: ServerLine | None) -> MasterTime:
        compiled = entry.took if isinstance(entry, server.Compiled) else None
        refused = isinstance(entry, server.Refused)
        if line is None or line.took is None:
            return MasterTime(compiled=compiled, refused=refused)
        if line.held == access.NO_JRUBY:
            # No JRuby was held: the web server answered, or it was waited for one in vain.
            refused |= line.status == RETURNED
            return MasterTime(line.took, line.took, refused=refused)
        if compiled is None and seq in self._worked_on:
            compiled = line.held
        return MasterTime(line.took, line.held, compiled, refused=refused)

    def _nothing(self, logs: Sequence[LogFile]) -> InspectorError:
        """Return the error that no line is about a recorded request."""
        known = [log for log in logs if log.first <= log.last]
        names = " and ".join(clean(str(log.path)) for log in logs)
        if not known:
            return InspectorError(f"There are no lines in {names}.", "Give the logs of the capture's time.")
        first, last = min(log.first for log in known), max(log.last for log in known)
        return InspectorError(
            f"No line of {names} is about a request of {self._capture}: the lines are of {_span(first, last)}, the "
            f"requests of {_span(self._first, self._last)}.",
            "Give the logs of the master that answered these requests, of that time; rotated ones end in .gz. "
            f"Its clock may differ by {seconds(self._reach)} from what the dates of its answers show.",
        )

    def _notes(self, logs: Sequence[LogFile], found: Assigned[AccessLine]) -> Iterator[str]:
        if not logs:
            return
        covered = [
            wanted
            for wanted in self._requests.every()
            if any(
                log.difference is not None and log.first - 1 <= wanted.ended + log.difference <= log.last + 2
                for log in logs
            )
        ]
        matched, outside = len(found.lines), self._answered - len(covered)
        more = [f"{found.exact} of them by their traceparent"] if found.exact else []
        more += [f"{found.by_duration} of them only by their duration"] if found.by_duration else []
        yield f"Access log: {matched} of {plural(self._answered, 'request')} found in it{', '.join(['', *more])}."
        missing = self._answered - matched - outside
        if outside > 0:
            yield f"{plural(outside, 'request')} before or after what the access log covers."
        if missing > 0:
            several = f", of which {found.ambiguous} fit several lines alike" if found.ambiguous else ""
            yield f"{plural(missing, 'request')} without a line in the access log{several}."
        if others := sum(log.within for log in logs) - matched:
            yield f"{plural(others, 'line')} of the access log about requests that were not recorded."
        if lines := [line for line in found.lines.values() if line.took is None]:
            yield f"{plural(len(lines), 'line')} of the access log without %D: nothing about time."
        elif found.lines and all(line.held is None for line in found.lines.values()):
            yield "The access log has no jruby.borrow-time: what was queue and what was work is not known."

    def _compiler_notes(self, logs: Sequence[LogFile], found: Assigned[ServerLine]) -> Iterator[str]:
        if not logs:
            return
        compiled = sum(isinstance(line, server.Compiled) for line in found.lines.values())
        yield f"Server log: {compiled} of {plural(len(self._worked_on), 'catalog')} found in it."
        if found.ambiguous:
            yield f"{plural(found.ambiguous, 'request')} fit several lines of the server log alike."


def _file_notes(logs: Sequence[LogFile]) -> Iterator[str]:
    for log in logs:
        name = clean(log.path.name)
        if log.difference is None:
            yield f"No line of {name} is about these requests."
        elif abs(log.difference) >= NOTABLE:
            way = "ahead of" if log.difference > 0 else "behind"
            yield f"The clock of {name} is {abs(log.difference):.1f} s {way} the proxy's."
        # Messages of the server log have further lines.
        if log.unknown and log.pattern == access.PATTERN:
            yield f"{plural(log.unknown, 'line')} of {name} in no known pattern, the first is line {log.first_unknown}."


def _traces(capture: Path, watch: Watch) -> Mapping[int, str]:
    """Return the traceparents of a capture's requests, by record number."""
    found = {}
    with Capture.open(capture) as records:
        for record in watched(records.records(), watch, records.count()):
            if isinstance(record, Exchange) and (trace := record.request.header("traceparent")):
                found[record.seq] = trace.strip()
    return found


def _span(first: float, last: float) -> str:
    return f"{utc_second(first)} to {utc_second(last)} UTC"


# -- the lines of a log --------------------------------------------------------------------------------

TRIED = 1000
"""Lines of which at least one must be in a known pattern."""
STEP = 2**12
"""Lines between two reports of progress."""


@dataclass(slots=True)
class LogFile:
    """A log, and what is found out about it."""

    path: Path
    parse: Callable[[str], tuple[float, Logged[object] | None] | None]
    """Returns when a line was written, and it if it may be about a request; None if it is in no known pattern."""
    pattern: str
    where: str
    lines: int = 0
    unknown: int = 0
    """Lines in no known pattern."""
    first_unknown: int = 0
    first: float = math.inf
    last: float = -math.inf
    difference: float | None = None
    within: int = 0
    """Lines about requests in the time of the capture."""

    def logged(self, watch: Watch) -> Iterator[tuple[float, Logged[object] | None]]:
        """Yield what its lines say, and count them anew. Raises InspectorError."""
        self.lines = self.unknown = self.first_unknown = 0
        try:
            size = self.path.stat().st_size
            for line, at in inputs.lines(self.path):
                self.lines += 1
                if self.lines % STEP == 0:
                    watch(min(at, size), size, f"reading {clean(self.path.name)}, byte")
                entry = self.parse(line.decode("latin-1"))
                if entry is not None:
                    yield entry
                    continue
                self.unknown += 1
                self.first_unknown = self.first_unknown or self.lines
                if self.unknown == self.lines == TRIED:
                    break
        except OSError as error:
            raise unreadable(self.path, error) from error
        if self.lines and self.unknown == self.lines:
            raise InspectorError(
                f"{self.path} is in no known pattern: line {self.first_unknown}"
                f"{f', and {self.lines - 1} more' if self.lines > 1 else ''}.",
                f"Known is {self.pattern} (and older ones, docs/times.md). {self.where}",
            )


def unreadable(path: Path, error: OSError) -> InspectorError:
    """Return the error that a log cannot be read."""
    return InspectorError(
        f"Cannot read {path}: {error.strerror or error}.", "Give a log of puppetserver, compressed or not."
    )

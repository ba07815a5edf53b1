"""Errors and warnings in a master's own log (puppetserver.log) at the moment of what failed in a run, for its verdict.

An answer often has only half of the cause: why a request waits to be signed, which rule refused it, or what the server
did not reach stands in the log. A line is about a failed request if it was written at its moment, and names the node
or the request, or if the same thread wrote one that does; else, if it was written as the answer was, and names no other
node. The clocks are compared by the dates of the master's answers.

A log may have gigabytes, and what agents sent is in it: it is read around these moments only, in linear time, and what
is quoted is masked, without control characters, and without the call stack.
"""

from __future__ import annotations

import contextlib
import math
import shlex
from bisect import bisect_right
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from inspector import clocks, inputs, regex
from inspector.analysis import known_errors
from inspector.capture.store import Capture
from inspector.errors import CaptureError, InspectorError
from inspector.explain.master_log import server
from inspector.formats import master_logs
from inspector.host import serverconf
from inspector.model import Exchange, Handshake
from inspector.privacy import redact
from inspector.protocol import endpoints
from inspector.protocol.kinds import Kind
from inspector.rules.fixes import Host, advice, on_master
from inspector.rules.puppet_commands import fill
from inspector.text import brief, clean, essence

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

    from inspector.explain.master_log.server import Entry
    from inspector.model import Record
    from inspector.rules.fixes import Fix
    from inspector.summaries.index import IndexedRun
    from inspector.summaries.judgement import NodeVerdict

PLACES = (Path("/var/log/puppetlabs/puppetserver"), Path("/var/log/puppetserver"))
"""Where packages let the server write its logs: official ones and OpenVox's, and Debian's."""
MOST = 3
"""Lines that are quoted with one verdict."""
LINE = 240
"""Characters of a quoted line, and of each exception that follows it."""
NEAR = 1.0
"""Seconds by which a line may be off, beyond what is not known of the clocks."""
VERDICTS = 100
"""Verdicts, the worst first, for which lines are looked for."""
RECORDS, MOMENTS = 150, 20
"""Records of a run that are looked at, of its first ones and of its last ones, and moments that are looked for."""
READ = 2**24
"""Bytes of a log that are read for one stretch of time."""
_BLOCK = 2**16
"""Bytes of a log within which a stretch is not looked for any more, but read."""
_UNDATED = 2**22
"""Bytes of it that are read to find the next line with a date."""
_MINUTE = len("2026-11-27T10:12")
_LONGEST = 4000
"""Characters of a line that are looked at."""
_CAUSES = 2
"""Exceptions that are quoted with one line."""
_CANDIDATES = 50
"""Errors about one verdict, and as many warnings, of which those to quote are chosen."""
_GRAVE = frozenset({"ERROR", "FATAL"})
_LEVELS = _GRAVE | {"WARN"}
_LOG = regex.compile(r"puppetserver(?:\.log|-\d{4}-\d\d-\d\d).*")
"""The log and its rotated files, and not those of access and status."""
_EXCEPTION = regex.compile(r"(?:Caused by: )?(?:[a-z_]\w*\.)+[A-Z][\w$]*(?:: |\s*$)")
"""How the lines of a call stack begin that say what went wrong."""
_NODES = regex.compile(
    r"(?: on node |Forbidden request: |certname=|/nodes/|/puppet/v3/(?:catalog|node|facts|report)/"
    r"|/puppet-ca/v1/certificate(?:_request|_status)?/)([A-Za-z0-9][A-Za-z0-9._-]*)"
    r"|(?:catalog|command|facts|node|report|request|certificate) (?:for )?'?"
    r"([A-Za-z0-9][A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+)+)"
)
"""The node that a line is about."""
_SAYS = regex.compile(r"^Puppet ")
_DENIED = regex.compile(r".*denied by rule '(.+)'")
_LAST = "deny all"
"""How the name of the rule ends that refuses what no other allows."""


class Quote(NamedTuple):
    """A line of a log, masked."""

    log: Path
    time: float
    """By the master's clock."""
    clock: str
    """The time of day as the log has it."""
    level: str
    text: str
    """The line without its head, and the exceptions that follow it; shortened in the middle."""
    meaning: str = ""
    """What it means, if it is a known message with something to do on the master."""
    steps: Fix = ()
    """What to do then."""


def usual() -> list[Path]:
    """Return the logs of a master on this host, as far as this user finds any."""
    found: list[Path] = []
    for place in PLACES:
        with contextlib.suppress(OSError):
            found += [path for path in sorted(place.iterdir()) if _LOG.fullmatch(path.name)]
    return found


def quotes(
    agents: Sequence[NodeVerdict],
    runs: Mapping[tuple[Path, int], IndexedRun],
    named: Sequence[Path],
) -> dict[tuple[Path, int], list[Quote]]:
    """Return what logs say about verdicts that hold now, by capture and run. Without logs that were ``named`` those
    of this host are read, if there are any.

    Raises InspectorError if a named log cannot be read.
    """
    master_logs.check(master_logs.MasterLogs(server=named))
    logs = named or usual()
    if not logs:
        return {}
    cases = [case for agent in agents[:VERDICTS] if agent.current and (case := _case(agent, runs))]
    stretches = _stretches(cases)
    if not stretches:
        return {}
    for log in logs:
        try:
            if named or log.stat().st_mtime >= stretches[0].begin:
                _read(log, stretches)
            if named and _first_date(log, 0, math.inf) is None and log.stat().st_size:
                hint = f"Known is {server.PATTERN} (docs/times.md). {master_logs.SERVER_WHERE}"
                raise InspectorError(f"{log} is in no known pattern: none of its lines begins with a date.", hint)
        except OSError as error:
            if named:
                raise master_logs.unreadable(log, error) from error
    found = {(case.agent.capture, case.agent.run.number): case.quotes() for case in cases if case.found}
    return {key: quoted for key, quoted in found.items() if quoted}


# -- what failed, and when ------------------------------------------------------------------------------


class _Moment(NamedTuple):
    """When something failed, by the master's clock."""

    begin: float
    answered: float
    """From when on its answer may have been written; infinity if nothing failed then."""
    end: float
    path: str
    """Of the request; empty if it is none."""

    def away(self, time: float) -> float:
        """Return how many seconds a time is from when the answer was most likely written."""
        return abs(time - (self.answered + self.end) / 2)


class _Found(NamedTuple):
    """A line at such a moment."""

    log: Path
    entry: Entry
    causes: tuple[str, ...]
    named: bool
    """It names the node or the request."""
    away: float
    """Seconds from when an answer was written; infinity if there is none at its moment."""

    @property
    def grave(self) -> bool:
        """Whether it is an error, or has an exception."""
        return self.entry.level in _GRAVE or bool(self.causes)

    @property
    def lines(self) -> tuple[str, ...]:
        """The message and the exceptions."""
        return (self.entry.text, *self.causes)


@dataclass(slots=True, eq=False)
class _Case:
    """A verdict, and the lines that may be about it."""

    agent: NodeVerdict
    moments: list[_Moment]
    secrets: Collection[str]
    """What must not be quoted."""
    threads: set[tuple[Path, str]] = field(default_factory=set)
    """Those that wrote a line which names the node or a failed request."""
    found: list[_Found] = field(default_factory=list)

    def take(self, log: Path, entry: Entry, causes: tuple[str, ...]) -> None:
        """Keep a line that may be about what failed."""
        moments = [moment for moment in self.moments if moment.begin <= entry.time <= moment.end]
        if not moments:
            return
        named = _names(entry.text, self.agent.name)
        named = named or any(moment.path in entry.text for moment in moments if moment.path)
        if named and not self._of_another(entry.text):
            self.threads.add((log, entry.thread))
        away = (moment.away(entry.time) for moment in moments if moment.answered <= entry.time)
        one = _Found(log, entry, causes, named, min(away, default=math.inf))
        if entry.level in _LEVELS and sum(other.grave == one.grave for other in self.found) < _CANDIDATES:
            self.found.append(one)

    def _of_another(self, text: str) -> bool:
        """Whether a line is about another node."""
        nodes = [node.rstrip(".") for found in _NODES.finditer(text) if (node := found[1] or found[2])]
        return bool(nodes) and self.agent.name not in nodes

    def quotes(self) -> list[Quote]:
        """Return the lines to quote, in the order of time: those that say more than the verdict and the others."""
        possible = [found for found in self.found if not self._of_another(found.entry.text)]
        about = [found for found in possible if found.named or (found.log, found.entry.thread) in self.threads]
        about.sort(key=lambda found: (not found.grave, found.entry.time))
        near = [found for found in possible if found.grave and math.isfinite(found.away)]
        chosen: list[tuple[str, Quote]] = []
        for found in about or sorted(near, key=lambda found: found.away):
            core = essence(_SAYS.sub("", "; ".join(found.lines)))
            if len(chosen) < MOST and not any(core in other or other in core for other, _ in chosen):
                quote = self._quote(found)
                if quote.steps or found.causes or not self._says(core):
                    chosen.append((core, quote))
        ordered = sorted((quote for _, quote in chosen), key=lambda quote: quote.time)
        explained = [quote.meaning for quote in ordered]
        # What several lines mean is printed once.
        return [
            quote._replace(meaning="", steps=()) if quote.meaning in explained[:at] else quote
            for at, quote in enumerate(ordered)
        ]

    def _says(self, core: str) -> bool:
        """Whether the verdict says it already."""
        reason = self.agent.verdict.reason
        return core in reason or brief(core) in reason

    def _quote(self, found: _Found) -> Quote:
        lines = [clean(redact.quoted(redact.text(line), self.secrets)) for line in found.lines]
        text = "; ".join(lines)
        meaning, steps = _refused(text) or self._known(text)
        entry, shown = found.entry, "; ".join(line if len(line) <= LINE else brief(line, LINE) for line in lines)
        return Quote(found.log, entry.time, entry.clock, entry.level, shown, meaning, steps)

    def _known(self, text: str) -> tuple[str, Fix]:
        """Return what a line means, and its fix; nothing of what surrounds a reason, and of what an agent prints about
        its own connections."""
        found = known_errors.find(text)
        if found is None or found.known.frame:
            return "", ()
        steps = fill(known_errors.filled(found.known.fix, text), self.agent.run.fix_context)
        if any(step.on is Host.NODE for step in steps):
            return "", ()
        # No line proves that something has to be deleted or revoked.
        harmless = tuple(step for step in steps if not step.destroys)
        return (found.known.meaning, harmless) if harmless else ("", ())


def _refused(text: str) -> tuple[str, Fix] | None:
    """Return what it means that a rule of auth.conf refused a request; None if the last one did, which refuses all that
    no other allows."""
    found = _DENIED.match(text)
    if found is None or found[1].endswith(_LAST):
        return None
    files = " ".join(str(place / "auth.conf") for place in serverconf.PLACES)
    look = on_master("look at the rule", f"grep -n -B9 -F -e {shlex.quote(found[1])} {files}")
    reload = on_master("let it read the file", "systemctl reload puppetserver", only_if="it was changed")
    allow = advice("allow the node in it, or put a rule that does before it", only_if="the node may have it")
    return f"A rule of the master's auth.conf refuses the request: {found[1]}.", (look, allow, reload)


def _case(agent: NodeVerdict, runs: Mapping[tuple[Path, int], IndexedRun]) -> _Case | None:
    """Return a verdict with the moments that are looked for; None if there is none."""
    run, indexed = agent.run, runs.get((agent.capture, agent.run.number))
    if indexed is None:
        return None
    shown = set(run.cause_found.seqs[:MOMENTS]) if run.cause_found else set()
    numbers = sorted(shown.union(indexed.seqs[:RECORDS], indexed.seqs[-RECORDS:]))
    try:
        with Capture.open(agent.capture) as capture:
            records = [record for seq in numbers if (record := capture.record(seq))]
    except CaptureError:  # the verdict needs no log
        return None
    # Why a request was not signed at once, its answer does not say.
    asked = [record for record in records if run.outcome == "waiting" and _asks(record)]
    failed = [record for record in records if _fails(record, proves=record.seq in shown)]
    # Of the cause, or else anything that failed, or else what shows the cause, or how the run ended.
    failed = asked + [record for record in failed if record.seq in shown] or failed
    chosen = (failed or [record for record in records if record.seq in shown] or records[-1:])[:MOMENTS]
    exchanges = (record for record in chosen if isinstance(record, Exchange))
    secrets = frozenset(secret for record in exchanges for secret in redact.quotable(record))
    offset = run.clocks.get("master")
    low, high = (offset.low, offset.high) if offset and offset.known else (0.0, 0.0)
    moments = [
        _Moment(
            record.time + low - NEAR,
            record.ended + low - NEAR if failed else math.inf,
            record.ended + high + NEAR,
            record.request.path if isinstance(record, Exchange) else "",
        )
        for record in chosen
    ]
    return _Case(agent, moments, secrets) if moments else None


def _asks(record: Record) -> bool:
    """Whether a record is a request to be signed."""
    if not isinstance(record, Exchange) or record.request.method != "PUT":
        return False
    found = endpoints.match(record.request.method, record.request.target)
    return found is not None and found.endpoint.kind is Kind.CSR


def _fails(record: Record, *, proves: bool) -> bool:
    """Whether the master may have logged why a request or handshake failed; ``proves``: it shows the cause."""
    if isinstance(record, Handshake):
        return record.leg.side == "master"
    if not isinstance(record, Exchange) or record.withheld or record.injected:
        return False
    status = record.response.status if record.response else 0
    # That something is not there is usual: a certificate that is not signed yet, a file that is optional.
    return status == 0 or (status >= 400 and (status != 404 or proves))


def _names(text: str, name: str) -> bool:
    """Whether a text has a node's name, and not as a part of another."""
    at = text.find(name) if name != "-" else -1
    while at >= 0:
        behind = at + len(name)
        before, after = text[at - 1 : at], text[behind : behind + len(".pem")]
        ends_there = not after[:1].isalnum() and after[:1] not in ("-", "_")
        longer = after[:1] == "." and after[1:2].isalnum() and after != ".pem"
        if ends_there and not longer and not before.isalnum() and before not in ("-", "_", "."):
            return True
        at = text.find(name, at + 1)
    return False


# -- the lines of a log ---------------------------------------------------------------------------------


class _Stretch(NamedTuple):
    """A stretch of time, and what failed in it."""

    begin: float
    end: float
    cases: list[_Case]


def _stretches(cases: Iterable[_Case]) -> list[_Stretch]:
    """Return the stretches of time with all moments, in order and apart from each other."""
    moments = sorted(
        ((moment.begin, moment.end, case) for case in cases for moment in case.moments), key=lambda moment: moment[:2]
    )
    found: list[_Stretch] = []
    for begin, end, case in moments:
        if not math.isfinite(begin + end):
            continue
        if found and begin <= found[-1].end:
            last = found.pop()
            joined = last.cases if case in last.cases else [*last.cases, case]
            found.append(_Stretch(last.begin, max(end, last.end), joined))
        else:
            found.append(_Stretch(begin, end, [case]))
    return found


def _read(log: Path, stretches: Sequence[_Stretch]) -> None:
    """Give each verdict the lines of its moments. Raises OSError."""
    with inputs.opened(log) as file:
        packed = file.read(len(inputs.GZIP)) == inputs.GZIP
    begins = [stretch.begin for stretch in stretches]
    for part in [stretches] if packed else [[stretch] for stretch in stretches]:
        start, most = (0, inputs.LARGE) if packed else (_place(log, part[0].begin), READ)
        for entry, causes in _entries(log, start, most, part):
            for case in stretches[bisect_right(begins, entry.time) - 1].cases:
                case.take(log, entry, causes)


def _place(log: Path, time: float) -> int:
    """Return a byte of a log that is not compressed, at most some blocks before its first line of a time or later."""
    with inputs.opened(log) as file:
        low, high = 0, file.seek(0, 2)
        while high - low > _BLOCK:
            middle = (low + high) // 2
            written = _first_date(log, middle, high)
            if written is None or written >= time:
                high = middle
            else:
                low = middle
    return low


def _first_date(log: Path, start: int, end: float) -> float | None:
    """Return the date of the first line of a part of a log that has one; None if none has."""
    for line, at in inputs.lines(log, start=start):
        if (written := server.dated(_text(line))) is not None:
            return written
        if at >= min(end, start + _UNDATED):
            break
    return None


def _entries(
    log: Path, start: int, most: int, stretches: Iterable[_Stretch]
) -> Iterator[tuple[Entry, tuple[str, ...]]]:
    """Yield the entries of some stretches of time, with the exceptions that follow them. ``start`` is the byte to begin
    at, and ``most`` bytes are read. Raises OSError."""
    ahead = iter(stretches)
    stretch: _Stretch | None = next(ahead)
    entry: Entry | None = None
    causes: list[str] = []
    early = b""
    for line, _ in inputs.lines(log, start=start):
        most -= len(line)
        if most < 0:
            break
        if line[:_MINUTE] == early:  # a compressed log has millions of these
            continue
        text = _text(line)
        following = server.entry(text)
        if following is None:
            if entry and len(causes) < _CAUSES and _EXCEPTION.match(text):
                causes.append(text.strip())
            continue
        if entry:
            yield entry, tuple(causes)
        # Threads write their lines a little out of order.
        while stretch and following.time > stretch.end + NEAR:
            stretch = next(ahead, None)
        if stretch is None:
            return
        entry, causes = (following if stretch.begin <= following.time <= stretch.end else None), []
        early = line[:_MINUTE] if following.time < stretch.begin - clocks.MINUTE else b""
    if entry:
        yield entry, tuple(causes)


def _text(line: bytes) -> str:
    return line[:_LONGEST].decode("utf-8", "replace")

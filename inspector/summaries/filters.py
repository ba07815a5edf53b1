"""The filter language for runs and for single records.

A filter is a list of terms separated by spaces. All terms must hold; ``-term`` or ``!term`` must not hold. A term is
``key:value`` (``KEYS``) or a plain word, which must occur in the printed line; quotes keep spaces together.

For a record, a term is about the record. If it names something that only a run has (outcome, version), it is about the
record's run. ``rule`` and ``severity`` are about the findings whose evidence includes the record.

For a run, a term is about the run if a run has such a property (agent, outcome, findings, total duration). Terms about
exchanges (status, method, path, endpoint, phase, text) must all hold for one and the same record of the run:
``phase:catalog status:500`` matches runs whose catalog request was answered with 500, not those with a catalog and some
other 500. If all of them are negated, no record of the run may match any of them: ``-status:>=400`` matches runs
without any such status.

No clock: ``since:10m`` counts back from the latest record. ``terms`` reads the terms as they were typed.
"""

from __future__ import annotations

import difflib
import json
import math
import operator
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, get_args
from urllib.parse import unquote, unquote_plus

from inspector import clocks, regex
from inspector.errors import InspectorError
from inspector.model import Exchange, Gap, Handshake, Phase, Severity
from inspector.protocol import decode
from inspector.protocol.bodies import content_type
from inspector.protocol.endpoints import ENDPOINTS
from inspector.rules import all_rules, is_own
from inspector.runs.snapshot import Outcome, RunSnapshot
from inspector.summaries import summary, terms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from inspector.analysis.analyzer import Step
    from inspector.model import Finding, Message, Record
    from inspector.summaries.summary import Brief, RunLike, Sign
    from inspector.summaries.terms import TypedTerm


@dataclass(slots=True)
class Candidate:
    """The input of a filter: a record in brief and its run. The printed line and the bodies are produced only on
    demand."""

    brief: Brief
    run: RunLike | None
    line: Callable[[], str]
    record: Callable[[], Record | None]


def candidate(step: Step) -> Candidate:
    """A step as input for a filter, with its current findings; its line is empty until the caller sets it."""
    return Candidate(summary.brief_of(step), step.run, str, lambda: step.record)


type StepTest = Callable[[Candidate], bool]
"""Whether a term holds for a record."""
type RunTest = Callable[[RunSnapshot, str], bool]
"""Whether a term holds for a run, given the run and its printed line."""
type Number = Callable[[float], bool]


OUTCOMES: tuple[str, ...] = get_args(Outcome.__value__)


class Asks(NamedTuple):
    """The tests of a term for a record and for a run; None: only exchanges have the property."""

    step: StepTest
    run: RunTest | None = None
    reads: bool = False
    """It reads bodies."""
    words: bool = False
    """It reads the printed line of a record."""


@dataclass(frozen=True, slots=True)
class Term:
    negated: bool
    asks: Asks


@dataclass(frozen=True, slots=True)
class Filter:
    """A filter, created by ``parse``. An empty one matches everything."""

    terms: tuple[Term, ...] = ()
    about_runs: tuple[Term, ...] = ()
    about_exchanges: tuple[Term, ...] = ()
    """The terms that only an exchange can match."""

    def matches_step(self, candidate: Candidate) -> bool:
        """Whether a record matches."""
        return all(term.asks.step(candidate) is not term.negated for term in self.terms)

    def marks(self, candidate: Candidate) -> bool:
        """Whether this record decides about its run, for ``matches_run``."""
        if self.forbids:
            return any(term.asks.step(candidate) for term in self.about_exchanges)
        return bool(self.about_exchanges) and all(
            term.asks.step(candidate) is not term.negated for term in self.about_exchanges
        )

    def matches_run(self, run: RunSnapshot, line: str, *, marked: bool) -> bool:
        """Whether a run matches; ``line`` is its printed line, ``marked`` whether ``marks`` was true for one of its
        records."""
        for term in self.about_runs:
            if term.asks.run is None or term.asks.run(run, line) is term.negated:
                return False
        return not self.about_exchanges or marked is not self.forbids

    @property
    def reads(self) -> bool:
        """Whether it reads bodies, which is slow."""
        return any(term.asks.reads for term in self.terms)

    @property
    def forbids(self) -> bool:
        """Whether only exchanges decide, and all terms about them are negated: no record may match any."""
        return bool(self.about_exchanges) and all(term.negated for term in self.about_exchanges)


def parse(text: str, latest: float | None = None) -> Filter:
    """Parse a user's filter. ``latest`` is when the latest record ended, from which ``10m`` counts back; without it
    such a term holds for everything. Raises InspectorError."""
    found: list[TypedTerm] = []
    at, text = 0, text.rstrip()
    while at < len(text):
        typed = terms.read(text, at)
        if typed is None or not typed.closed:
            raise InspectorError(
                f"The filter is not valid from {text[at:].strip()!r} on.",
                'A value in quotes ends with a quote and a space: text:"Could not find" status:404.',
            )
        at = typed.end
        found.append(typed)
    # Slow terms, which read bodies, come last.
    parsed = [_term(typed, latest) for typed in sorted(found, key=lambda typed: typed.key == "text")]
    about_exchanges = tuple(term for term in parsed if term.asks.run is None)
    about_runs = tuple(term for term in parsed if term.asks.run is not None)
    return Filter(tuple(parsed), about_runs, about_exchanges)


def _term(typed: TypedTerm, latest: float | None) -> Term:
    name, value = typed.key, typed.value
    if name is None:
        if not value:
            raise InspectorError(f"{typed.written!r} has no value.", 'A word, or several in quotes: "CA bundle".')
        return Term(typed.negated, _word(value))
    key = KEYS.get(name.lower())
    if key is None:
        near = OTHER_NAMES.get(name.lower()) or next(iter(difflib.get_close_matches(name.lower(), KEYS, 1)), None)
        hint = f"{near}: {KEYS[near].meaning}, as in {KEYS[near].example}." if near else f"There are {', '.join(KEYS)}."
        raise InspectorError(f"A filter has no key {name!r}.", f"{hint} A plain word with a colon goes into quotes.")
    try:
        if not value:
            raise ValueError("")
        asks = key.make(value) if isinstance(key, FilterKey) else key.make(_moment(value, latest))
    except ValueError as error:
        raise InspectorError(
            f"The filter's {name.lower()} cannot be {value!r}.",
            f"{error} {name.lower()}: {key.meaning}, as in {key.example}.".lstrip(),
        ) from error
    return Term(typed.negated, asks)


# -- tests of the keys ----------------------------------------------------------------------------------


def _word(value: str) -> Asks:
    wanted = value.casefold()
    return Asks(
        lambda candidate: wanted in candidate.line().casefold(), lambda _, line: wanted in line.casefold(), words=True
    )


def _agent(value: str) -> Asks:
    fits = _pattern(value)

    def step_is(candidate: Candidate) -> bool:
        brief, run = candidate.brief, candidate.run
        if run and fits(run.certname):
            return True
        return fits(brief.certname) or fits(brief.address or (run.address if run else None))

    return Asks(step_is, lambda run, _: fits(run.certname) or fits(run.address))


def _phase(value: str) -> Asks:
    wanted = _one_of(value, (*Phase, "handshake", "gap"))
    # A handshake is printed as one, and belongs to the phase that it prevented.
    return Asks(lambda candidate: wanted in (candidate.brief.phase, candidate.brief.kind))


def _endpoint(value: str) -> Asks:
    fits = _pattern(value)
    names = {endpoint.name for endpoint in ENDPOINTS}
    if not any(map(fits, names)):
        near = difflib.get_close_matches(value, names, 3)
        raise ValueError(f"There is no such endpoint{f', but {", ".join(near)}' if near else ''}.")
    return Asks(lambda candidate: fits(candidate.brief.endpoint))


def _method(value: str) -> Asks:
    if not regex.fullmatch("[A-Za-z]+", value):
        raise ValueError("")
    return _of_exchange(lambda exchange: exchange.method.upper() == value.upper())


def _path(value: str) -> Asks:
    if set(value) & set("*?["):
        fits = _pattern(value)
        return _of_exchange(lambda exchange: fits(_path_of(exchange)))
    part = value.casefold()
    return _of_exchange(lambda exchange: part in _path_of(exchange).casefold())


def _status(value: str) -> Asks:
    if value.lower() == "none":
        return _of_exchange(lambda exchange: exchange.status is None)
    if regex.fullmatch("[1-9]xx", value, regex.IGNORECASE):
        value = f"{value[0]}00-{value[0]}99"
    fits = _number(value, _plain)
    return _of_exchange(lambda exchange: exchange.status is not None and fits(exchange.status))


def _rule(value: str) -> Asks:
    wanted = "" if value.lower() == "any" else value.upper()
    if not is_own(wanted) and not any(rule.id.startswith(wanted) for rule in all_rules()):
        raise ValueError("No rule id begins like this.")
    return _of_findings(lambda finding: finding.rule.startswith(wanted))


def _severity(value: str) -> Asks:
    least = Severity(_one_of(value, tuple(Severity))).rank
    return _of_findings(lambda finding: finding.severity.rank >= least)


def _ms(value: str) -> Asks:
    fits = _number(value, _plain)

    return Asks(
        _of_exchange(lambda exchange: fits(round(exchange.duration * 1000))).step,
        lambda run, _: fits(round(run.duration * 1000)),
    )


def _size(value: str) -> Asks:
    fits = _number(value, _bytes)
    return Asks(
        _of_exchange(lambda exchange: fits(exchange.sent + exchange.received)).step,
        lambda run, _: fits(run.sent + run.received),
    )


def _outcome(value: str) -> Asks:
    wanted = {_one_of(each, OUTCOMES) for each in value.split(",")}

    def fits(run: RunLike) -> bool:
        # By the word of lists and pages, and by that of JSON and tables.
        return run.outcome in wanted or (isinstance(run, RunSnapshot) and run.ending in wanted)

    return _of_run(fits)


def _run(value: str) -> Asks:
    fits = _number(value, _plain)
    return _of_run(lambda run: bool(run.number) and fits(run.number or 0))


def _env(value: str) -> Asks:
    fits = _pattern(value)

    def step_is(candidate: Candidate) -> bool:
        return fits(candidate.brief.environment or (candidate.run.environment if candidate.run else None))

    return Asks(step_is, lambda run, _: fits(run.environment) or fits(run.environment_asked))


def _version(value: str) -> Asks:
    found = regex.fullmatch(r"(>=|<=|>|<|=)?([0-9]{1,9}(?:\.[0-9]{1,9})*)", value)
    if found is None:
        if value[0] in "<>=":
            raise ValueError("")
        fits = _pattern(value)
        return _of_run(lambda run: fits(run.agent_version))
    how, wanted = found[1] or "=", tuple(map(int, found[2].split(".")))

    def fits_run(run: RunLike) -> bool:
        # Compare only as many parts as the value has: 7.23.0 matches 7, and is not later than 7.
        version = regex.match(r"[0-9]{1,9}(?:\.[0-9]{1,9})*", run.agent_version or "")
        return version is not None and _COMPARE[how](tuple(map(int, version[0].split(".")))[: len(wanted)], wanted)

    return _of_run(fits_run)


def _since(moment: float) -> Asks:
    # Use the end of a run: one that was still active then is of interest. Comparisons with NaN are false.
    return Asks(lambda candidate: not candidate.brief.time < moment, lambda run, _: not run.ended < moment)


def _until(moment: float) -> Asks:
    return Asks(lambda candidate: not candidate.brief.time > moment, lambda run, _: not run.started > moment)


def _text(value: str) -> Asks:
    # JSON escapes quotes in a value, and sometimes non-ASCII characters.
    written = {value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1]}
    wanted = tuple(part.casefold() for part in written)

    def step_is(candidate: Candidate) -> bool:
        record = candidate.record()
        folded = (form.casefold() for _, forms in (texts(record) if record else ()) for form in forms)
        return any(part in text for text in folded for part in wanted)

    return Asks(step_is, reads=True)


class FilterKey(NamedTuple):
    meaning: str
    example: str
    make: Callable[[str], Asks]


class TimeKey(NamedTuple):
    """A key whose value is a time."""

    meaning: str
    example: str
    make: Callable[[float], Asks]


KEYS: dict[str, FilterKey | TimeKey] = {
    "outcome": FilterKey(f"outcome of the run, or several: {', '.join(OUTCOMES)}", "outcome:failed,refused", _outcome),
    "agent": FilterKey("a certname or an address, `*` for any part", "agent:web*", _agent),
    "rule": FilterKey("a rule id, its first letter, or any", "rule:B23 or rule:B", _rule),
    "severity": FilterKey("a finding that is at least an error, a warning or a notice", "severity:warning", _severity),
    "status": FilterKey("a status, a range, or none for no answer", "status:>=400, status:4xx or status:none", _status),
    "phase": FilterKey(f"one of {', '.join(Phase)}; handshake, gap", "phase:catalog", _phase),
    "path": FilterKey("a part of the path, or all of it with `*`", "path:/modules/", _path),
    "text": FilterKey("a part of target, headers, bodies or error", 'text:"Could not find"', _text),
    "since": TimeKey(
        "at this time (UTC) or later; 10m: relative to the latest record", "since:2026-11-21T07:00", _since
    ),
    "until": TimeKey("at this time (UTC) or earlier; 2h: relative to the latest record", "until:10m", _until),
    "env": FilterKey("the environment, `*` for any part", "env:production", _env),
    "version": FilterKey("the agent's version, in part or in full", "version:7 or version:<6.4", _version),
    "ms": FilterKey("duration in milliseconds", "ms:>500", _ms),
    "size": FilterKey("size of both bodies in bytes", "size:>1M", _size),
    "run": FilterKey("the run's number", "run:12 or run:3-5", _run),
    "endpoint": FilterKey("an endpoint's name, `*` for any part", "endpoint:file_*", _endpoint),
    "method": FilterKey("an HTTP method", "method:PUT", _method),
}
"""The keys, those first that are needed most."""

OTHER_NAMES = {
    "certname": "agent", "node": "agent", "host": "agent", "address": "agent", "ip": "agent",
    "environment": "env", "code": "status", "url": "path", "target": "path", "verb": "method",
    "finding": "rule", "duration": "ms", "took": "ms", "time": "ms", "bytes": "size", "body": "text",
    "header": "text", "after": "since", "before": "until", "from": "since", "to": "until",
}  # fmt: skip
"""Likely wrong names of keys, used only to suggest the right one."""


# -- values ---------------------------------------------------------------------------------------------


def _of_exchange(holds: Callable[[Brief], bool]) -> Asks:
    return Asks(lambda candidate: candidate.brief.kind == "exchange" and holds(candidate.brief))


def _of_run(holds: Callable[[RunLike], bool]) -> Asks:
    return Asks(lambda candidate: candidate.run is not None and holds(candidate.run), lambda run, _: holds(run))


def _of_findings(holds: Callable[[Finding | Sign], bool]) -> Asks:
    return Asks(lambda candidate: any(map(holds, candidate.brief.signs)), lambda run, _: any(map(holds, run.findings)))


def _path_of(exchange: Brief) -> str:
    return exchange.target.partition("?")[0]


def _pattern(value: str) -> Callable[[str | None], bool]:
    fits = regex.glob(value, regex.IGNORECASE).fullmatch
    return lambda text: text is not None and fits(text) is not None


def _one_of(value: str, known: Iterable[str]) -> str:
    names = [str(value) for value in known]
    if value.lower() not in names:
        near = difflib.get_close_matches(value.lower(), names, 1)
        raise ValueError(f"Did you mean {near[0]}?" if near else "")
    return value.lower()


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt, "=": operator.eq,
}  # fmt: skip


def _number(value: str, read: Callable[[str], float]) -> Number:
    """The test for a comparison (``>=400``), a range with both ends (``400-499``) or a number."""
    if found := regex.match(">=|<=|[<>=]", value):
        compare, limit = _COMPARE[found[0]], read(value[found.end() :])
        return lambda number: compare(number, limit)
    low, dash, high = value.partition("-")
    first, last = read(low), read(high if dash else low)
    if first > last:
        raise ValueError("The range ends before it begins.")
    return lambda number: first <= number <= last


def numbers(value: str) -> Number:
    """Return the test for whole numbers: ``2``, ``1-3`` or ``>=4``. Raises ValueError."""
    return _number(value, _plain)


def _plain(text: str) -> float:
    if not regex.fullmatch(r"[0-9]+(?:\.[0-9]+)?", text):
        raise ValueError("")
    return float(text)


def _bytes(text: str) -> float:
    found = regex.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([kmg]?)b?", text, regex.IGNORECASE)
    if found is None:
        raise ValueError("")
    return float(found[1]) * {"": 1, "k": 1e3, "m": 1e6, "g": 1e9}[found[2].lower()]


def _moment(text: str, latest: float | None) -> float:
    """Seconds since the epoch; NaN if it counts back from an unknown time."""
    if found := regex.fullmatch("([0-9]{1,9})([smhdw])", text):
        back = int(found[1]) * clocks.UNITS[found[2]]
        return math.nan if latest is None else latest - back
    try:
        return clocks.iso(text)
    except (ValueError, OverflowError) as error:
        raise ValueError("") from error


# -- texts of records -----------------------------------------------------------------------------------


def texts(record: Record) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield the texts of a record with their places, each in its forms, the most readable one first: bodies without
    their encoding; percent-encoded text decoded and as it is."""
    match record:
        case Exchange():
            yield "target", (unquote(record.request.target), record.request.target)
            yield "error", (record.error or "",)
            yield from _texts_of("request", record.request)
            if record.response:
                yield "response reason", (record.response.reason,)
                yield from _texts_of("response", record.response)
        case Handshake():
            for text in (record.reason, record.alert or "", *record.culprits):
                yield "TLS", (text,)
        case Gap():
            yield "gap", (record.reason,)


def _texts_of(which: str, message: Message) -> Iterator[tuple[str, tuple[str, ...]]]:
    for name, value in message.headers:
        yield f"{which} header", (f"{name}: {value}",)
    body = decode.content(message)
    text = (message.body if body is None else body).decode(errors="replace")
    if content_type(message) == "application/x-www-form-urlencoded":
        once = unquote_plus(text)
        yield f"{which} body", (unquote_plus(once), once, text)  # the facts in a catalog request are encoded twice
    else:
        yield f"{which} body", (text,)

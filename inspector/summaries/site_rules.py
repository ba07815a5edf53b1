"""The rules that a site writes in its rules file: a filter, and what to say about what matches it.

```yaml
rules:
  U01:
    title: slow catalog of a web server
    when: 'phase:catalog ms:>5000 agent:web*'        # a filter; of a record if nothing else is written
    severity: warning
    message: '{agent} waited {ms} ms for its catalog of {environment}'
    fix: read the PROFILE lines in the master's log
  U02:
    title: many slow files
    per: run
    when: 'endpoint:file_content ms:>1000'
    at_least: 3                                      # matching records of a run
  U03:
    title: a database server that reported nothing
    per: run
    when: 'agent:db*'
    missing: 'phase:report'                          # no record of the run matches
```
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, cast

from inspector import regex
from inspector.errors import InspectorError
from inspector.model import Severity, Visible
from inspector.rules import On, Rule
from inspector.rules.cases import ExchangeCase, HandshakeCase, Statement
from inspector.rules.fixes import Host, Step, advice
from inspector.runs.observations import Bounded
from inspector.summaries import conclusions, filters, terms, wording
from inspector.text import beginning, clean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from inspector.analysis.analyzer import Step as AnalyzedStep
    from inspector.rules import RuleFunction
    from inspector.rules.cases import Case, RunCase
    from inspector.rules.fixes import Fix
    from inspector.runs.run import Run
    from inspector.summaries.filters import Filter
    from inspector.summaries.summary import Brief

KEYS = ("title", "when", "per", "at_least", "missing", "severity", "message", "fix", "explanation")
OF_RUNS = frozenset({"outcome", "rule", "severity"})
"""Keys of the filter language about what is known at the end of a run only."""
OF_TIME = frozenset({"since", "until"})
"""Keys that no rule can have: a rule holds at any time."""
IN_PROGRESS = 3600.0
"""Seconds after which an agent that sends nothing more has ended its run."""
FIELDS = ("agent", "address", "environment", "version", "phase", "endpoint", "method", "path", "status", "ms", "size",
          "outcome", "run", "count")  # fmt: skip
"""What a message can quote. Those from ``phase`` to ``status`` belong to a record, ``outcome`` and ``count`` to a
run."""
_OF_RECORD = frozenset(FIELDS[4:9])
_AT_THE_END = frozenset({"outcome", "count"})
QUOTED = 200
"""Characters of a field in a message."""
MOST = 10**9
"""Limit for ``at_least``."""
_FIELD = regex.compile(r"\{([A-Za-z_]+)\}")
_HINT = "docs/own-rules.md has examples."


class RuleError(InspectorError):
    """A mistake in a rule; ``key`` is where."""

    def __init__(self, key: str, message: str, hint: str = _HINT) -> None:
        super().__init__(message, hint)
        self.key = key


def rule_parts(ident: str, entry: Any, source: str) -> list[Rule]:
    """Return the parts of a rule, which all have its id. ``source`` names the file and the line. Raises RuleError."""
    if not isinstance(entry, dict):
        raise RuleError("", f"A rule of your own is a mapping, not {entry!r}.")
    for key in entry:
        if key not in KEYS:
            raise RuleError(str(key), f"There is no key {key!r}.", f"Choose from: {', '.join(KEYS)}.")
    title = _text(entry, "title", needed=True)
    per = entry.get("per", "record")
    if per not in ("record", "run"):
        raise RuleError("per", f"per is record or run, not {per!r}.")
    whole = per == "run"
    of_record, at_end = _conditions(entry, whole=whole)
    message = _template(_text(entry, "message") or title, whole=whole)
    first = Rule(
        id=ident,
        severity=_severity(entry.get("severity", "warning")),
        on=On.EXCHANGE,
        visible=Visible.CONSEQUENCE,
        title=title.rstrip("."),
        explanation=_text(entry, "explanation") or _explained(entry, whole=whole),
        fix=_fix(entry.get("fix"), source),
        source=source,
        good=list,
        bad=list,
        also=(),
        function=_per_record(of_record, message),
    )

    def part(on: On, function: RuleFunction) -> Rule:
        return dataclasses.replace(first, on=on, function=function)

    if not whole:
        return [first, dataclasses.replace(first, on=On.HANDSHAKE)]
    parts = [part(On.RUN_END, _per_run(ident, at_end, message, entry))]
    if of_record is not None:
        parts += [part(on, _counting(ident, of_record)) for on in (On.EXCHANGE, On.HANDSHAKE)]
    return parts


# -- reading ------------------------------------------------------------------------------------------------


def _text(entry: Mapping[str, Any], key: str, *, needed: bool = False) -> str:
    value = entry.get(key)
    if value is None and not needed:
        return ""
    if not isinstance(value, str) or not value.strip():
        raise RuleError(key, f"{key} must be a text, not {value!r}.")
    return " ".join(value.split())


def _severity(value: Any) -> Severity:
    names = [str(severity) for severity in Severity]
    if value not in names:
        raise RuleError("severity", f"{value!r} is not a severity.", f"It is {', '.join(names)}.")
    return Severity(value)


def _conditions(entry: Mapping[str, Any], *, whole: bool) -> tuple[Callable[[Candidate], bool] | None, Filter]:
    """Return the test of each record (None: there is none), and what must hold at the end of a run."""
    missing, at_least = _text(entry, "missing"), entry.get("at_least")
    when = _text(entry, "when", needed=not missing)
    if not whole:
        for key in ("missing", "at_least"):
            if key in entry:
                raise RuleError(key, f"{key} is about all records of a run.", "Add `per: run`.")
        _checked("when", when, OF_RUNS, "It is known at the end of a run: add `per: run`.")
        return filters.parse(when).matches_step, filters.Filter()
    if at_least is not None and missing:
        raise RuleError("missing", "A rule has at_least or missing, not both.", "Write two rules.")
    if missing:
        _checked("missing", missing, OF_RUNS, "It is not a property of a record; put it into `when`.")
        at_end = _checked("when", when)
        if at_end.about_exchanges:
            raise RuleError(
                "when", "With missing, when is about the run as a whole.", "Terms such as agent:, outcome:."
            )
        return filters.parse(missing).matches_step, at_end
    if at_least is None:
        chosen = _checked("when", when)
        return (chosen.marks if chosen.about_exchanges else None), chosen
    if isinstance(at_least, bool) or not isinstance(at_least, int) or not 0 < at_least < MOST:
        raise RuleError("at_least", f"at_least is a number of records from 1 on, not {at_least!r}.")
    _checked("when", when)
    of_records, of_run = _apart(when)
    return filters.parse(of_records).matches_step, filters.parse(of_run)


def _checked(key: str, text: str, never: frozenset[str] = frozenset(), why: str = "") -> Filter:
    """Parse a filter, without keys that cannot be used there."""
    try:
        parsed = filters.parse(text)
    except InspectorError as error:
        raise RuleError(key, f"{key}: {error.message}", error.hint) from error
    for typed in _typed(text):
        name = (typed.key or "").lower()
        if name in OF_TIME:
            raise RuleError(key, f"{key}: a rule cannot have {name}.", "A rule holds at any time.")
        if name in never:
            raise RuleError(key, f"{key}: {name} cannot be used here.", why)
    return parsed


def _typed(text: str) -> Iterator[terms.TypedTerm]:
    at = 0
    while at < len(text) and (typed := terms.read(text, at)) is not None:
        at = typed.end
        yield typed


def _apart(text: str) -> tuple[str, str]:
    """Separate the terms about records from those about what is known at the end of a run only."""
    of_run = {typed.begin: typed for typed in _typed(text) if (typed.key or "").lower() in OF_RUNS}
    return (
        " ".join(text[typed.begin : typed.end] for typed in _typed(text) if typed.begin not in of_run),
        " ".join(text[typed.begin : typed.end] for typed in of_run.values()),
    )


def _template(text: str, *, whole: bool) -> str:
    for name in _FIELD.findall(text):
        if name not in FIELDS:
            raise RuleError("message", f"message: there is no field {{{name}}}.", f"Choose from: {', '.join(FIELDS)}.")
        if name in (_OF_RECORD if whole else _AT_THE_END):
            what = "a single record: omit `per: run`" if whole else "a whole run: add `per: run`"
            raise RuleError("message", f"message: the field {{{name}}} is about {what}.")
    return text


def _fix(value: Any, source: str) -> Fix:
    if value is None:
        return (advice(f"this rule of your site names no fix; it is in {_braced(source)}"),)
    return tuple(_step(item) for item in (value if isinstance(value, list) else [value]))


def _step(value: Any) -> Step:
    if isinstance(value, str):
        value = {"text": value}
    if not isinstance(value, dict) or not value:
        raise RuleError("fix", f"A step of a fix is a text or a mapping, not {value!r}.")
    fields = ("text", "command", "on", "only_if", "destroys")
    for key, text in value.items():
        if key not in fields:
            raise RuleError("fix", f"fix: there is no key {key!r}.", f"Choose from: {', '.join(fields)}.")
        if not isinstance(text, str) or not text.strip():
            raise RuleError("fix", f"fix: {key} must be a text, not {text!r}.")
    on = value.get("on")
    if on is not None and on not in tuple(Host):
        raise RuleError("fix", f"fix: there is no host {on!r}.", f"Choose from: {', '.join(Host)}.")
    if not (value.get("text") or value.get("command")):
        raise RuleError("fix", "A step of a fix has a text or a command.")
    return Step(
        _braced(value.get("text", "")).rstrip("."),
        _braced(value.get("command", "")),
        Host(on) if on else None,
        _braced(value.get("only_if", "")),
        _braced(value.get("destroys", "")),
    )


def _braced(text: str) -> str:
    """Return a text whose only placeholders are the certname and the master."""
    doubled = " ".join(text.split()).replace("{", "{{").replace("}", "}}")
    return doubled.replace("{{name}}", "{name}").replace("{{host}}", "{host}")


def _explained(entry: Mapping[str, Any], *, whole: bool) -> str:
    when = entry.get("when")
    if not whole:
        return f"A rule of this site, about each request and each failed handshake that matches `{when}`."
    if missing := entry.get("missing"):
        return f"A rule of this site, about runs{f' that match `{when}`' if when else ''} without `{missing}`."
    if at_least := entry.get("at_least"):
        return f"A rule of this site, about runs with at least {at_least} times `{when}`."
    return f"A rule of this site, about runs that match `{when}`."


# -- applying -----------------------------------------------------------------------------------------------

type Candidate = filters.Candidate


_latest: tuple[Case, Candidate] | None = None
"""The latest record as input for filters: every rule of the site asks for the same one."""


def _candidate(case: Case) -> Candidate:
    global _latest
    latest = _latest
    if latest is None or latest[0] is not case:
        assert isinstance(case, ExchangeCase | HandshakeCase)  # noqa: S101 - other cases have no record
        found = filters.candidate(cast("AnalyzedStep", case.step))
        brief, run = found.brief, found.run
        found.line = lambda: wording.line(brief, run)
        _latest = latest = case, found
    return latest[1]


def _per_record(holds: Callable[[Candidate], bool] | None, message: str) -> RuleFunction:
    def of_site(case: Case) -> Iterator[Statement]:
        found = _candidate(case)
        if holds is not None and holds(found):
            yield Statement(_filled(message, _of_record(found.brief, case.run)))

    return of_site


def _counting(ident: str, holds: Callable[[Candidate], bool]) -> RuleFunction:
    def of_site(case: Case) -> Iterator[Statement]:
        found = _candidate(case)
        if holds(found):
            case.run.matches.setdefault(ident, Bounded()).append(found.brief.seq)
        return iter(())

    return of_site


def _per_run(ident: str, at_end: Filter, message: str, entry: Mapping[str, Any]) -> RuleFunction:
    at_least: int | None = entry.get("at_least")
    missing = "missing" in entry
    printed = any(term.asks.words for term in at_end.about_runs)

    def of_site(case: RunCase) -> Iterator[Statement]:
        run = case.run
        if run.tool or run.command:
            return  # not a run of an agent
        matches = run.matches.get(ident, Bounded())
        if (missing and matches.total) or (at_least is not None and matches.total < at_least):
            return
        line = wording.words(conclusions.of_run(run)) if printed else ""
        marked = bool(matches.total) or missing or at_least is not None
        if not at_end.matches_run(run.snapshot(), line, marked=marked):
            return
        severity = None
        if missing and run.outcome == "unfinished" and case.ledger.now - run.ended < IN_PROGRESS:
            severity = Severity.NOTICE  # it may still be in progress
        values = _of_run(run) | {"outcome": run.outcome, "count": str(matches.total)}
        yield Statement(_filled(message, values), tuple(matches), severity=severity)

    return of_site


def _of_run(run: Run) -> dict[str, str]:
    return {
        "agent": run.certname or run.address or "",
        "address": run.address or "",
        "environment": run.environment or "",
        "version": run.agent_version or "",
        "ms": str(round(run.duration * 1000)),
        "size": str(run.sent + run.received),
        "run": str(run.number or ""),
    }


def _of_record(brief: Brief, run: Run) -> dict[str, str]:
    return _of_run(run) | {
        "agent": run.certname or brief.certname or brief.address or run.address or "",
        "environment": brief.environment or run.environment or "",
        "phase": str(brief.phase),
        "endpoint": brief.endpoint or "",
        "method": brief.method,
        "path": brief.target.partition("?")[0],
        "status": "no answer" if brief.status is None else str(brief.status),
        "ms": str(round(brief.duration * 1000)),
        "size": str(brief.sent + brief.received),
    }


def _filled(message: str, values: Mapping[str, str]) -> str:
    # In one pass: a value is never taken for a field.
    return _FIELD.sub(lambda found: beginning(clean(values[found[1]]), QUOTED) or "-", message)

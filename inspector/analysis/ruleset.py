"""A site's configuration of the rules: rules.yaml sets severities and thresholds, and lists findings to ignore.

```yaml
rules:
  B45: off                      # this site autosigns
  B39: {severity: warning}
  S08: {warning_s: 20}          # a threshold; `puppet-inspector explain S08` names them
ignore:
  - rules: [B01, B03]           # or one id; all of them if left out
    certname: "build*.example"  # a pattern, or several; every agent if left out
    until: 2027-01-31           # for runs that begin before this day (UTC); for ever if left out
    why: they are rebuilt every night
```
"""

from __future__ import annotations

import dataclasses
import datetime
import difflib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import yaml

from inspector import clocks, inputs, regex
from inspector.errors import InspectorError
from inspector.model import Severity
from inspector.rules import Ignore, all_rules

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from inspector.rules import Rule

LARGEST = 2**20
"""Bytes of a rules file."""


@dataclass(frozen=True, slots=True)
class Ruleset:
    """The rules to apply and the findings to drop."""

    rules: tuple[Rule, ...]
    ignores: tuple[Ignore, ...] = ()
    warnings: tuple[str, ...] = ()
    """Entries of the file that have no effect any more, in words."""


def load(path: Path | None, now: float | None = None) -> Ruleset:
    """The rules as configured by a file; without a file the default rules. Raises InspectorError.

    With ``now``, in seconds since the epoch, there are warnings about exemptions that have ended.
    """
    if path is None:
        return Ruleset(all_rules())
    try:
        with inputs.opened(path) as file:
            text = file.read(LARGEST + 1)
    except OSError as error:
        raise InspectorError(
            f"The rules file {path} cannot be read: {error.strerror}.",
            "Name a YAML file; docs/findings.md has an example.",
        ) from error
    if len(text) > LARGEST:
        raise InspectorError(f"The rules file {path} is larger than {LARGEST} bytes.", "Check the file name.")
    try:
        document = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        at = getattr(error, "problem_mark", None)
        where = f" in line {at.line + 1}" if at else ""
        raise InspectorError(f"The rules file {path} is not valid YAML{where}.", _EXAMPLE) from error
    try:
        rules = _read(document)
    except InspectorError as error:
        raise InspectorError(f"{path}: {error.message}", error.hint) from error
    ended = (ignore for ignore in rules.ignores if now is not None and ignore.until is not None and ignore.until <= now)
    return dataclasses.replace(rules, warnings=tuple(f"{path}: {_ended(exception)}" for exception in ended))


def _ended(ignore: Ignore) -> str:
    what = ", ".join(sorted(ignore.rules)) or "all rules"
    whom = f" for {', '.join(ignore.certnames)}" if ignore.certnames else ""
    return f"the exception for {what}{whom} ended on {clocks.date(ignore.until or 0).date()}"


MOST = 1e15
"""Limit for thresholds: seconds and bytes are far below it."""
_EXAMPLE = "It holds `rules:` (B45: off) and `ignore:` (- rules: B01); docs/findings.md has an example."


def _read(document: Any) -> Ruleset:
    if document is None:
        document = {}
    _mapping(document, "the file", ("rules", "ignore"))
    wanted = document.get("rules") or {}
    known = {rule.id: rule for rule in all_rules()}
    _mapping(wanted, "rules", tuple(known))
    rules = [_adapted(known[ident], wanted[ident]) if ident in wanted else known[ident] for ident in known]
    ignores = document.get("ignore") or []
    if not isinstance(ignores, list):
        raise InspectorError("`ignore` is a list of mappings.", _EXAMPLE)
    return Ruleset(
        tuple(rule for rule in rules if rule is not None), tuple(_ignore(ignore, tuple(known)) for ignore in ignores)
    )


def _adapted(rule: Rule, wanted: Any) -> Rule | None:
    # YAML reads an unquoted `off` as false.
    if wanted is False or wanted == "off":
        return None
    if isinstance(wanted, str):
        wanted = {"severity": wanted}
    _mapping(wanted, rule.id, ("severity", *rule.thresholds))
    thresholds = dict(rule.thresholds)
    severity = None
    for key, value in wanted.items():
        if key != "severity":
            thresholds[key] = _number(value, rule, key)
        elif value is False or value == "off":
            return None
        else:
            severity = _severity(value, rule.id)
    return dataclasses.replace(rule, thresholds=thresholds, chosen=severity)


def _severity(value: Any, ident: str) -> Severity:
    names = [str(severity) for severity in Severity]
    if value not in names:
        raise InspectorError(
            f"{ident}: {value!r} is not a severity.", f"It is {', '.join(names)} or off.{_near(value, names)}"
        )
    return Severity(value)


def _number(value: Any, rule: Rule, key: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not -MOST < value < MOST:
        what = "" if isinstance(value, int | float) else f", not {value!r}"
        raise InspectorError(
            f"{rule.id}: {key} must be a number below {MOST:g}{what}.",
            f"The default is `{rule.id}: {{{key}: {rule.thresholds[key]:g}}}`.",
        )
    return value


def _ignore(entry: Any, known: tuple[str, ...]) -> Ignore:
    _mapping(entry, "ignore", ("rules", "certname", "until", "why"))
    rules = _texts(entry.get("rules"), "ignore: rules")
    for ident in rules:
        if ident not in known:
            raise InspectorError(f"ignore: there is no rule {ident!r}.", _near(ident, known).strip() or _EXAMPLE)
    until = entry.get("until")
    if isinstance(until, datetime.datetime):
        until = (until if until.tzinfo else until.replace(tzinfo=datetime.UTC)).timestamp()
    elif isinstance(until, datetime.date):
        until = datetime.datetime(until.year, until.month, until.day, tzinfo=datetime.UTC).timestamp()
    elif until is not None:
        raise InspectorError(f"ignore: until must be a date, not {until!r}.", "Write it as 2027-01-31.")
    if not entry.keys() - {"why"}:
        raise InspectorError("ignore: an entry without rules, certname or until would ignore everything.", _EXAMPLE)
    return Ignore(frozenset(rules), tuple(_texts(entry.get("certname"), "ignore: certname")), until)


def _texts(value: Any, what: str) -> list[str]:
    values = [] if value is None else value if isinstance(value, list) else [value]
    if not all(isinstance(one, str) and one for one in values) or value == []:
        raise InspectorError(f"{what} must be a string or a list of strings, not {value!r}.", _EXAMPLE)
    return values


def _mapping(value: Any, what: str, keys: tuple[str, ...]) -> None:
    if not isinstance(value, dict):
        raise InspectorError(f"{what} must be a mapping, not {value!r}.", _EXAMPLE)
    for key in value:
        if key not in keys:
            hint = _near(key, keys).strip() or f"Choose from: {', '.join(keys)}."
            noun = "rule" if what == "rules" else "key"
            raise InspectorError(f"{what}: there is no {noun} {key!r}.", hint)


def _near(value: Any, known: Iterable[str]) -> str:
    text = str(value)
    if regex.fullmatch(r"[a-z]\d\d", text):
        text = text.upper()
    near = difflib.get_close_matches(text, list(known), 3, 0.5)
    return f" Did you mean {' or '.join(near)}?" if near else ""

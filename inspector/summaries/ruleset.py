"""The rules of a site: rules.yaml sets severities and thresholds, lists findings to ignore and has rules of its own.

```yaml
rules:
  B45: off                      # this site autosigns
  B39: {severity: warning}
  S08: {warning_s: 20}          # a threshold; `puppet-inspector explain S08` names them
  U01: {title: slow catalog, when: 'phase:catalog ms:>5000'}  # a rule of its own (``site_rules``)
ignore:
  - rules: [B01, B03]           # or one id; all of them if left out
    certname: "build*.example"  # a pattern, or several; every agent if left out
    until: 2027-01-31           # for runs that begin before this day (UTC); for ever if left out
    why: they are rebuilt every night
```

A mistake in a rule of its own costs only that rule, and is a warning; any other one raises an error.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import difflib
import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml

from inspector import clocks, inputs, regex
from inspector.errors import InspectorError
from inspector.model import Severity
from inspector.rules import Ignore, Ruleset, all_rules, is_own
from inspector.summaries import rule_files, site_rules
from inspector.summaries.rule_files import OWN_ID

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

    from inspector.rules import Rule

LARGEST = 2**20
"""Bytes of a rules file."""
MOST = 1e15
"""Limit for thresholds: seconds and bytes are far below it."""
_EXAMPLE = "It holds `rules:` (B45: off) and `ignore:` (- rules: B01); docs/findings.md has an example."


def load(path: Path | None, directory: Path | None = None, now: float | None = None) -> Ruleset:
    """The rules as configured by a file, and those of a directory of Python files. Raises InspectorError.

    With ``now``, in seconds since the epoch, there are warnings about exemptions that have ended.
    """
    file = _RulesFile(path, now) if path is not None else None
    own = list(file.own) if file else []
    warnings = list(file.warnings) if file else []
    digest = hashlib.sha256(file.text if file else b"")
    used = {rule.id for rule in own}
    for source in rule_files.paths(directory) if directory is not None else ():
        try:
            text = rule_files.text(source)
            digest.update(text)
            found = rule_files.rules_in(source, text)
            for ident in sorted(used & {rule.id for rule in found}):
                raise InspectorError(f"{source}: there is another rule {ident}.", "Choose another id.")
        except InspectorError as error:
            warnings.append(f"{error.message} Its rules are not applied. {error.hint}")
            continue
        used |= {rule.id for rule in found}
        own += found if file is None else filter(None, map(file.adapt, found))
    warnings += file.about_nothing(used) if file else []
    options = (("--rules", path), ("--rules-dir", directory))
    return Ruleset(
        (*(file.rules if file else all_rules()), *sorted(own, key=lambda rule: rule.id)),
        file.ignores if file else (),
        tuple(warnings),
        tuple(part for option, value in options if value is not None for part in (option, str(value))),
        digest.hexdigest() if path or directory else "",
    )


def load_options(options: Sequence[str], now: float | None = None) -> Ruleset:
    """Load what options of the command line name (``Ruleset.arguments``). Raises InspectorError."""
    named = dict(zip(options[::2], options[1::2], strict=True))
    file, directory = named.get("--rules"), named.get("--rules-dir")
    return load(Path(file) if file else None, Path(directory) if directory else None, now)


class _RulesFile:
    """What a rules file configures. Raises InspectorError."""

    def __init__(self, path: Path, now: float | None) -> None:
        self._path = path
        self.text = _text(path)
        document, self._lines = _parsed(path, self.text)
        self.warnings = [f"{path}, line {line}: {key!r} is there twice" for key, line in self._lines.repeated]
        with self._at():
            document = {} if document is None else document
            _mapping(document, "the file", ("rules", "ignore"))
            self._rules = document.get("rules") or {}
            known = [rule.id for rule in all_rules()]
            own = [ident for ident in self._rules if _is_own(ident)] if isinstance(self._rules, dict) else []
            ignores = document.get("ignore") or []
        for ident in self._rules if own else ():
            with self._at("rules", ident):
                _mapping({ident: None}, "rules", (*known, *own))
        if not own:
            with self._at("rules"):
                _mapping(self._rules, "rules", tuple(known))
        self.rules = tuple(filter(None, map(self.adapt, all_rules())))
        self.own = [rule for ident in own if _defines(self._rules[ident]) for rule in self._own(ident)]
        if not isinstance(ignores, list):
            with self._at("ignore"):
                raise InspectorError("`ignore` is a list of mappings.", _EXAMPLE)
        self.ignores = tuple(self._ignore(place, entry, (*known, *own)) for place, entry in enumerate(ignores))
        for ignore in self.ignores:
            if now is not None and ignore.until is not None and ignore.until <= now:
                self.warnings.append(f"{path}: {_ended(ignore)}")

    def adapt(self, rule: Rule) -> Rule | None:
        """Return a rule as this file configures it; None if it is off."""
        if rule.id not in self._rules:
            return rule
        with self._at("rules", rule.id):
            return _adapted(rule, self._rules[rule.id])

    def about_nothing(self, known: Collection[str]) -> list[str]:
        """Return warnings about rules of the site's own that it configures and nothing defines."""
        return [
            f"{self._path}, line {self._lines.of('rules', ident)}: {ident} is not defined: here it has no title, and "
            "there is no file with it (--rules-dir)"
            for ident, entry in self._rules.items()
            if _is_own(ident) and not _defines(entry) and ident not in known
        ]

    def _own(self, ident: str) -> list[Rule]:
        """Return the parts of a rule that the file defines; none if it is off, or if there is a mistake in it."""
        if self._rules[ident].get("severity") in (False, "off"):
            return []
        try:
            if not OWN_ID.fullmatch(ident):
                raise site_rules.RuleError("", "Its id must be U and a number, such as U10.")
            source = f"{self._path.name}, line {self._lines.of('rules', ident)}"
            return site_rules.rule_parts(ident, self._rules[ident], source)
        except site_rules.RuleError as error:
            line = self._lines.of("rules", ident, error.key)
            self.warnings.append(f"{self._path}, line {line}: {ident} is not applied. {error.message} {error.hint}")
            return []

    def _ignore(self, place: int, entry: Any, known: tuple[str, ...]) -> Ignore:
        with self._at("ignore", place):
            return _ignore(entry, known)

    @contextlib.contextmanager
    def _at(self, *keys: str | int) -> Iterator[None]:
        """Add the file and the line of what has these keys to an error."""
        try:
            yield
        except InspectorError as error:
            line = f", line {self._lines.of(*keys)}" if keys else ""
            raise InspectorError(f"{self._path}{line}: {error.message}", error.hint) from error


class _Lines:
    """The lines of a YAML document, by the keys and places that lead to a value."""

    def __init__(self, root: yaml.Node | None) -> None:
        self._root = root
        self.repeated: list[tuple[str, int]] = []
        """The keys of rules that are there more than once, and their lines."""
        for key, value in self._items(root):
            if key.value == "rules":
                keys: set[str] = set()
                for name, _ in self._items(value):
                    if name.value in keys:
                        self.repeated.append((name.value, name.start_mark.line + 1))
                    keys.add(name.value)

    def of(self, *keys: str | int) -> int:
        """Return the line of the last key that exists."""
        node, line = self._root, 1
        for wanted in keys:
            items = dict(enumerate(node.value)) if isinstance(node, yaml.SequenceNode) else {}
            key: yaml.Node | None = items.get(wanted) if isinstance(wanted, int) else None
            value = key
            for name, item in self._items(node):
                if name.value == wanted:
                    key, value = name, item
            if key is None:
                break
            line, node = key.start_mark.line + 1, value
        return line

    @staticmethod
    def _items(node: yaml.Node | None) -> list[tuple[yaml.ScalarNode, yaml.Node]]:
        if not isinstance(node, yaml.MappingNode):
            return []
        return [(key, value) for key, value in node.value if isinstance(key, yaml.ScalarNode)]


def _text(path: Path) -> bytes:
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
    return text


def _parsed(path: Path, text: bytes) -> tuple[Any, _Lines]:
    try:
        return yaml.safe_load(text), _Lines(yaml.compose(text, yaml.SafeLoader))
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        at = getattr(error, "problem_mark", None)
        where = f" in line {at.line + 1}" if at else ""
        raise InspectorError(f"The rules file {path} is not valid YAML{where}.", _EXAMPLE) from error


def _is_own(ident: Any) -> bool:
    return isinstance(ident, str) and is_own(ident)


def _defines(entry: Any) -> bool:
    """Whether an entry defines a rule; others configure one that is defined in Python."""
    return isinstance(entry, dict) and not {"title", "when", "missing", "message"}.isdisjoint(entry)


def _ended(ignore: Ignore) -> str:
    what = ", ".join(sorted(ignore.rules)) or "all rules"
    whom = f" for {', '.join(ignore.certnames)}" if ignore.certnames else ""
    return f"the exception for {what}{whom} ended on {clocks.date(ignore.until or 0).date()}"


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

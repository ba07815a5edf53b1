"""The Ruby master's auth.conf (Puppet 2.7 to 5): lines to rules. What the master does not take is refused."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from inspector import regex
from inspector.host.auth_conf import patterns
from inspector.host.auth_conf.rules import AuthConf, Entry, Refused, Rule, Sort, sort_of
from inspector.text import beginning

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

METHODS = frozenset({"find", "search", "save", "destroy"})
_PATH = regex.compile(r"path\s+((?:~\s+)?[^ ]+)\s*")
FIRST = regex.compile(r"(?m)^(?:[ \t]*(?:#.*)?\r?\n)*(?:\xef\xbb\xbf)?path\s+[~/]")
"""How a file of this kind begins."""
_DIRECTIVE = regex.compile(r"\s*(allow_ip|deny_ip|allow|deny|method|environment|authenticated|auth)\s+(.+?)(?:\s*#.*)?")
_LISTED = regex.compile(r"\s*,\s*")
_YES = ("yes", "on", "true")
_NO = ("no", "off", "false", "all", "any")
_SHORT = regex.compile(r"(?:[0-9]{1,3}\.){1,3}\*")
_LOOKS_LIKE_ADDRESS = regex.compile(r"(?:[0-9]{1,3}\.){3}[0-9]{1,3}")


@dataclass(slots=True)
class _Open:
    """A rule while it is read."""

    path: str
    line: int | None
    pattern: patterns.Pattern | None
    methods: list[str] = field(default_factory=list)
    environments: set[str] = field(default_factory=set)
    entries: list[Entry] = field(default_factory=list)
    authenticated: bool = True

    def rule(self) -> Rule:
        return Rule(
            f"path {'~ ' if self.pattern else ''}{self.path}", self.line, self.path, self.pattern,
            methods=frozenset(self.methods) or METHODS, entries=tuple(self.entries),
            environments=frozenset(self.environments), authenticated=self.authenticated,
        )  # fmt: skip


def read(path: Path, text: str) -> AuthConf:
    """Return the rules of an auth.conf, and those that the master adds. Raises Refused."""
    warnings: list[str] = []
    rules: list[_Open] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        if found := _PATH.fullmatch(line):
            rules.append(_opened(found[1], number))
        elif not (found := _DIRECTIVE.fullmatch(line)):
            raise Refused(number, f"{beginning(line.strip(), 60)!r} is no line of such a file")
        elif not rules:
            raise Refused(number, f"{found[1]} stands before the first path")
        else:
            for value in _LISTED.split(found[2].strip()):
                _add(rules[-1], found[1], value.strip(), number, warnings, path)
    for rule in rules:
        if unordered((entry.sort, entry.allows) for entry in rule.entries):
            raise Refused(rule.line or 1, f"path {rule.path} has both a domain and a regular expression")
    given = {rule.path for rule in rules}
    read_rules = [rule.rule() for rule in rules]
    return AuthConf(path, "ruby", (*read_rules, *(rule for rule in DEFAULTS if rule.path not in given)),
                    tuple(warnings))  # fmt: skip


def _opened(text: str, line: int) -> _Open:
    if text.startswith("/"):
        return _Open(text, line, None)
    if not text.startswith("~"):
        raise Refused(line, f"the path {beginning(text, 60)!r} begins neither with / nor with ~")
    expression = text[1:].lstrip()
    try:
        return _Open(expression, line, patterns.read(expression, "ruby"))
    except patterns.Invalid as error:
        raise Refused(line, f"the path is no regular expression: {error}") from error


def _add(rule: _Open, directive: str, value: str, line: int, warnings: list[str], path: Path) -> None:
    match directive:
        case "allow" | "deny":
            rule.entries.append(_entry(value, line, warnings, path, allows=directive == "allow"))
        case "allow_ip" | "deny_ip":
            if not _is_address(value):
                raise Refused(line, f"{beginning(value, 60)!r} is no address")
            rule.entries.append(Entry(directive == "allow_ip", Sort.ADDRESS, value, line))
        case "method":
            if value not in METHODS:
                raise Refused(line, f"the method {beginning(value, 60)!r} is none of {', '.join(sorted(METHODS))}")
            if value in rule.methods:
                raise Refused(line, f"the method {value} is given twice")
            rule.methods.append(value)
        case "environment":
            if value in rule.environments:
                raise Refused(line, f"the environment {beginning(value, 60)!r} is given twice")
            rule.environments.add(value)
        case _:
            if value not in _YES + _NO:
                raise Refused(line, f"{directive} is {beginning(value, 60)!r}, and none of {', '.join(_YES + _NO)}")
            rule.authenticated = value in _YES


def _entry(value: str, line: int, warnings: list[str], path: Path, *, allows: bool) -> Entry:
    word = "allow" if allows else "deny"
    sort = sort_of(value)
    if sort is Sort.ANY and not allows:
        sort = None
    if sort is None and _is_address(value):
        warnings.append(f"{path}:{line}: {word} has an address: only Puppet 2.7 takes it, later ones want {word}_ip")
        sort = Sort.ADDRESS
    elif _LOOKS_LIKE_ADDRESS.fullmatch(value):
        warnings.append(f"{path}:{line}: {word} has an address: all but Puppet 2.7 take it for a name")
    if sort is None:
        raise Refused(line, f"{word} has {beginning(value, 60)!r}, which is no name, domain or regular expression")
    return Entry(allows, sort, value, line)


def _is_address(value: str) -> bool:
    if _SHORT.fullmatch(value):
        value = ".".join((value.split(".")[:-1] + ["0"] * 3)[:4])
    try:
        ipaddress.ip_network(value, strict=False)
    except ValueError:
        return False
    return True


def unordered(entries: Iterable[tuple[Sort | None, bool]]) -> bool:
    """Whether the master cannot bring entries into an order: it compares a domain with a regular expression only if
    one of them allows and the other one denies."""
    found = {*entries}
    return any({(Sort.DOMAIN, allows), (Sort.PATTERN, allows)} <= found for allows in (True, False))


def _default(
    path: str, methods: str = "", allow: str = "*", *, pattern: bool = False, authenticated: bool = True
) -> Rule:
    expression = patterns.read(path, "ruby") if pattern else None
    entry = Entry(allows=True, sort=Sort.GROUP if "$" in allow else Sort.ANY, text=allow, line=None)
    opened = _Open(path, None, expression, methods.split(), authenticated=authenticated)
    return replace(opened.rule(), entries=(entry,) if allow else ())


def _defaults(master: str, ca: str) -> Iterator[Rule]:
    for name, method in (("catalog", "find"), ("node", "find"), ("report", "save")):
        yield _default(f"^{master}/{name}/([^/]+)$", method, "$1", pattern=True)
    yield _default(f"{master}/file")
    yield _default(f"{ca}/certificate_revocation_list/ca", "find")
    yield _default(f"{ca}/certificate/ca", "find", authenticated=False)
    yield _default(f"{ca}/certificate/", "find", authenticated=False)
    yield _default(f"{ca}/certificate_request", "find save", authenticated=False)
    yield _default(f"{master}/status", "find")


DEFAULTS: tuple[Rule, ...] = (
    *_defaults("", ""),
    _default("/v2.0/environments", "find"),
    *_defaults("/puppet/v3", "/puppet-ca/v1"),
    _default("/puppet/v3/environments", "find"),
    _default("/", allow="", authenticated=False),
)
"""The rules that the master adds, unless the file has the same path: those of Puppet 3.8, and those of 4 and 5."""

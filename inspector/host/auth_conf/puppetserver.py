"""Puppetserver's auth.conf: HOCON to rules. What puppetserver does not start with is refused."""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from inspector import regex
from inspector.host.auth_conf import hocon, patterns
from inspector.host.auth_conf.hocon import Node
from inspector.host.auth_conf.rules import GROUP, AuthConf, Entry, Refused, Rule, Sort, sort_of
from inspector.text import beginning

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_METHODS = ("delete", "get", "head", "post", "put")
_KEYS = {
    "authorization": ("version", "rules", "allow-header-cert-info"),
    "rule": ("match-request", "allow", "deny", "allow-unauthenticated", "sort-order", "name"),
    "match-request": ("path", "type", "method", "query-params"),
    "entry": ("certname", "extensions", "rbac"),
}
_INTEGER = regex.compile(r"[+-]?[0-9]{1,10}")
_DIGITS = 9
"""Digits of a number that Java takes for one in any case."""


def read(path: Path, text: str) -> AuthConf:
    """Return the rules of an auth.conf. Raises Refused."""
    try:
        root = hocon.parse(text)
    except hocon.Malformed as error:
        hint = "Write the values themselves where they are used." if "not followed" in error.reason else ""
        raise Refused(error.line, error.reason, hint) from error
    section = root.get("authorization")
    if section is None or section.value in (None, False):
        raise Refused(1, "there is no section `authorization`")
    section = _converted(section)
    return _Reader(path, text.splitlines()).section(section)


def in_order(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Return rules in the order in which puppetserver looks at them; names are compared as Java does it."""
    return tuple(sorted(rules, key=lambda rule: (rule.order or 0, rule.name.encode("utf-16-be", "surrogatepass"))))


def _converted(node: Node) -> Node:
    """Return a value as puppetserver has it: a text loses quotes within it, and is a number if it looks like one."""
    match node.value:
        case dict(fields):
            return Node({key: _converted(value) for key, value in fields.items()}, node.line)
        case list(items):
            return Node([_converted(item) for item in items], node.line)
        case str(text):
            return Node(_scalar(text, node.line), node.line)
    return node


def _scalar(text: str, line: int) -> str | int:
    if text.startswith('"') and text.endswith('"'):
        text = text[1:-1] if len(text) > 1 else '"'
        if text.startswith('"') and text.endswith('"'):
            raise Refused(line, "a text begins and ends with quotes within quotes")
    if _INTEGER.fullmatch(text) and -(2**31) <= int(text) < 2**31:
        return int(text)
    return text


@dataclass(slots=True)
class _Reader:
    path: Path
    lines: list[str]
    warnings: list[str] = field(default_factory=list)

    def section(self, section: Node) -> AuthConf:
        fields = section.value
        if not isinstance(fields, dict):
            raise Refused(section.line, "`authorization` is not an object")
        self._check_keys("authorization", fields, "authorization")
        headers = _value_of(fields, "allow-header-cert-info")
        if headers is not None and not isinstance(headers.value, bool):
            raise Refused(headers.line, "allow-header-cert-info is neither true nor false")
        version = fields.get("version")
        if version is None or type(version.value) is not int or version.value != 1:
            raise Refused(version.line if version else section.line, "the `version` of `authorization` is not 1")
        listed = fields.get("rules")
        if listed is None or not isinstance(listed.value, list):
            raise Refused(listed.line if listed else section.line, "`rules` of `authorization` is not a list")
        rules = [self._rule(node) for node in listed.value]
        self._check_names(rules)
        return AuthConf(
            self.path, "puppetserver", in_order(rules), tuple(self.warnings),
            headers=bool(headers and headers.value), list_line=self._list_line(listed),
        )  # fmt: skip

    def _list_line(self, listed: Node) -> int | None:
        """Return the line that ends with the bracket of the rules, if there is one."""
        line = self.lines[listed.line - 1].rstrip() if listed.line <= len(self.lines) else ""
        return listed.line if line.endswith("[") and not line.lstrip().startswith(("#", "//")) else None

    def _check_keys(self, kind: str, fields: dict[str, Node], what: str) -> None:
        """Warn of keys that puppetserver does not know: it ignores them."""
        for key, node in fields.items():
            if key not in _KEYS[kind]:
                near = difflib.get_close_matches(key, _KEYS[kind], 1)
                meant = f"; did you mean {near[0]!r}?" if near else ""
                self.warnings.append(
                    f"{self.path}:{node.line}: puppetserver ignores the key {beginning(key, 60)!r} of {what}{meant}"
                )

    def _check_names(self, rules: list[Rule]) -> None:
        lines: dict[str, int | None] = {}
        for rule in rules:
            if rule.name in lines:
                before = f", as that of line {lines[rule.name]}"
                raise Refused(rule.line or 1, f"a rule has the name {beginning(rule.name, 60)!r}{before}")
            lines[rule.name] = rule.line

    def _rule(self, node: Node) -> Rule:
        fields = node.value
        if not isinstance(fields, dict):
            raise Refused(node.line, "a rule is not an object")
        name = _value_of(fields, "name")
        what = f"the rule {beginning(name.value, 60)!r}" if name and isinstance(name.value, str) else "a rule"
        self._check_keys("rule", fields, what)
        request = _value_of(fields, "match-request")
        if request is None:
            raise Refused(node.line, f"{what} has no match-request")
        if not isinstance(request.value, dict):
            raise Refused(request.line, f"match-request of {what} is not an object")
        self._check_keys("match-request", request.value, f"match-request of {what}")
        for key in ("path", "type"):
            if key not in request.value:
                raise Refused(request.line, f"match-request of {what} has no {key}")
        order = _value_of(fields, "sort-order")
        if order is None or name is None:
            raise Refused(node.line, f"{what} has no {'name' if order else 'sort-order'}")
        if type(order.value) is not int or not 1 <= order.value <= 999:
            raise Refused(order.line, f"the sort-order of {what} is no number from 1 to 999")
        unauthenticated = self._unauthenticated(fields, node, what)
        path, pattern = _path(request.value, what)
        methods = _methods(request.value.get("method"), what)
        if not isinstance(name.value, str):
            raise Refused(name.line, "the name of a rule is not a text")
        rule = Rule(
            name.value, node.line, path, pattern, order.value, methods, self._entries(fields, what),
            unauthenticated=unauthenticated, query=_query(_value_of(request.value, "query-params"), what),
        )  # fmt: skip
        if pattern:
            _check_groups(rule, what)
        return rule

    def _unauthenticated(self, fields: dict[str, Node], node: Node, what: str) -> bool:
        given = _value_of(fields, "allow-unauthenticated")
        named = [key for key in ("allow", "deny") if key in fields]
        if given and named:
            raise Refused(given.line, f"{what} has both allow-unauthenticated and {named[0]}")
        if not given and not named:
            raise Refused(node.line, f"{what} has neither allow nor deny")
        if given and given.value is not True:
            self.warnings.append(
                f"{self.path}:{given.line}: {what} allows nobody: its allow-unauthenticated is not true"
            )
        return given is not None and given.value is True

    def _entries(self, fields: dict[str, Node], what: str) -> tuple[Entry, ...]:
        """Return the entries in the order in which puppetserver compares them: those of ``deny`` come first."""
        entries: list[Entry] = []
        for key in ("deny", "allow"):
            if (given := fields.get(key)) is None:
                continue
            listed = given.value if isinstance(given.value, list) else [given]
            for item in listed:
                where = f"an entry of {key} of {what}"
                if isinstance(item.value, dict):
                    self._check_keys("entry", item.value, where)
                entries.append(read_entry(item, where, allows=key == "allow"))
        return tuple(entries)


def _path(request: dict[str, Node], what: str) -> tuple[str, patterns.Pattern | None]:
    kind, path = request["type"], request["path"]
    if not isinstance(kind.value, str) or kind.value not in ("path", "regex"):
        raise Refused(kind.line, f"the type of {what} is neither `path` nor `regex`")
    if not isinstance(path.value, str):
        raise Refused(path.line, f"the path of {what} is not a text")
    if kind.value == "path":
        return path.value, None
    try:
        return path.value, patterns.read(path.value, "java")
    except patterns.Invalid as error:
        raise Refused(path.line, f"the path of {what} is no regular expression: {error}") from error


def _methods(given: Node | None, what: str) -> frozenset[str] | None:
    if given is None:
        return None
    listed = given.value if isinstance(given.value, list) else [given]
    names = [str(node.value).lower() if isinstance(node.value, str) else "" for node in listed]
    if not all(name in _METHODS for name in names):
        raise Refused(given.line, f"a method of {what} is none of {', '.join(_METHODS)}")
    return frozenset(names)


def _query(given: Node | None, what: str) -> dict[str, frozenset[str]] | None:
    if given is None:
        return None
    if not isinstance(given.value, dict):
        raise Refused(given.line, f"query-params of {what} is not an object")
    query = {}
    for key, node in given.value.items():
        values = node.value if isinstance(node.value, list) else [node]
        if not all(isinstance(value.value, str) for value in values):
            raise Refused(node.line, f"a value of the query parameter {beginning(key, 60)!r} of {what} {_NO_TEXT}")
        namespace, slash, name = key.partition("/")
        query[name if slash else namespace] = frozenset(str(value.value) for value in values)
    return query


def _check_groups(rule: Rule, what: str) -> None:
    """Refuse a ``$2`` that is not in the path."""
    groups = rule.pattern.groups if rule.pattern else None
    for entry in rule.entries:
        for found in GROUP.finditer(entry.text) if entry.sort is not Sort.EXTENSIONS else ():
            if len(found[1]) > _DIGITS or (groups is not None and int(found[1]) > groups):
                raise Refused(
                    entry.line or 1,
                    f"{what} has {found[0][:20]}, but the regular expression of its path has no such group",
                )


# -- the entries of allow and deny -----------------------------------------------------------------------------

_NO_TEXT = "is no text: true and false need quotes, and a number is none even with quotes"
_ALT_NAMES = ("dns-name", "ip", "other-name", "rfc822-name", "x400-address", "directory-name", "edi-party-name", "uri",
              "registered-id")  # fmt: skip
_PERMISSION = regex.compile(r"[^\n]*:[^\n]*:[^\n]*")


def read_entry(node: Node, where: str, *, allows: bool) -> Entry:
    """Return an entry, which is a text or an object. Raises Refused; ``where`` says in words where it stands."""
    fields = node.value
    if isinstance(fields, str):
        return _named(fields, node.line, where, allows=allows)
    if not isinstance(fields, dict):
        raise Refused(node.line, f"{where} is neither a text nor an object")
    certname, extensions, rbac = (_value_of(fields, name) for name in _KEYS["entry"])
    if rbac is not None and not _is_permission(rbac):
        raise Refused(rbac.line, f"rbac of {where} is no permission")
    if (certname is extensions is rbac is None) or (certname and extensions):
        raise Refused(node.line, f"{where} must have exactly one of certname, extensions and rbac")
    if certname is not None and not isinstance(certname.value, str):
        raise Refused(certname.line, f"the certname of {where} is not a text")
    found = _of_extensions(extensions, where, allows=allows) if extensions else None
    if rbac is not None and not allows:
        raise Refused(rbac.line, f"{where} has rbac, which cannot deny")
    if rbac is not None:
        return Entry(allows, Sort.PERMISSION, "a permission of a role", node.line)
    return found or _named(str(certname and certname.value), node.line, where, allows=allows)


def _value_of(fields: dict[str, Node], key: str) -> Node | None:
    """Return a value that is neither missing nor null nor false."""
    node = fields.get(key)
    return None if node is None or node.value is None or node.value is False else node


def _named(text: str, line: int, where: str, *, allows: bool) -> Entry:
    sort = sort_of(text)
    if sort is None:
        raise Refused(line, f"{where} is no name, no domain and no regular expression: {beginning(text, 60)!r}")
    return Entry(allows, sort, text, line)


def _is_permission(node: Node) -> bool:
    fields = node.value
    if not isinstance(fields, dict) or [*fields] != ["permission"]:
        return False
    text = fields["permission"].value
    return isinstance(text, str) and _PERMISSION.fullmatch(text) is not None


def _of_extensions(node: Node, where: str, *, allows: bool) -> Entry:
    """Return an entry for certificates with extensions. Raises Refused."""
    if not isinstance(node.value, dict):
        raise Refused(node.line, f"extensions of {where} is not an object")
    extensions: dict[str, tuple[str, ...]] = {}
    alt_names: dict[str, tuple[str, ...]] | None = None
    for key, value in node.value.items():
        if key != "subject-alt-name":
            extensions[key] = _texts(value, key, where)
        elif not isinstance(value.value, dict) or not set(value.value) <= {*_ALT_NAMES}:
            raise Refused(value.line, f"subject-alt-name of {where} has something else than kinds of names")
        else:
            alt_names = {kind: _texts(names, kind, where) for kind, names in value.value.items()}
    shown = [f"{key} {' or '.join(values)}" for key, values in [*extensions.items(), *(alt_names or {}).items()]]
    text = f"extensions {', '.join(shown)}" if shown else "any extensions"
    return Entry(allows, Sort.EXTENSIONS, text, node.line, extensions, alt_names)


def _texts(node: Node, key: str, where: str) -> tuple[str, ...]:
    listed = node.value if isinstance(node.value, list) else [node]
    texts = tuple(item.value for item in listed if isinstance(item.value, str))
    if len(texts) < len(listed):
        raise Refused(node.line, f"the extension {beginning(key, 60)!r} of {where} {_NO_TEXT}")
    return texts

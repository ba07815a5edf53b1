"""Decide as the Ruby master does: the first rule for a request that is allowed or denied decides; the most specific
entry of it counts."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, unquote

from inspector import regex
from inspector.explain.authorization.decision import Decision, Verdict, is_for, name_parts
from inspector.host.auth_conf import patterns
from inspector.host.auth_conf.ruby import unordered
from inspector.host.auth_conf.rules import Sort, sort_of
from inspector.text import beginning

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inspector.explain.authorization.decision import Client, Question
    from inspector.host.auth_conf.rules import AuthConf, Entry, Rule
    from inspector.regex import Match

_PREFIXES = ("/puppet/v3/", "/puppet-ca/v1/")
_SINGULAR = ("facts", "status", "certificate_status")
_PLURAL = regex.compile(r"(?:s|_search)$")
_GROUP = regex.compile(r"\$([0-9])")
_WORD = regex.compile(r"\w+")
_LONG = 80
"""Characters of a name that are quoted."""


class _Unasked(ValueError):
    """The master answers without asking auth.conf, for this reason."""


class _Fails(Exception):
    """The master ends with an error, for this reason."""


def decide(conf: AuthConf, question: Question) -> Decision:
    """Return what a Ruby master with these rules says to a request."""
    try:
        methods, path, environment = _asked(question)
    except _Unasked as answer:
        return Decision(Verdict.UNASKED, None, str(answer))
    except patterns.NotDecided as error:
        return Decision(Verdict.UNDECIDED, None, str(error))
    decisions = [_of_method(conf, question.client, method, path, environment) for method in methods]
    for verdict in (Verdict.FAILS, Verdict.ALLOWED, Verdict.UNDECIDED):
        for decision in decisions:
            if decision.verdict is verdict:
                return decision
    return decisions[0]


def _asked(question: Question) -> tuple[tuple[str, ...], str, str | None]:
    """Return the indirector's methods, one of which must be allowed, the path and the environment. Raises _Unasked."""
    path, _, query = question.target.partition("?")
    prefix = next((each for each in _PREFIXES if path.startswith(each)), None)
    environment = next((value for key, value in parse_qsl(query, encoding="latin-1") if key == "environment"), None)
    if path in ("/v2.0/environments", "/puppet/v3/environments"):
        return ("find",), path, environment
    rest = path[len(prefix) :] if prefix else path[1:]
    if not prefix:
        environment, _, rest = rest.partition("/")
        environment = unquote(environment)
    indirection, _, key = rest.partition("/")
    if not _WORD.fullmatch(indirection) or not key:
        raise _Unasked("the path names no object: 400")
    plural = indirection not in _SINGULAR and (indirection == "inventory" or bool(_PLURAL.search(indirection)))
    methods = _methods(question.method, plural=plural)
    if plural:
        indirection = regex.sub(r"statuse$", "status", _PLURAL.sub("", indirection))
    key = unquote(key, errors="replace")
    if ".." in key.split("/"):
        raise patterns.NotDecided("what becomes of `..` in a path depends on the web server")
    return methods, f"{prefix or '/'}{indirection}/{key}", environment


def _methods(method: str, *, plural: bool) -> tuple[str, ...]:
    known = {"GET": ("search",)} if plural else {
        "GET": ("find",), "POST": ("find",), "PUT": ("save",), "DELETE": ("destroy",), "HEAD": ("find", "save"),
    }  # fmt: skip
    if method not in known:
        raise _Unasked("the master does not support the method: 400")
    return known[method]


def _of_method(conf: AuthConf, client: Client, method: str, path: str, environment: str | None) -> Decision:
    for rule in conf.rules:
        if rule.methods is not None and method not in rule.methods:
            continue
        if rule.environments and environment not in rule.environments:
            continue
        if rule.authenticated and client.name is None:
            continue
        try:
            groups = _groups(rule, path)
            if groups is not None:
                return _by_rule(rule, groups, client)
        except patterns.NotDecided as error:
            return Decision(Verdict.UNDECIDED, rule, str(error))
        except _Fails as error:
            return Decision(Verdict.FAILS, rule, str(error))
    return Decision(Verdict.DENIED, None, "no rule is for this request")


def _groups(rule: Rule, path: str) -> tuple[str | None, ...] | None:
    if rule.pattern is None:
        # A path at the beginning of a line.
        return () if path.startswith(rule.path) or f"\n{rule.path}" in path else None
    return rule.pattern.search(path, groups=any(entry.sort is Sort.GROUP for entry in rule.entries))


def _by_rule(rule: Rule, groups: Sequence[str | None], client: Client) -> Decision:
    filled = list(_filled(rule, groups))
    for entry, sort, text in filled:
        if sort is None:
            return Decision(Verdict.FAILS, rule, f"{entry} becomes {beginning(text, _LONG)!r}, which is no name: 400")
    if unordered((sort, entry.allows) for entry, sort, _ in filled):
        return Decision(Verdict.FAILS, rule, "it has both a domain and a regular expression: 400")
    for entry in rule.entries:
        if entry.sort is Sort.ANY:
            return Decision(Verdict.ALLOWED, rule, str(entry), entry)
    doubted: Entry | None = None
    found: tuple[Entry, str] | None = None
    for entry, sort, text in _most_specific_first(filled):
        expression = _expression(text) if sort is Sort.PATTERN else None
        if sort is Sort.ADDRESS or client.name is None:
            doubted = doubted or entry
        elif _is_for(expression, sort, text, client.name):
            found = entry, text
            break
    allowed = found is not None and found[0].allows
    if doubted and any(entry.allows != allowed for entry in _before(rule, found and found[0], client)):
        about = "the address" if doubted.sort is Sort.ADDRESS else "the name in the DNS"
        raise patterns.NotDecided(f"{doubted} depends on {about} of the client, as the master sees it")
    if found is None:
        return Decision(Verdict.DENIED, rule, _nobody(rule, groups, client))
    entry, text = found
    why = f"{entry}, which is {beginning(text, _LONG)}" if entry.sort is Sort.GROUP else str(entry)
    return Decision(Verdict.ALLOWED if allowed else Verdict.DENIED, rule, why, entry)


def _before(rule: Rule, found: Entry | None, client: Client) -> Iterator[Entry]:
    """Yield the entries that may be for a client of which only the master knows the address, or the name."""
    for entry in rule.entries:
        if entry is not found and (entry.sort is Sort.ADDRESS or client.name is None):
            yield entry


def _nobody(rule: Rule, groups: Sequence[str | None], client: Client) -> str:
    mine = f"no entry is for {beginning(client.name, _LONG)}" if client.name else "it has no entry"
    texts = "".join(entry.text for entry in rule.entries if entry.sort is Sort.GROUP)
    parts = [f"${n} is {beginning(group or '', _LONG)}" for n, group in enumerate(groups, 1) if f"${n}" in texts]
    return "; ".join([mine, *parts])


def _filled(rule: Rule, groups: Sequence[str | None]) -> Iterator[tuple[Entry, Sort | None, str]]:
    """Yield the entries with the parts of the path in the place of ``$1``."""

    def group(found: Match[str]) -> str:
        number = int(found[1])
        return (groups[number - 1] if 0 < number <= len(groups) else None) or ""

    for entry in rule.entries:
        if entry.sort is Sort.GROUP:
            pieces = name_parts(entry.text)[::-1]
            text = ".".join(_GROUP.sub(group, piece) for piece in pieces)
            sort = sort_of(text)
            yield entry, None if text == "*" else sort, text
        else:
            yield entry, entry.sort, entry.text


def _most_specific_first(
    filled: Sequence[tuple[Entry, Sort | None, str]],
) -> list[tuple[Entry, Sort | None, str]]:
    """Return entries in the order in which the master compares them."""
    expressions = any(sort is Sort.PATTERN for _, sort, _ in filled)

    def place(each: tuple[Entry, Sort | None, str]) -> tuple[bool, bool, int, bool]:
        entry, sort, text = each
        inexact = sort in (Sort.DOMAIN, Sort.PATTERN) or (sort is Sort.ADDRESS and ("/" in text or "*" in text))
        # Between a domain and a regular expression it only counts which one denies.
        length = len(name_parts(text)) - 1 if sort is Sort.DOMAIN and not expressions else 0
        return inexact, sort is not Sort.ADDRESS, -length, entry.allows

    return sorted(filled, key=place)


def _expression(text: str) -> patterns.Pattern:
    try:
        return patterns.read(text[1:-1], "ruby")
    except patterns.Invalid as error:
        raise _Fails(f"{beginning(text, _LONG)} is no regular expression: {error}: 400") from error


def _is_for(expression: patterns.Pattern | None, sort: Sort | None, text: str, name: str) -> bool:
    if expression is not None:
        return expression.search(name, groups=False) is not None
    return is_for(sort, text, name)

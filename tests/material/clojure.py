"""As much of Clojure as tests are written in that consist of data: forms are read, and the calls of some functions
evaluated. What else there is raises Unknown."""

from __future__ import annotations

import ast
import re
from typing import Any

_TOKEN = re.compile(r'[\s,]+|;[^\n]*|#_|#(?=[{"(])|"(?:[^"\\]|\\.)*"|[()\[\]{}\'`@^~]|[^\s,()\[\]{}"\';`@^~]+')
_CLOSING = {"(": ")", "[": "]", "{": "}"}
_CONSTANTS = {"nil": None, "true": True, "false": False}


class Unknown(Exception):
    """A form or a name that is not known."""


class Symbol(str):
    """A name."""

    __slots__ = ()


class Keyword(str):
    """``:name``, without the colon. As the key of a mapping it is the text itself."""

    __slots__ = ()


class Vector(list[Any]):
    """``[...]``; a list is a form to evaluate."""


type Environment = dict[str, Any]


def read(text: str) -> list[Any]:
    """Return the forms of a file."""
    tokens = [token for token in _TOKEN.findall(text) if not token.isspace() and token[0] not in ",;'`@^~"]
    forms, at = [], 0
    while at < len(tokens):
        form, at = _form(tokens, at)
        forms.append(form)
    return forms


def _form(tokens: list[str], at: int) -> tuple[Any, int]:
    token = tokens[at]
    if token == "#_":
        _, at = _form(tokens, at + 1)
        return _form(tokens, at)
    if token == "#" and tokens[at + 1] == "(":
        form, at = _form(tokens, at + 1)
        return [Symbol("fn"), Vector([Symbol("%")]), form], at
    if token == "#" and tokens[at + 1].startswith('"'):
        return _form(tokens, at + 1)
    if token not in (*_CLOSING, "#"):
        return _atom(token), at + 1
    at += 1 + (token == "#")
    items, closing = [], _CLOSING[tokens[at - 1]]
    while tokens[at] != closing:
        item, at = _form(tokens, at)
        items.append(item)
    if token == "{":
        return dict(zip(map(_key, items[::2]), items[1::2], strict=False)), at + 1
    return (items if token == "(" else Vector(items)), at + 1


def _key(value: Any) -> Any:
    return str(value) if isinstance(value, str) else value


def _atom(token: str) -> Any:
    if token.startswith('"'):
        return re.sub(r'\\(["\\ntr])', lambda found: ast.literal_eval(f'"\\{found[1]}"'), token[1:-1])
    if re.fullmatch(r"-?\d+", token):
        return int(token)
    if token in _CONSTANTS:
        return _CONSTANTS[token]
    return Keyword(token[1:]) if token.startswith(":") else Symbol(token)


def evaluate(form: Any, names: Environment) -> Any:
    """Return the value of a form. Raises Unknown."""
    match form:
        case Symbol():
            if form not in names:
                raise Unknown(form)
            return names[form]
        case Vector():
            return Vector(evaluate(item, names) for item in form)
        case dict():
            return {key: evaluate(value, names) for key, value in form.items()}
        case [Symbol("let"), Vector() as pairs, *body]:
            inner = dict(names)
            for name, value in zip(pairs[::2], pairs[1::2], strict=True):
                inner[name] = evaluate(value, inner)
            return _all(body, inner)
        case [Symbol("doseq"), Vector() as pairs, *body]:
            return [_all(body, names | {pairs[0]: item}) for item in evaluate(pairs[1], names)]
        case [Symbol("testing"), _, *body]:
            return _all(body, names)
        case [Symbol("->"), first, *calls]:
            for call in calls:
                first = [call[0], first, *call[1:]] if isinstance(call, list) else [call, first]
            return evaluate(first, names)
        case [Symbol("partial"), function, *given]:
            bound, values = evaluate(function, names), [evaluate(item, names) for item in given]
            return lambda *more: bound(*values, *more)
        case [Symbol("fn"), Vector() as parameters, *body]:
            return lambda *given: _all(body, names | dict(zip(parameters, given, strict=True)))
        case [Symbol("comp"), outer, inner]:
            last, first = evaluate(outer, names), evaluate(inner, names)
            return lambda *given: last(first(*given))
        case [function, *given]:
            called = evaluate(function, names)
            if not callable(called):
                raise Unknown(str(function))
            return called(*(evaluate(item, names) for item in given))
        case list():
            raise Unknown("an empty form")
    return form


def _all(body: list[Any], names: Environment) -> Any:
    result = None
    for form in body:
        result = evaluate(form, names)
    return result


def _associated(where: dict[str, Any], path: list[Any], value: Any) -> dict[str, Any]:
    first, *rest = map(_key, path)
    return where | {first: _associated(where.get(first, {}), rest, value) if rest else value}


def _dissociated(where: dict[str, Any], path: list[Any]) -> dict[str, Any]:
    first, *rest = map(_key, path)
    if rest:
        return where | {first: _dissociated(where[first], rest)}
    return {name: value for name, value in where.items() if name != first}


def _assoc(where: Any, key: Any, value: Any) -> Any:
    if isinstance(where, dict):
        return _associated(where, [key], value)
    return Vector([*where[:key], value, *where[key + 1 :]])


CORE: Environment = {
    "-": lambda one, other: one - other,
    "=": lambda one, other: one == other,
    "assoc": _assoc,
    "assoc-in": _associated,
    "dissoc": lambda where, key: _dissociated(where, [key]),
    "dissoc-in": _dissociated,
    "merge": lambda *all_: {key: value for each in all_ for key, value in (each or {}).items()},
    "concat": lambda *lists: Vector(item for each in lists for item in each),
    "count": len,
    "not": lambda value: not value,
    "nth": lambda items, at: items[at],
    "range": lambda begin, end: Vector(range(begin, end)),
    "reverse": lambda items: Vector(reversed(items)),
    "str": lambda *parts: "".join(map(str, parts)),
    "str/join": lambda between, parts: between.join(parts),
    "str/split": lambda text, between: Vector(re.split(between, text)),
    "take": lambda number, items: Vector(items[:number]),
}
"""Functions of the language itself."""

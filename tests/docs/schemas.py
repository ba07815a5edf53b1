"""The schemas in docs/json, made of the types that the JSON is made of: their fields, types and docstrings."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import json
import textwrap
from enum import Enum
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeAliasType, Union, get_args, get_origin, get_type_hints

import msgspec

from inspector.compare import plain, why_text
from inspector.rehearsal import plain as rehearsal
from tests.support.places import SCHEMAS

_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}
_LIMITS = {"ge": "minimum", "pattern": "pattern", "min_length": "minLength"}


class Document(NamedTuple):
    """What a command prints as JSON."""

    title: str
    about: str
    type: Any
    """The type of all of it; of several, that of each."""


DOCUMENTS = {
    "diff": Document(
        "puppet-inspector diff --json",
        "What is different between two runs, or two of several nodes each. Secrets are compared and masked.",
        plain.Pair | plain.Nodes,
    ),
    "rehearse": Document(
        "puppet-inspector rehearse --json",
        "Another master's answers to recorded agents beside those they received. Secrets are compared and masked.",
        rehearsal.Rehearsed | rehearsal.OnFacts,
    ),
    "why": Document(
        "puppet-inspector why --json",
        "Why a resource changed, failed or stayed as it was. Secrets are masked.",
        why_text.Explained,
    ),
}


def schema(name: str) -> str:
    """Return the text of a schema."""
    title, about, kind = DOCUMENTS[name]
    defs: dict[str, Any] = {}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"{name}.schema.json", "title": title}
    made = head | {"description": about} | _schema(kind, defs) | ({"$defs": defs} if defs else {})
    return json.dumps(made, indent=2, ensure_ascii=False) + "\n"


def write() -> None:
    """Write all of them."""
    for name in DOCUMENTS:
        (SCHEMAS / f"{name}.schema.json").write_text(schema(name), encoding="utf-8")


def _schema(kind: Any, defs: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a type; those of its parts that have fields are added to ``defs``."""
    origin, arguments = get_origin(kind), get_args(kind)
    if isinstance(kind, TypeAliasType):
        return _schema(kind.__value__, defs)
    if origin is Annotated:
        found = _schema(arguments[0], defs)
        for meta in arguments[1:]:
            found |= {key: value for name, key in _LIMITS.items() if (value := getattr(meta, name)) is not None}
        return found
    if origin in (Union, UnionType):
        return _any_of([_schema(each, defs) for each in arguments if each is not msgspec.UnsetType])
    if origin is Literal:
        return {"enum": [*arguments]}
    if origin is dict:
        keys, values = (_schema(each, defs) for each in arguments)
        named = {"propertyNames": keys} if "enum" in keys else {}
        return {"type": "object"} | named | ({"additionalProperties": values} if values else {})
    if origin is tuple and arguments[-1] is not ...:
        length = len(arguments)
        return {"type": "array", "prefixItems": [_schema(each, defs) for each in arguments], "minItems": length,
                "maxItems": length}  # fmt: skip
    if origin is not None:  # a sequence
        return {"type": "array", "items": _schema(arguments[0], defs)}
    if kind is Any:
        return {}
    if issubclass(kind, Enum):
        return {"enum": [each.value for each in kind]}
    return {"type": _TYPES[kind]} if kind in _TYPES else _reference(kind, defs)


def _any_of(found: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the schema of what is one of several, in as few words as possible."""
    if len(found) == 1:
        return found[0]
    null = {"type": "null"} in found
    others = [each for each in found if each != {"type": "null"}]
    if len(others) == 1 and null and isinstance(others[0].get("type"), str):
        return others[0] | {"type": [others[0]["type"], "null"]}
    if all("enum" in each for each in others):
        return {"enum": [choice for each in others for choice in each["enum"]] + [None] * null}
    if all([*each] == ["type"] for each in found):
        return {"type": [each["type"] for each in found]}
    return {"anyOf": found}


def _reference(kind: Any, defs: dict[str, Any]) -> dict[str, Any]:
    name = kind.__name__.strip("_")
    if name not in defs:
        defs[name] = None  # it may be in itself
        defs[name] = _object(kind, defs)
    assert defs[name] is None or defs[name].get("description") == _sentence(kind.__doc__), f"two are called {name}"
    return {"$ref": f"#/$defs/{name}"}


def _object(kind: Any, defs: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of what has fields: a struct, a dataclass."""
    hints, about = get_type_hints(kind, include_extras=True), _described(kind)
    properties, required = {}, []
    for name, key in _keys(kind):
        properties[key] = _schema(hints[name], defs) | ({"description": about[name]} if name in about else {})
        if msgspec.UnsetType not in get_args(hints[name]):
            required.append(key)
    return {"type": "object", "description": _sentence(kind.__doc__), "additionalProperties": False,
            "required": required, "properties": properties}  # fmt: skip


def _keys(kind: Any) -> list[tuple[str, str]]:
    """Return the fields of a type, and their keys in JSON."""
    if dataclasses.is_dataclass(kind):
        return [(field.name, field.name) for field in dataclasses.fields(kind)]
    return [(field.name, field.encode_name) for field in msgspec.structs.fields(kind)]


@cache
def _described(kind: type) -> dict[str, str]:
    """Return the docstrings of a type's fields."""
    found = {}
    for each in reversed([base for base in kind.__mro__ if base.__module__.startswith("inspector")]):
        (body,) = ast.parse(textwrap.dedent(inspect.getsource(each))).body
        assert isinstance(body, ast.ClassDef)
        for field, text in zip(body.body, body.body[1:], strict=False):
            match field, text:
                case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(about))):
                    found[name] = _sentence(about)
    return found


def _sentence(text: str | None) -> str:
    """Return a docstring as one line of a page that knows no reStructuredText."""
    return " ".join((text or "").split()).replace("``", "`")

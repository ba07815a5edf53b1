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

from inspector import columns
from inspector.cli import fix, merge, reduce, rules, share, tables
from inspector.compare import plain, why_text
from inspector.doctor import migration_text
from inspector.doctor import report as doctor
from inspector.explain import bootstrap_text, puppetdb_text
from inspector.explain.authorization import decision_text as authorization
from inspector.explain.readiness import survey_text as readiness
from inspector.fleet.queries.query import DescribedQuery
from inspector.fleet.trust import text as trust
from inspector.formats import json_output, lossless
from inspector.model import Closed, Leg
from inspector.rehearsal import plain as rehearsal
from inspector.report import fields as report
from inspector.summaries import inventory, listing
from inspector.summaries.summary import RunBrief
from tests.support.places import SCHEMAS

_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}
_LIMITS = {"ge": "minimum", "pattern": "pattern", "min_length": "minLength"}


class Document(NamedTuple):
    """What a command prints as JSON."""

    command: str
    about: str
    type: Any
    """The type of all of it; of several, that of each."""


DOCUMENTS = {
    "auth": Document(
        "auth --json",
        "What an auth.conf says to requests, or what another one would say instead.",
        authorization.PlainTraffic,
    ),
    "bootstrap": Document(
        "bootstrap --json",
        "The certificate bootstrap of each agent, state by state.",
        list[bootstrap_text.PlainBootstrap],
    ),
    "captures": Document(
        "captures --json",
        "The captures in a directory, the most recently written one last.",
        list[inventory.PlainCapture],
    ),
    "certificates": Document(
        "certificates --json",
        "The certificates and CRLs of a fleet; with --what-if, what a case does to its nodes.",
        trust.Listed | trust.Supposed,
    ),
    "check": Document(
        "check CAPTURE... --json", "Every deviation from the protocol in the captures.", json_output.Checked
    ),
    "diff": Document(
        "diff --json",
        "What is different between two runs, or two of several nodes each. Secrets are compared and masked.",
        plain.Pair | plain.Nodes,
    ),
    "doctor": Document(
        "doctor --json",
        "Problems of the agents of a capture, of directories and of a live master; with --compare, what differs "
        "between two CAs.",
        doctor.Examined | migration_text.PlainMigration,
    ),
    "export": Document(
        "export --format jsonl",
        "One record of a capture in full, as `show --json` prints it, with the bodies as on the wire; or a connection, "
        "before the first record that used it. Secrets are masked without --with-secrets.",
        json_output.PlainExchange | json_output.PlainHandshake | json_output.PlainGap | lossless.ConnectionLine,
    ),
    "fix": Document("fix --json", "What becomes of each CRL of a CA's directory.", fix.Planned),
    "list": Document(
        "list CAPTURE --json",
        "The records of a capture that match the filter, one summary each, in order.",
        list[listing.Row],
    ),
    "merge": Document("captures merge --json", "What was made of several captures.", merge.PlainMerged),
    "queries": Document("sql --list --json", "The named queries.", list[DescribedQuery]),
    "puppetdb": Document(
        "puppetdb --json",
        "What masters asked of PuppetDB and stored there, by the runs that caused it. Secrets are masked.",
        puppetdb_text.PlainJoined,
    ),
    "readiness": Document(
        "readiness --json",
        "What a newer version removed or changed, and which nodes it concerns as far as was recorded.",
        readiness.PlainSurvey,
    ),
    "reduce": Document("reduce --json", "The capture that was made, and that it shows the finding.", reduce.Reduced),
    "rehearse": Document(
        "rehearse --json",
        "Another master's answers to recorded agents beside those they received. Secrets are compared and masked.",
        rehearsal.Rehearsed | rehearsal.OnFacts,
    ),
    "report": Document("report --json", "The answer of a report, and the runs that it is about.", report.PlainReport),
    "rules": Document("rules test --json", "What was found when a site's own rules were tried.", rules.TriedRules),
    "runs": Document(
        "runs CAPTURE --json",
        "The agent runs of a capture, in the order in which they began.",
        list[json_output.PlainRun],
    ),
    "share": Document("share --json", "The capture that was made.", share.Shared),
    "show": Document(
        "show CAPTURE SEQ --json",
        "One record of a capture in full: an exchange, a failed handshake, or a gap.",
        json_output.PlainExchange | json_output.PlainHandshake | json_output.PlainGap,
    ),
    "tables": Document(
        "tables --json", "What became of each capture, and what only several of them show.", tables.Tables
    ),
    "why": Document(
        "why --json", "Why a resource changed, failed or stayed as it was. Secrets are masked.", why_text.Explained
    ),
}
OF_COLUMNS: dict[type, type[msgspec.Struct]] = {json_output.PlainRun: RunBrief}
"""Types whose JSON has columns (``inspector.columns``) beside their fields."""
SPARSE = (lossless.ConnectionLine, Closed, Leg)
"""Types of which the JSON has only what is known."""


def schema(name: str) -> str:
    """Return the text of a schema."""
    command, about, kind = DOCUMENTS[name]
    defs: dict[str, Any] = {}
    head = {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": f"{name}.schema.json",
            "title": f"puppet-inspector {command}", "description": f"{about} Keys are only ever added."}  # fmt: skip
    made = head | _schema(kind, defs) | ({"$defs": defs} if defs else {})
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
    if kind is bytes:
        return {"type": "string", "contentEncoding": "base64"}
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
    properties: dict[str, Any] = {}
    for column in columns.of(OF_COLUMNS[kind]) if kind in OF_COLUMNS else ():
        _add(column, properties)
    required = [*properties]
    for name, key in _keys(kind):
        properties[key] = _schema(hints[name], defs) | ({"description": about[name]} if name in about else {})
        unknown = kind in SPARSE and (NoneType in get_args(hints[name]) or get_origin(hints[name]) is tuple)
        if not unknown and msgspec.UnsetType not in get_args(hints[name]):
            required.append(key)
    return {"type": "object", "description": _sentence(kind.__doc__), "additionalProperties": False,
            "required": required, "properties": properties}  # fmt: skip


def _add(column: columns.Column, properties: dict[str, Any]) -> None:
    """Add a column."""
    *within, key = column.key
    for outer in within:
        found = properties.setdefault(outer, {"type": "object", "additionalProperties": False, "required": []})
        found["required"].append(key)
        properties = found.setdefault("properties", {})
    types = [columns.Utc] if column.timed else column.types
    about = f"{column.meaning}{' In seconds.' if column.unit == 's' else ''}"
    properties[key] = _any_of([_schema(kind, {}) for kind in types]) | {"description": about}


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

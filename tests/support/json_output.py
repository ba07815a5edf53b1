"""What a command prints as JSON, held against its published schema."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import jsonschema
from jsonschema.exceptions import best_match

from inspector.text import as_json
from tests.support import places


def strict(text: str) -> Any:
    """JSON as RFC 8259 has it: NaN and Infinity are none."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    return json.loads(text, parse_constant=refuse)


def builtins(value: Any) -> Any:
    """What a program reads of what is printed as JSON."""
    return strict(as_json(value))


def valid(name: str, text: str) -> Any:
    document = strict(text)
    # Of ``show``, say what is wrong with this kind of record, not that none of the kinds fits.
    wrong = best_match(_validator(name, document["kind"] if name == "show" else None).iter_errors(document))
    assert wrong is None, f"{wrong.json_path}: {wrong.message[:200]}"
    return document


@cache
def _validator(name: str, kind: str | None) -> jsonschema.Draft202012Validator:
    schema = json.loads((places.SCHEMAS / f"{name}.schema.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    if kind:
        schema["$ref"] = f"#/$defs/Plain{kind.title()}"
        assert {"$ref": schema["$ref"]} in schema.pop("anyOf")
    return jsonschema.Draft202012Validator(schema)

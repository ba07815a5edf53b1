"""OpenVox's JSON schemas (`api/schemas`) and the examples in `api/docs`.

The bodies in JSON of our samples, which real agents and masters sent, and those that our own lab sends have to be
valid. The examples have to be read by our decoders.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import jsonschema

from inspector.analysis.analyzer import retrace
from inspector.lab import Lab
from inspector.model import Exchange, Leg, Request, Response
from inspector.protocol import documents as d
from inspector.protocol import endpoints
from inspector.protocol.bodies import content_type, form, plain
from tests.material.cases import judged, undecided
from tests.support.recorded import RECORDINGS, SAMPLES, VERSIONS, name_of, records_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from inspector.analysis.analyzer import Step
    from inspector.model import Record
    from tests.material.cases import Case

_SCHEMAS: dict[type, str] = {
    d.Catalog: "catalog", d.Report: "report", d.Node: "node", d.FileMetadata: "file_metadata",
    d.FileMetadatas: "file_metadata", d.Environments: "environments", d.ErrorDocument: "error", d.Facts: "facts",
    d.CatalogRequest: "facts",
}  # fmt: skip
_REQUEST = re.compile(r"(GET|PUT|POST|DELETE) (/puppet\S+)")


def cases(directory: Path) -> Iterator[Case]:
    """The samples and the lab's bodies by each schema, and every example in the documents. ``directory`` has both."""
    schemas = {path.stem: _schema(path) for path in sorted((directory / "schemas").glob("*.json"))}
    for path in (*SAMPLES, *VERSIONS, *RECORDINGS):
        yield from _valid(name_of(path), records_of(path), schemas)
    with Lab() as lab:
        lab.agent("a.example", enrolled=True).run()
        sent = [Exchange(Leg("1", "agent"), each.request) for each in lab.master.received]
    yield from _valid("lab", sent, schemas)
    for path in sorted((directory / "docs").glob("*.md")):
        yield from _examples(path)


def _schema(path: Path) -> jsonschema.Draft4Validator:
    # Ruby's classes and anchors, which Python writes in another way.
    text = path.read_text().replace("[[:alnum:]_]", "\\\\w").replace("[[:alnum:]_:.-]", "[\\\\w:.-]")
    return jsonschema.Draft4Validator(json.loads(text))


def _valid(name: str, records: Iterable[Record], schemas: dict[str, jsonschema.Draft4Validator]) -> Iterator[Case]:
    """A case for each kind of body in a capture."""
    troubles: dict[str, list[str]] = {}
    for step in retrace(records):
        for schema, value in _bodies(step):
            troubles.setdefault(schema, []).extend(map(_trouble, schemas[schema].iter_errors(value)))
    for schema, found in sorted(troubles.items()):
        yield judged(f"{name}: {schema}", found)


def _trouble(error: jsonschema.ValidationError) -> str:
    where = "/".join("*" if isinstance(part, int) or "[" in part else part for part in error.path) or "all"
    allowed: Any = error.schema.get("oneOf", [error.schema]) if isinstance(error.schema, dict) else []
    types = [each["type"] for each in allowed if isinstance(each.get("type"), str)]
    if error.validator in ("type", "oneOf") and types:
        return f"{where} is {type(error.instance).__name__}, not {' or '.join(types)}"
    if error.validator == "required":
        return "fields are missing that the schema wants"
    return f"{where}: {error.message[:100]}"


def _bodies(step: Step) -> Iterator[tuple[str, Any]]:
    """Each body in JSON, as it was sent, with the name of its schema."""
    record = step.record
    if not isinstance(record, Exchange):
        return
    for message, document in ((record.request, step.request), (record.response, step.response)):
        schema = _SCHEMAS.get(type(document))
        if message is None or schema is None:
            continue
        if isinstance(document, d.CatalogRequest):
            if document.facts_format == "application/json":
                yield schema, json.loads(unquote(form(plain(message))[b"facts"].decode()))
        elif content_type(message).endswith("json"):
            value = json.loads(plain(message))
            yield from ((schema, item) for item in (value if isinstance(value, list) else [value]))


def _examples(path: Path) -> Iterator[Case]:
    """Every body in JSON that follows a request."""
    method, target, answered, at = "", "", False, 0
    lines = path.read_text().splitlines()
    while at < len(lines):
        line = lines[at].strip().lstrip("<> ")
        if found := _REQUEST.match(line):
            method, target, answered = found[1], found[2], False
        answered = answered or line.startswith("HTTP")
        if lines[at].startswith("    ") and line[:1] in ("{", "[") and method:
            name, end = f"{path.name}:{at + 1}", at
            while end < len(lines) and lines[end].startswith("    "):
                end += 1
            yield _example(
                name, method, target, "\n".join(lines[at:end]).encode(), answered=answered or method != "PUT"
            )
            at, method = end, ""
        at += 1


def _example(name: str, method: str, target: str, body: bytes, *, answered: bool) -> Case:
    head = (("Content-Type", "application/json"),)
    found = endpoints.match(method, target)
    try:
        json.loads(body)
    except ValueError:
        return undecided(name, "the example is no JSON")
    if found is None:
        return judged(name, [f"no endpoint for {method} {target}"])
    message = Response(head, body, status=200) if answered else Request(head, body, method=method, target=target)
    document = (found.endpoint.response if answered else found.endpoint.request)(message)
    return judged(name, [document.reason] if isinstance(document, d.Undecodable) else [])

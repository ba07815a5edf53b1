"""Sets of facts of real nodes (facterdb; Foreman's `test/static_fixtures/facts`): each is sent with a catalog request.

They are right if they come out of our decoders as they went in, if no rule has anything against them, if the tables
have a row for every value, and if they still have their shape and their types after an export, with and without names.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import yaml

from inspector.analysis.analyzer import retrace
from inspector.fleet.contents import Contents
from inspector.fleet.tables import FactRow
from inspector.formats.outgoing import Outgoing
from inspector.model import Exchange, Request
from inspector.pages import model, tabs
from inspector.privacy import redact
from inspector.protocol import decode
from inspector.protocol import documents as d
from inspector.runs.examples import catalog, plugins, report, talk
from tests.material.cases import judged, undecided
from tests.support.conversations import runs_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from inspector.model import Record
    from tests.material.cases import Case


class _Quoting(yaml.SafeDumper):
    """Writes YAML as Ruby does as far as it matters: Ruby reads ``::1`` without quotes as a symbol."""


def _quoted(_dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    return yaml.ScalarNode("tag:yaml.org,2002:str", text, style='"')


_Quoting.add_representer(str, _quoted)
MEDIA: dict[str, Callable[[Any], bytes]] = {
    "application/json": msgspec.json.encode,
    "text/pson": msgspec.json.encode,
    "application/x-msgpack": msgspec.msgpack.encode,
    "text/yaml": lambda value: yaml.dump(value, Dumper=_Quoting, explicit_start=True).encode(),
}
NAME = "node1.example"
"""Of the node that sends them: that in the facts is another's."""


def cases(directory: Path) -> Iterator[Case]:
    """Every file of facts in a directory."""
    for path in sorted([*directory.rglob("*.facts")] or [*directory.rglob("*.json")]):
        name, values = str(path.relative_to(directory)), json.loads(path.read_bytes())
        values = values.get("facts", values)
        if "facterversion" in values:
            yield judged(name, troubles(values))
        else:
            yield undecided(name, "facts of another program than Puppet")


def troubles(values: dict[str, Any]) -> Iterator[str]:
    for media, write in MEDIA.items():
        body = write({"name": NAME, "values": values})
        document = decode.facts(Request((("Content-Type", media),), body, method="PUT"))
        if not isinstance(document, d.Facts) or document.values != values:
            yield f"not as they were in {media}: {document.reason if isinstance(document, d.Undecodable) else ''}"
    records = talk(plugins(), catalog(facts=values), report())
    for step in retrace(records):
        for finding in step.findings:
            yield f"{finding.rule}: {finding.message}"
    yield from _rows(records, values)
    sent, facts = records[1], _facts(records[1])
    shown = tabs.facts_tree(facts)
    if missing := [name for name in values if model.find(shown, name) is None]:
        yield f"not shown: {', '.join(missing)}"
    yield from _changed("masked", values, redact.redacted(sent))
    for pseudonyms in (False, True):
        outgoing = Outgoing(pseudonyms=pseudonyms)
        outgoing.learn(lambda: records)
        yield from _types("shared" if pseudonyms else "exported", list(_leaves(facts.values)), outgoing.leaving(sent))


def _rows(records: list[Record], values: dict[str, Any]) -> Iterator[str]:
    rows: list[FactRow] = []
    contents = Contents("c", lambda row: rows.append(row) if isinstance(row, FactRow) else None, b"key")
    (run,) = runs_of(records)
    for step in retrace(records):
        assert isinstance(step.record, Exchange)
        contents.add(step, step.record, run)
    found = {row.path for row in rows}
    if missing := [path for path, _ in _leaves(values) if path[:1000] not in found]:
        yield f"{len(missing)} of no row in the tables, such as {missing[0]}"


def _facts(record: Record | None) -> d.Facts:
    """The facts in a catalog request."""
    assert record is not None
    (step,) = retrace([record])
    assert isinstance(step.request, d.CatalogRequest)
    assert isinstance(step.request.facts, d.Facts)
    return step.request.facts


def _changed(how: str, values: dict[str, Any], record: Record | None) -> Iterator[str]:
    after = dict(_leaves(_facts(record).values))
    for path, value in _leaves(values):
        if after.get(path) != value:
            yield f"{how}: {path}"


def _types(how: str, before: list[tuple[str, Any]], record: Record | None) -> Iterator[str]:
    after = list(_leaves(_facts(record).values))
    if len(before) != len(after):
        yield f"{how}: {len(before)} values, {len(after)} of them left"
        return
    for (path, value), (_, other) in zip(before, after, strict=True):
        if type(value) is not type(other):
            yield f"{how}: {path} was {type(value).__name__}, is {type(other).__name__}"


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Each value that has no parts, with its path; empty mappings and lists are values."""
    parts = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    if not parts or not value:
        yield path, value
        return
    for name, part in parts:
        yield from _leaves(part, f"{path}.{name}" if path else str(name))

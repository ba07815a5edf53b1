"""The catalogs of octocatalog-diff's fixtures, each compared with each, by `diff` and by that program itself.

A case is a pair of catalogs; it agrees if both find the same resources added and removed, and the same parameters
changed. Containers and cycles, which only `diff` looks at, are left out of it.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inspector.compare.differences import Section
from inspector.model import Response
from inspector.protocol import decode
from inspector.protocol import documents as d
from tests.material.cases import judged, undecided
from tests.support.compared import found

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.material.cases import Case

_PROGRAM = Path(__file__).with_name("octocatalog_diff.rb")
_CATALOGS = "spec/octocatalog-diff/fixtures/catalogs"

type Change = tuple[str, str, str]
"""``+``, ``-`` or ``~``; the resource; its parameter."""


def cases(directory: Path) -> Iterator[Case]:
    """Every pair of catalogs of a checkout."""
    catalogs = {path.name: _catalog(path) for path in sorted((directory / _CATALOGS).glob("*.json"))}
    printed = subprocess.run(["ruby", _PROGRAM, directory], stdout=subprocess.PIPE, check=True)
    for pair in json.loads(printed.stdout):
        name = f"{pair['before']} {pair['after']}"
        before, after = catalogs[pair["before"]], catalogs[pair["after"]]
        if "error" in pair:
            yield undecided(name, f"octocatalog-diff: {pair['error']}")
        elif before is None or after is None:
            yield judged(name, ["not read"])
        else:
            yield judged(name, sorted(_reasons(before, after, pair["found"])))


def _catalog(path: Path) -> d.Catalog | None:
    value = json.loads(path.read_bytes())
    media = "text/pson" if "document_type" in value else "application/json"
    body = json.dumps(value.get("catalog", value)).encode()
    catalog = decode.catalog(Response((("Content-Type", media),), body, status=200))
    return catalog if isinstance(catalog, d.Catalog) else None


def _reasons(before: d.Catalog, after: d.Catalog, listed: list[list[Any]]) -> Iterator[str]:
    theirs, values = set[Change](), dict[Change, tuple[Any, Any]]()
    for sign, path, old, *new in listed:
        kind, title, *parts = path.split("\f")
        part = "" if sign in "+-" else parts[1] if len(parts) > 1 else parts[0]
        change = (sign if sign in "+-" else "~", f"{kind}[{title}]", part)
        theirs.add(change)
        values[change] = old, new[0] if new else None
    ours = {
        ({"added": "+", "removed": "-"}.get(each.change, "~") if not each.part else "~", each.name, each.part)
        for each in found(before, after).found
        if each.section is Section.CATALOG and each.part not in ("container", "cycle")
    }
    whole = {ref for _, ref, part in theirs if part == "parameters"}
    renamed = any(part == "title" for _, _, part in ours)
    for change in theirs ^ ours:
        if change[1] in whole:
            yield "the first parameter of a resource: all its parameters are the difference there"
        elif renamed and (change[2] == "title" or change[0] in "+-"):
            yield "a class with another title and the same name: changed here, removed and added there"
        else:
            yield _reason(change, values.get(change), here=change in ours)


def _reason(change: Change, values: tuple[Any, Any] | None, *, here: bool) -> str:
    """Why only one of the two programs has a change; a difference of opinion has its own words."""
    if here and change[2] in ("before", "require"):
        return "octocatalog-diff leaves before and require out"
    if values is not None and change[2] == "exported" and bool(values[0]) == bool(values[1]):
        return "`exported` is written in another way that means the same to Puppet"
    if values is not None and [values[0]] == values[1]:
        return "a reference and a list with only this reference mean the same"
    return f"only {'here' if here else 'there'}: {' '.join(change)}"

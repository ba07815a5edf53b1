"""Catalogs and facts in the wire formats of PuppetDB (catalogs 6 to 9, facts 4 and 5).

A catalog there names every relationship as an edge, as the master's terminus has worked it out of the parameters: ours
has to find the same ones. Written as an agent receives it, a catalog has to be read whole. Facts are measured as
others are.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from inspector.explain import resource_outcomes
from inspector.explain.catalog_graph import CatalogGraph
from inspector.explain.containment import key
from inspector.model import Response
from inspector.protocol import decode
from inspector.protocol import documents as d
from tests.material import facts
from tests.material.cases import judged, undecided

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from inspector.explain.catalog_graph import Relation
    from tests.material.cases import Case

_KINDS = {"require": "required-by", "before": "before", "subscribe": "subscription-of", "notify": "notifies"}
_META = ("require", "before", "subscribe", "notify")


def cases(directory: Path) -> Iterator[Case]:
    """Every catalog and every set of facts below a directory."""
    for path in sorted(directory.rglob("*.json")):
        name = str(path.relative_to(directory))
        try:
            found = json.loads(path.read_bytes())
        except ValueError:
            continue
        if not isinstance(found, dict) or "certname" not in found:
            continue
        if "edges" in found:
            yield _catalog(name, found)
        elif isinstance(found.get("values"), dict):
            yield judged(name, facts.troubles(found["values"]))


def _catalog(name: str, found: dict[str, Any]) -> Case:
    contained = [edge for edge in found["edges"] if edge["relationship"] == "contains"]
    resources = [{name: value for name, value in each.items() if name != "aliases"} for each in found["resources"]]
    sent = {
        "name": found["certname"], "version": found["version"], "environment": found.get("environment"),
        "resources": resources,
        "edges": [{"source": _ref(edge["source"]), "target": _ref(edge["target"])} for edge in contained],
        "classes": [each["title"] for each in found["resources"] if each["type"] == "Class"],
    }  # fmt: skip
    head = (("Content-Type", "application/json"),)
    catalog = decode.catalog(Response(head, json.dumps(sent).encode(), status=200))
    if not isinstance(catalog, d.Catalog) or catalog.unreadable:
        return judged(name, [getattr(catalog, "reason", "") or getattr(catalog, "unreadable", "")])
    troubles = []
    if len(catalog.resources) != len(found["resources"]) or len(catalog.edges) != len(contained):
        troubles.append("not all resources and edges")
    stated = any(relation in each["parameters"] for each in found["resources"] for relation in _META)
    others = {
        (_KINDS_BACK[edge["relationship"]], key(_ref(edge["source"])), key(_ref(edge["target"])))
        for edge in found["edges"]
        if edge["relationship"] != "contains"
    }
    if others and not stated:
        return undecided(name, "its relationships are in no parameter: they were made up")
    ours = set(_relations(catalog))
    if others - ours:
        troubles.append("relationships that no parameter states")
    if ours - others:
        troubles.append("without relationships that parameters state")
    return judged(name, troubles)


_KINDS_BACK = {wire: kind for kind, wire in _KINDS.items()}


def _ref(found: dict[str, str]) -> str:
    return f"{found['type']}[{found['title']}]"


def _relations(catalog: d.Catalog) -> Iterator[tuple[str, str, str]]:
    """Each relationship: its parameter, what is applied first, what is applied after it."""
    graph = CatalogGraph(resource_outcomes.resources(catalog, None), catalog.edges)

    def named(relation: Relation) -> tuple[str, str, str]:
        owner, target = (key(graph.tree.refs[end]) for end in (relation.owner, relation.target))
        ends = (target, owner) if relation.kind.of_second else (owner, target)
        return relation.kind.value, *ends

    for number in range(len(catalog.resources)):
        around = graph.around(number)
        for relation in (*around.needs, *around.needed_by):
            if relation.through is None and relation.owner == number:
                yield named(relation)

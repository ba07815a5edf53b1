"""The top lists of a fleet, as rows of text: what the fleet's screen shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from inspector.rules.fixes import plain
from inspector.summaries.judgement import NodeState
from inspector.text import clean, utc_second

if TYPE_CHECKING:
    from collections.abc import Iterable

    from inspector.fleet.overview import Node, Overview, Unsettled

type Cell = str | int | float


class TopList(NamedTuple):
    """One list: its title, the heads of its columns, and its rows. Times are texts."""

    title: str
    heads: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]


def by_state(nodes: Iterable[Node]) -> list[Node]:
    """Nodes in the order of their states, the worst first."""
    order = {state: place for place, state in enumerate(NodeState)}
    return sorted(nodes, key=lambda node: (order[node.now], node.certname))


def lists_of(found: Overview) -> tuple[TopList, ...]:
    """Return all lists; some may be empty."""
    nodes = by_state(found.nodes)
    return (
        TopList("nodes", ("node", "state", "cause", "version", "environment", "runs", "not completed", "last run"),
                tuple((clean(node.certname), str(node.now), clean(node.cause or ""), clean(node.version or ""),
                       clean(node.environment or ""), node.runs, node.bad, utc_second(node.last)) for node in nodes)),
        TopList("why nodes are not well", ("rule", "what", "nodes", "since", "first on", "reason", "latest run with it",
                                           "fix"),
                tuple((clean(each.rule or ""), clean(each.title), each.nodes, utc_second(each.since),
                       clean(each.first), clean(each.reason), clean(each.run), clean(plain(each.steps)))
                      for each in found.causes)),
        TopList("several captures show", ("node", "rule", "severity", "what", "runs"),
                tuple((clean(each.certname or ""), clean(each.rule), clean(each.severity), clean(each.message),
                       clean(", ".join(each.places[:5]))) for each in found.spanning)),
        TopList("findings", ("rule", "severity", "what", "nodes", "findings", "first", "on"),
                tuple((clean(line.rule), clean(line.severity), clean(line.title), line.nodes, line.findings,
                       utc_second(line.first), clean(line.node or "")) for line in found.rules)),
        TopList("end within 90 days", ("what", "name", "serial", "ends", "replaced", "issuer"),
                tuple((each.role, clean(each.name), clean(each.serial), utc_second(each.end or 0.0),
                       "yes" if each.replaced else "no", clean(each.issuer)) for each in found.ending)),
        TopList("run and compile times", ("by", "name", "runs", "run, median (s)", "p90", "p99",
                                          "catalog, median (s)", "catalog, p90", "catalog, p99"),
                tuple((each.kind, clean(each.name), each.runs, *(round(value, 1) for value in each.duration),
                       *([round(value, 2) for value in each.compile] if each.compile else ("", "", "")))
                      for each in found.times)),
        TopList("resources that never settle", ("resource", "manifest", "nodes", "changes", "in runs"),
                tuple((clean(each.resource), _place(each), each.nodes, each.changes, each.runs)
                      for each in found.unsettled)),
        TopList("nodes that stopped reporting", ("node", "last run", "runs"),
                tuple((clean(node.certname), utc_second(node.last), node.runs) for node in found.silent)),
        TopList("removed in newer versions", ("what", "since", "nodes", "the first of them"),
                tuple((each.title, each.since, each.nodes, clean(", ".join(each.names))) for each in found.readiness)),
        TopList("in use", ("what", "which", "nodes"),
                tuple((each.kind, clean(each.name), each.nodes) for each in found.in_use)),
    )  # fmt: skip


def _place(found: Unsettled) -> str:
    line = f":{found.line}" if found.file and found.line else ""
    return clean(found.file or "") + line

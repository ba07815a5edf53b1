"""The lines of a catalog as a tree: open and closed branches, those that are wanted, and no depth that is too deep."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING

from inspector.explain import resource_outcomes
from inspector.explain.containment import Containment
from inspector.explain.resource_outcomes import Status
from inspector.pages import catalog_tree
from inspector.pages.catalog_tree import DEEPEST, shown
from inspector.protocol import documents as d

if TYPE_CHECKING:
    from collections.abc import Collection

EDGES = [("Stage[main]", "Class[A]"), ("Stage[main]", "Class[B]"), ("Class[A]", "File[/x]"), ("Class[A]", "File[/y]"),
         ("Loop[1]", "Loop[1]"), ("Gone[g]", "File[/z]")]  # fmt: skip
REFS = ["Stage[main]", "Class[A]", "Class[B]", "File[/x]", "File[/y]", "File[/z]", "Loop[1]"]


def tree(refs: list[str] = REFS, edges: list[tuple[str, str]] = EDGES, **statuses: d.ResourceStatus) -> Containment:
    made = [d.Resource(type=ref.partition("[")[0], title=ref.partition("[")[2][:-1]) for ref in refs]
    found = [d.Edge(*edge) for edge in edges]
    report = d.Report(resource_statuses={refs[int(key[1:])]: status for key, status in statuses.items()})
    return Containment(resource_outcomes.resources(d.Catalog(resources=made, edges=found), report), found)


def drawn(found: Containment, opened: Collection[int], wanted: Collection[int] | None = None) -> list[str]:
    return [f"{line.lead}{line.mark}{line.outcome.ref} {line.note}".rstrip() for line in shown(found, opened, wanted)]


def test_branches_are_open_or_closed() -> None:
    found = tree()
    closed = ["▶ Stage[main]", "  Loop[1] contains itself", "▶ Gone[g] not in the catalog"]
    assert drawn(found, ()) == closed
    assert drawn(found, range(20)) == [
        "▼ Stage[main]", "├─▼ Class[A]", "│  ├── File[/x]", "│  └── File[/y]", "└── Class[B]",
        "  Loop[1] contains itself", "▼ Gone[g] not in the catalog", "└── File[/z]",
    ]  # fmt: skip
    assert drawn(found, [0])[1:3] == ["├─▶ Class[A]", "└── Class[B]"]


def test_what_is_wanted_is_shown_with_its_containers_only() -> None:
    found = tree()
    assert drawn(found, range(20), [4]) == ["▼ Stage[main]", "└─▼ Class[A]", "   └── File[/y]"]
    assert drawn(found, range(20), []) == []
    assert catalog_tree.with_containers(found, [3, 4]) == {0, 1, 3, 4}


def test_at_first_a_small_catalog_is_open_and_a_large_one_where_something_failed() -> None:
    assert catalog_tree.first_open(tree()) == {0, 1, 7}
    many = [f"File[/{number}]" for number in range(catalog_tree.SMALL)]
    found = tree([*REFS, *many], EDGES, _3=d.ResourceStatus(failed=True))
    opened = catalog_tree.first_open(found)
    assert {0, 1} <= opened
    assert "│  ├── File[/x]" in drawn(found, opened)
    calm = tree([*REFS, *many], EDGES)
    assert drawn(calm, catalog_tree.first_open(calm))[:3] == ["▼ Stage[main]", "├─▶ Class[A]", "└── Class[B]"]


def test_all_resources_are_in_order_from_top_to_bottom() -> None:
    found = tree()
    assert [found.refs[number] for number in catalog_tree.order(found)] == [
        "Stage[main]", "Class[A]", "File[/x]", "File[/y]", "Class[B]", "Loop[1]", "Gone[g]", "File[/z]",
    ]  # fmt: skip


def test_a_deep_tree_is_drawn_in_a_bounded_width() -> None:
    names = [f"Foo[{number}]" for number in range(10_000)]
    lines = shown(tree(names, [*pairwise(names)]), range(10_000))
    assert len(lines) == 10_000
    assert max(len(line.lead) for line in lines) <= DEEPEST + 2
    assert lines[-1].depth == 9_999


def test_outcomes_are_counted_the_worst_first() -> None:
    text = catalog_tree.counts(Counter({Status.UNCHANGED: 3, Status.FAILED: 1, Status.CHANGED: 2}))
    assert text.plain == "1 failed, 2 changed, 3 unchanged"
    assert len({str(span.style) for span in text.spans}) == 3
    assert catalog_tree.counts(Counter()).plain == ""

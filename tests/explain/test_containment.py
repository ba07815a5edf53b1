"""What is in what: by edges, by the paths of a report, whatever they are; and by which names a resource is found."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from inspector.explain import containment, resource_outcomes
from inspector.explain.containment import Containment
from inspector.explain.resource_outcomes import Status
from inspector.protocol import documents as d


def resource(ref: str, **parameters: Any) -> d.Resource:
    kind, _, title = ref.partition("[")
    return d.Resource(type=kind, title=title.removesuffix("]"), parameters=parameters)


def tree(*resources: d.Resource | str, edges: list[tuple[str, str]] | None = None, **statuses: Any) -> Containment:
    made = [resource(one) if isinstance(one, str) else one for one in resources]
    report = d.Report(resource_statuses=statuses.pop("report", {}))
    found = [d.Edge(*edge) for edge in edges or ()]
    return Containment(resource_outcomes.resources(d.Catalog(resources=made, edges=found), report), found)


def drawn(found: Containment) -> list[str]:
    """The tree, one resource per line."""
    waiting, lines = [(number, 0) for number in reversed(found.roots)], []
    while waiting:
        number, depth = waiting.pop()
        lines.append("  " * depth + found.refs[number])
        waiting += [(child, depth + 1) for child in reversed(found.contents[number])]
    return lines


def test_a_resource_is_found_by_each_of_its_names() -> None:
    rows: list[tuple[d.Resource, str]] = [
        (resource("File[/a]"), "File[/a]"),
        (resource("File[/a]"), "File[/a/]"),
        (resource("File[/a/]", path="/a"), "File[/a]"),
        (resource("File[conf]", path="/a"), "File[/a]"),
        (resource("File[conf]", path="/a/"), "File[/a//]"),
        (resource("File[/]"), "File[/]"),
        (resource("Tidy[t]", path="/srv/"), "Tidy[/srv]"),
        (resource("Notify[c]", alias=["d", "e"]), "Notify[e]"),
        (resource("Notify[c]", alias="d"), "Notify[d]"),
        (resource("Service[c]", name="cron"), "Service[cron]"),
        (resource("Notify[m]"), "notify[m]"),
        (resource("Class[main]"), "Class[Main]"),
        (resource("Class[Foo::Bar]"), "class[::foo::bar]"),
        (resource("Foo::Bar[x y]"), "Foo::Bar[x y]"),
        (resource("File[a[1]]"), "File[a[1]]"),
    ]
    for declared, reference in rows:
        assert tree("Notify[other]", declared).find(reference) == 1, declared


def test_what_an_agent_does_not_find_is_not_found() -> None:
    rows: list[tuple[d.Resource, str]] = [
        (resource("Exec[c]", command="/bin/true"), "Exec[/bin/true]"),
        (resource("Exec[c]", name="d"), "Exec[d]"),
        (resource("Package[c]", name="coreutils"), "Package[coreutils]"),
        (resource("Notify[c]"), "Notify[C]"),
        (resource("Notify[c]"), "Notify"),
        (resource("Notify[c]", alias=None, name={"a": 1}), "Notify[]"),
        (resource("File[/a]"), "File[/a/b]"),
    ]
    for declared, reference in rows:
        assert tree(declared).find(reference) is None, declared


def test_a_title_comes_before_the_alias_of_another() -> None:
    found = tree(resource("Notify[a]", alias="b"), "Notify[b]")
    assert found.find("Notify[b]") == 1


def test_containers_are_in_the_order_of_the_catalog_whatever_the_edges_are_written_like() -> None:
    found = tree(
        "Stage[main]", "Class[main]", "Class[A]", "File[/x]", "Foo[1]", "File[/y]", "Alone[z]",
        edges=[("Stage[main]", "Class[Main]"), ("Stage[main]", "Class[A]"), ("Class[::a]", "Foo[1]"),
               ("Class[A]", "File[/x/]"), ("Foo[1]", "File[/y]"), ("Gone[y]", "Gone[z]")],
    )  # fmt: skip
    assert drawn(found) == [
        "Stage[main]", "  Class[main]", "  Class[A]", "    File[/x]", "    Foo[1]", "      File[/y]", "Alone[z]",
        "Gone[y]", "  Gone[z]",
    ]  # fmt: skip
    assert [found.refs[number] for number in found.above(5)] == ["Foo[1]", "Class[A]", "Stage[main]"]
    assert [found.missing(number) for number in range(len(found.refs))] == [False] * 7 + [True] * 2
    gone = found.outcome(7)
    assert (gone.type, gone.title, gone.resource) in {("Gone", "y", None), ("Gone", "z", None)}


def test_what_only_the_report_knows_is_where_its_path_says() -> None:
    status = d.ResourceStatus(changed=True, containment_path=["Stage[main]", "Demo", "File[/tree/a]"])
    inner = d.ResourceStatus(changed=True, containment_path=["Stage[main]", "Demo", "Foo[1]", "File[/b]"])
    alone = d.ResourceStatus(containment_path=["Schedule[daily]"])
    found = tree(
        "Stage[main]", "Class[Demo]", "Foo[1]", edges=[("Stage[main]", "Class[Demo]"), ("Class[Demo]", "Foo[1]")],
        report={"File[/tree/a]": status, "File[/b]": inner, "Schedule[daily]": alone},
    )  # fmt: skip
    assert drawn(found) == [
        "Stage[main]", "  Class[Demo]", "    Foo[1]", "      File[/b]", "    File[/tree/a]", "Schedule[daily]",
    ]  # fmt: skip


def test_what_contains_itself_is_shown_once() -> None:
    found = tree(
        "A[1]", "A[2]", "A[3]", "B[1]", "C[1]",
        edges=[("A[1]", "A[2]"), ("A[2]", "A[3]"), ("A[3]", "A[1]"), ("B[1]", "B[1]"), ("A[3]", "C[1]")],
    )  # fmt: skip
    assert drawn(found) == ["A[1]", "  A[2]", "    A[3]", "      C[1]", "B[1]"]
    assert found.tangled == {0: 2, 3: 3}


def test_the_outcomes_of_what_is_in_a_container_are_counted() -> None:
    changed, failed = d.ResourceStatus(changed=True, evaluation_time=1.5), d.ResourceStatus(failed=True)
    found = tree(
        "Class[A]", "Foo[1]", "File[/x]", "File[/y]", "File[/z]",
        edges=[("Class[A]", "Foo[1]"), ("Foo[1]", "File[/x]"), ("Foo[1]", "File[/y]"), ("Class[A]", "File[/z]")],
        report={"File[/x]": changed, "File[/y]": failed, "File[/z]": changed},
    )  # fmt: skip
    below = found.below
    assert [below[at] is None for at in range(5)] == [False, False, True, True, True]
    assert below[0] is not None
    assert below[1] is not None
    assert dict(below[0].counts) == {Status.CHANGED: 2, Status.FAILED: 1}
    assert (below[0].time, below[1].time) == (3.0, 1.5)
    assert dict(below[1].counts) == {Status.CHANGED: 1, Status.FAILED: 1}


REFS = [f"Foo[{number}]" for number in range(6)]


@given(
    st.lists(st.sampled_from(REFS), max_size=8),
    st.lists(st.tuples(st.sampled_from([*REFS, "Gone[1]"]), st.sampled_from([*REFS, "Gone[2]"])), max_size=15),
)
def test_each_resource_is_in_the_tree_once_whatever_the_edges_are(
    declared: list[str], edges: list[tuple[str, str]]
) -> None:
    found = tree(*declared, edges=edges)
    lines = [line.strip() for line in drawn(found)]
    assert len(lines) == len({*found.roots} | {at for inner in found.contents for at in inner})
    assert all(ref in lines for ref in declared)
    assert len(found.below) == len(found.refs)


def test_a_deep_one_is_no_deeper_than_it_has_to_be() -> None:
    names = [f"Foo[{number}]" for number in range(20_000)]
    found = tree(*names, edges=[*pairwise(names)])
    assert len(found.roots) == 1
    assert len(found.above(19_999)) == resource_outcomes.DEPTH
    assert found.below[0] is not None


def test_the_texts_of_a_value() -> None:
    assert [*containment.texts(["a", ["b", ["c"]], {"d": "e"}, None, 1])] == ["a", "b", "c"]
    deep: Any = "x"
    for _ in range(10_000):
        deep = [deep]
    assert [*containment.texts(deep)] == ["x"]

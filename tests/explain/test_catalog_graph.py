"""What is applied before what: both ways, by each way to write it, through containers, in circles, into nothing."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.explain import resource_outcomes
from inspector.explain.catalog_graph import MOST, CatalogGraph, Kind, Neighbourhood
from inspector.protocol import documents as d


def graph(resources: dict[str, dict[str, Any]], edges: list[tuple[str, str]] | None = None) -> CatalogGraph:
    """The graph of resources with these parameters."""
    made = []
    for ref, parameters in resources.items():
        kind, _, title = ref.partition("[")
        made.append(d.Resource(type=kind, title=title.removesuffix("]"), parameters=parameters))
    found = [d.Edge(*edge) for edge in edges or ()]
    return CatalogGraph(resource_outcomes.resources(d.Catalog(resources=made, edges=found), None), found)


def around(found: CatalogGraph, ref: str) -> Neighbourhood:
    number = found.tree.find(ref)
    assert number is not None
    return found.around(number)


def sides(found: CatalogGraph, ref: str) -> tuple[list[str], list[str]]:
    """What a resource needs, and what needs it, each with the kind of the relationship."""
    here, refs = around(found, ref), found.tree.refs

    def words(relations: Any) -> list[str]:
        return [f"{one.kind} {refs[one.other]}" + (" ^" if one.through is not None else "") for one in relations]

    return words(here.needs), words(here.needed_by)


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("written", ["B[1]", ["B[1]"], ["b[1]", "B[1]"][1:], [["B[1]"]], ["B[1]", "B[1]"]])
def test_a_relationship_has_two_ends_however_it_is_written(kind: Kind, written: Any) -> None:
    found = graph({"A[1]": {kind.value: written}, "B[1]": {}})
    one, other = sides(found, "A[1]"), sides(found, "B[1]")
    if kind in (Kind.REQUIRE, Kind.SUBSCRIBE):
        assert (one, other) == (([f"{kind} B[1]"], []), ([], [f"{kind} A[1]"]))
    else:
        assert (one, other) == (([], [f"{kind} B[1]"]), ([f"{kind} A[1]"], []))
    (relation,) = [*around(found, "A[1]").needs, *around(found, "A[1]").needed_by]
    assert found.stated(relation) == f"A[1] has {kind} => B[1]."
    assert kind.refreshes is (kind in (Kind.NOTIFY, Kind.SUBSCRIBE))


def test_aliases_paths_and_titles_are_one_resource() -> None:
    found = graph(
        {
            "File[conf]": {"path": "/etc/a", "alias": "a"},
            "N[1]": {"require": "File[/etc/a/]"},
            "N[2]": {"require": ["File[conf]", "File[a]"]},
        }
    )
    assert sides(found, "File[conf]")[1] == ["require N[1]", "require N[2]", "require N[2]"]
    assert len(found.tree.refs) == 3


def test_a_reference_to_nothing_is_a_resource_that_is_missing() -> None:
    found = graph({"N[1]": {"require": ["Gone[1]"], "before": ["Gone[1]", "N[2]"]}, "N[2]": {"notify": "Gone[1]"}})
    number = found.tree.find("Gone[1]")
    assert number is not None
    assert found.tree.missing(number)
    assert sides(found, "Gone[1]") == (["before N[1]", "notify N[2]"], ["require N[1]"])
    assert found.tree.roots == [0, 1]


def test_what_a_container_needs_all_that_is_in_it_needs() -> None:
    found = graph(
        {"Class[A]": {"require": "Class[B]"}, "Class[B]": {}, "Foo[1]": {"notify": "N[1]"}, "File[/x]": {}, "N[1]": {}},
        [("Class[A]", "Foo[1]"), ("Foo[1]", "File[/x]")],
    )
    assert sides(found, "File[/x]") == (["require Class[B] ^"], ["notify N[1] ^"])
    assert sides(found, "Foo[1]") == (["require Class[B] ^"], ["notify N[1]"])
    (relation,) = around(found, "File[/x]").needs
    assert found.stated(relation) == ("Class[A] has require => Class[B], which applies to all that is in Class[A].")
    here = around(found, "Foo[1]")
    assert ([found.tree.refs[at] for at in here.containers], [found.tree.refs[at] for at in here.contents]) == (
        ["Class[A]"], ["File[/x]"]
    )  # fmt: skip


def names(found: CatalogGraph) -> set[str]:
    return {found.tree.refs[number] for number in found.cycles}


@pytest.mark.parametrize(
    ("resources", "edges", "expected"),
    [
        pytest.param({"A[1]": {"before": "A[2]"}, "A[2]": {"before": "A[1]"}, "A[3]": {"require": "A[1]"}}, [],
                     {"A[1]", "A[2]"}, id="two"),
        pytest.param({"A[1]": {"require": "A[1]"}, "A[2]": {}}, [], {"A[1]"}, id="itself"),
        pytest.param({"A[1]": {"require": "A[2]"}, "A[2]": {"before": "A[1]"}}, [], set(), id="the same, said twice"),
        # As an agent reports it: Notify[in] => Class[A] => Class[B] => Notify[inb] => Class[B] => Notify[in].
        pytest.param({"Class[A]": {"before": "Class[B]"}, "Class[B]": {}, "N[in]": {"require": "Class[B]"}, "N[b]": {}},
                     [("Class[A]", "N[in]"), ("Class[B]", "N[b]")], {"Class[A]", "Class[B]", "N[in]", "N[b]"},
                     id="through containers"),
        pytest.param({"Class[A]": {}, "N[in]": {"require": "Class[A]"}}, [("Class[A]", "N[in]")],
                     {"Class[A]", "N[in]"}, id="what it is in"),
        pytest.param({"Class[A]": {"before": "Class[B]"}, "Class[B]": {}, "N[1]": {"before": "N[2]"}, "N[2]": {}},
                     [("Class[A]", "N[1]"), ("Class[B]", "N[2]")], set(), id="two containers in order"),
        pytest.param({"A[1]": {"before": "Gone[1]"}, "A[2]": {"require": "Gone[1]"}}, [], set(), id="missing ones"),
    ],
)  # fmt: skip
def test_cycles_are_those_that_an_agent_finds(
    resources: dict[str, dict[str, Any]], edges: list[tuple[str, str]], expected: set[str]
) -> None:
    found = graph(resources, edges)
    assert names(found) == expected
    for ref in resources:
        here = around(found, ref)
        assert here.cycle is (ref in expected)
        for relation in (*here.needs, *here.needed_by):
            assert not relation.cycle or {ref, found.tree.refs[relation.other]} <= expected


def test_two_cycles_are_two() -> None:
    found = graph({"A[1]": {"before": "A[1]"}, "A[2]": {"before": ["A[2]", "A[1]"]}})
    assert len(set(found.cycles.values())) == 2
    (own, other) = around(found, "A[2]").needed_by
    assert (own.cycle, other.cycle) == (True, False)


REFS = [f"A[{number}]" for number in range(6)]


@given(st.lists(st.tuples(st.sampled_from(REFS), st.sampled_from(REFS)), max_size=20))
def test_a_resource_is_in_a_cycle_if_a_way_leads_back_to_it(pairs: list[tuple[str, str]]) -> None:
    before: dict[str, list[str]] = {ref: [] for ref in REFS}
    for first, second in pairs:
        before[first].append(second)
    found = graph({ref: {"before": others} for ref, others in before.items()})
    for ref in REFS:
        reached, waiting = set(), [*before[ref]]
        while waiting:
            at = waiting.pop()
            if at not in reached:
                reached.add(at)
                waiting += before[at]
        assert (ref in reached) == (ref in names(found))


def test_of_very_many_relationships_the_first_are_listed_and_all_are_counted() -> None:
    number = 5 * MOST
    refs = [f"A[{at}]" for at in range(number)]
    found = graph({"X[1]": {"require": refs}, "A[0]": {}})
    here = around(found, "X[1]")
    assert (len(here.needs), here.more) == (MOST, (0, number - MOST, 0))
    inside = graph({ref: {} for ref in ("C[1]", *refs)}, [("C[1]", ref) for ref in refs])
    here = around(inside, "C[1]")
    assert (len(here.contents), here.more) == (MOST, (number - MOST, 0, 0))


def test_what_is_no_reference_does_no_harm() -> None:
    rows: list[Any] = [
        None,
        1,
        True,
        {},
        {"__ptype": "Sensitive", "__pvalue": "A[1]"},
        [None, {}, 1],
        "",
        "no reference",
        "[",
    ]
    for value in rows:
        found = graph({"A[1]": {"require": value, "notify": None}})
        assert around(found, "A[1]").cycle is False, value
        assert found.tree.roots == [0], value


@pytest.mark.slow
def test_a_large_cycle_and_a_deep_containment_need_no_recursion() -> None:
    refs = [f"A[{number}]" for number in range(20_000)]
    following = dict(zip(refs, [*refs[1:], refs[0]], strict=True))
    found = graph({ref: {"before": other} for ref, other in following.items()})
    assert len(found.cycles) == len(refs)
    deep = graph({ref: {} for ref in refs}, [*pairwise(refs)])
    assert not deep.cycles


def test_ten_megabytes_of_title_are_not_in_a_sentence() -> None:
    title = "x" * 10_000_000
    found = graph({f"File[{title}]": {}, "A[1]": {"require": f"File[{title}/]"}})
    (relation,) = around(found, "A[1]").needs
    assert len(found.stated(relation)) < 500

"""Several nodes: the same changes are one group; what did not change and what failed is always there."""

from __future__ import annotations

from typing import Any

from inspector.compare import diff_lines, plain
from inspector.compare.groups import Groups
from inspector.runs.examples import catalog, report, talk
from tests.support.compared import compared, file

type Resources = list[dict[str, Any]]


def node(name: str, before: Resources, after: Resources | None, facts: dict[str, Any] | None = None) -> Any:
    def side(resources: list[dict[str, Any]] | None) -> Any:
        if resources is None:
            failing = catalog(status=500, text=f"Server Error: no role on node {name}")
            return talk(failing, report(result="failed"), certname=name)
        made = catalog(resources=[file("/etc/always"), *resources], facts=facts)
        return talk(made, report(), certname=name)

    return compared(side(before), side(after))


def grouped(*comparisons: Any) -> Groups:
    found = Groups()
    for each in comparisons:
        found.add(each)
    return found


def nodes() -> list[Any]:
    old, new = [file("/a", mode="1", owner="x")], [file("/a", mode="2", owner="y")]
    made = [node(f"web{number}.example", old, new) for number in range(4)]
    made += [node("db.example", old, [*new, file("/db")]), node("same.example", old, old)]
    made += [node(f"bad{number}.example", old, None) for number in range(2)]
    return made


def briefly(found: Groups) -> list[tuple[list[str], list[str]]]:
    return [(sorted(group.nodes), sorted(each.address for each in group.differences)) for group in found.groups]


def test_groups_do_not_depend_on_the_order() -> None:
    every = nodes()
    expected = [
        (["db.example", *(f"web{number}.example" for number in range(4))], ["File[/a]/mode", "File[/a]/owner"]),
        (["db.example"], ["File[/db]"]),
    ]
    for at in range(len(every)):
        found = grouped(*every[at:], *every[:at])
        assert briefly(found) == expected
        assert found.same == ["same.example"]
        assert [sorted(failed.nodes) for failed in found.failed] == [["bad0.example", "bad1.example"]]
        assert (found.changed, found.status) == (5, 2)


def test_a_nodes_own_names_in_values_do_not_part_it_from_the_others() -> None:
    made = []
    for name, ip in (("web1.example", "192.0.2.11"), ("database.example", "192.0.2.99")):
        host = name.partition(".")[0]
        facts = {"networking": {"fqdn": name, "hostname": host, "ip": ip}}
        made.append(node(name, [file("/a", content="")], [file("/a", content=f"{name} {host} {ip}")], facts))
    (group,) = grouped(*made).groups
    assert len(group.nodes) == 2


def test_opposite_changes_are_no_same_one() -> None:
    made = []
    for name, ip, turned in (("web1.example", "192.0.2.11", False), ("web2.example", "192.0.2.12", True)):
        facts = {"networking": {"fqdn": name, "ip": ip}}
        before, after = (name, ip) if turned else (ip, name)
        made.append(node(name, [file("/a", content=before)], [file("/a", content=after)], facts))
    assert len(grouped(*made).groups) == 2


def test_other_values_are_another_change() -> None:
    made = [node(f"{name}.example", [file("/a", x=0)], [file("/a", x=name)]) for name in ("one", "two")]
    assert len(grouped(*made).groups) == 2


def test_exit_status() -> None:
    same = node("a.example", [], [])
    assert grouped(same).status == 0
    assert grouped(same, node("b.example", [], [file("/x")])).status == 1
    assert grouped(same, node("b.example", [], None)).status == 2
    assert grouped().status == 2


def test_as_text_and_json() -> None:
    found = grouped(*nodes())
    found.only_before.append("old.example")
    lines = [line.text for line in diff_lines.grouped(found)]
    assert lines[:3] == [
        "6 nodes compared: 5 changed, 1 without a change; 2 not compared",
        "",
        "the same 2 changes on 5 nodes: web0.example, web1.example, web2.example, web3.example, db.example",
    ]
    assert "1 change on 1 node: db.example" in lines
    assert "not compared: 2 nodes: bad0.example, bad1.example" in lines
    assert "  the run after got no catalog: no role on node bad0.example" in lines
    assert "without a change: 1 node: same.example" in lines
    assert "with a run before only: 1 node: old.example" in lines
    fields = plain.nodes(found)
    assert [len(group.nodes) for group in fields.groups] == [5, 1]
    assert (fields.status, fields.without_change, fields.only_before) == (2, ["same.example"], ["old.example"])

"""The comparison of two runs as a whole."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from inspector.compare.comparison import Choices
from inspector.compare.differences import Patterns, Section
from inspector.compare.facts import Volatile
from inspector.model import Exchange
from inspector.runs.examples import catalog, report, talk
from tests.support.compared import compared, file, resource, run_of

if TYPE_CHECKING:
    from inspector.model import Record
    from inspector.runs.examples import ExamplePart, Scene


def test_no_difference() -> None:
    found = compared(run_of(file("/a")), run_of(file("/a"), after=3600))
    assert (found.differences, found.uncompared, found.status) == ([], {}, 0)


def test_differences_in_the_order_of_the_sections() -> None:
    before = run_of(file("/a", mode="1"), facts={"os": "a"})
    after = run_of(file("/a", mode="2"), facts={"os": "b"}, result="changed")
    found = compared(before, after)
    assert found.status == 1
    assert [str(each.section) for each in found.differences] == ["catalog", "facts", "report"]
    assert [each.name for each in found.of(Section.FACTS)] == ["os"]


def test_volatile_facts_do_not_count() -> None:
    before, after = run_of(facts={"uptime": "1"}), run_of(facts={"uptime": "2"})
    found = compared(before, after)
    assert (found.status, [each.name for each in found.volatile]) == (0, ["uptime"])
    assert compared(before, after, Choices(volatile=Volatile(()))).status == 1


def test_a_missing_catalog_is_never_no_difference() -> None:
    failed = talk(catalog(status=500), report(result="failed"))
    for before, after in ((run_of(), failed), (failed, run_of()), (failed, failed)):
        found = compared(before, after)
        assert found.status == 2
        assert "got no catalog" in found.uncompared[Section.CATALOG]


def test_nor_is_an_empty_one() -> None:
    usual = [resource("Stage", "main"), resource("Class", "Settings"), resource("Class", "main")]
    empty = talk(catalog(resources=usual), report())
    found = compared(empty, empty)
    assert found.status == 2
    assert found.uncompared[Section.CATALOG] == (
        "a.sqlite run 1 has an empty catalog; b.sqlite run 1 has an empty catalog"
    )
    assert compared(run_of(), talk(catalog(resources=[*usual, resource("Class", "other")]), report())).status == 1


def test_a_missing_report_is_said() -> None:
    found = compared(run_of(), talk(catalog(resources=[file("/etc/always")])))
    assert found.uncompared == {Section.REPORT: "b.sqlite run 1 sent no report"}
    assert found.status == 1


@pytest.mark.parametrize("both", [False, True])
def test_what_cannot_be_read_is_no_equal_document(both: bool) -> None:
    def broken(part: ExamplePart, body: bytes) -> ExamplePart:
        def changed(scene: Scene) -> Record | None:
            made = part(scene)
            assert isinstance(made, Exchange)
            return dataclasses.replace(made, request=dataclasses.replace(made.request, body=body))

        return changed

    def of(facts: bytes, sent: bytes) -> list[Record]:
        facts = b"environment=production&facts_format=application%2Fjson&facts=%257B" + facts
        return talk(broken(catalog(resources=[file("/a")]), facts), broken(report(), sent))

    bad = of(b"broken", b'{"host": 1, "logs": 7}')
    found = compared(of(b"other", b'{"host": 2, "logs": 7}') if both else run_of(file("/a")), bad)
    assert set(found.uncompared) == {Section.FACTS, Section.REPORT}
    for section, named in ((Section.FACTS, "facts"), (Section.REPORT, "a report")):
        assert found.uncompared[section].count(f"sent {named} that cannot be read: ") == 1 + both


def test_what_is_ignored() -> None:
    before, after = run_of(file("/a", mode="1")), run_of(file("/a", mode="2"))
    found = compared(before, after, Choices(Patterns(["*/mode"], Section)))
    assert (found.status, found.ignored.total()) == (0, 1)


def test_the_same_difference_of_two_nodes_has_one_identity() -> None:
    def of(name: str, mode: str) -> list[str]:
        def side(value: str) -> list[Record]:
            resources = [file("/etc/always"), file(f"/etc/{name}.conf", mode=value, content=f"for {name}")]
            return talk(catalog(resources=resources), report(), certname=name)

        return [each.identity for each in compared(side("0"), side(mode)).differences]

    assert of("web1.example", "1") == of("db.example", "1")
    assert of("web1.example", "1") != of("web1.example", "2")

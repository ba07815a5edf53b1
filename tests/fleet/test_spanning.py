"""Deviations that only several captures show: the same ones however the runs are split over captures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.fleet import conversion
from inspector.fleet.directory import TableDirectory
from inspector.fleet.spanning import SPANNING
from inspector.rules import rule_of
from inspector.runs.examples import altered, carried, catalog, made, plugins, report, slow, talk, together
from tests.support.captures import save
from tests.support.fleets import run_row, tables_with
from tests.support.tables_of import SITE, asked

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path

    from inspector.model import Record
    from inspector.runs.examples import ExamplePart


def run(number: int, *, after: float, name: str = "a.example", address: str = "192.0.2.7", key: str = "",
        resource: str = "", took: float = 0.1, compiler: str = "c1") -> list[Record]:  # fmt: skip
    """One run of one agent."""
    statuses = (
        {resource: {"changed": True, "events": [{"property": "ensure", "status": "success"}]}} if resource else {}
    )
    answered = altered(slow(catalog(uuid=f"u-{number}"), took), answers={"X-Puppet-Compiler-Name": compiler})
    parts: tuple[ExamplePart, ...] = (
        plugins(),
        answered,
        report(uuid=f"u-{number}", resource_statuses=statuses, result="changed" if resource else "unchanged"),
    )
    if key:
        leg = {"peer_chain": carried(made(name, key))}
        parts = tuple(altered(part, leg=leg) for part in parts)
    return talk(*parts, certname=name, address=address, after=after)


def tables_of(folder: Path, split: Iterable[Sequence[list[Record]]]) -> TableDirectory:
    """The tables of captures, each with some runs."""
    tables = TableDirectory.create(folder / "tables")
    for number, runs in enumerate(split):
        path = folder / f"{number}.sqlite"
        conversion.convert(save(path, *together(*runs)), tables, SITE)
    tables.conclude()
    return tables


def found(tables: TableDirectory) -> list[tuple[str, str, str]]:
    return asked(tables, "SELECT rule, certname, message FROM fleet_findings ORDER BY ALL")


CASES = {
    "B20": [run(1, after=0, key="one"), run(2, after=3600, key="two")],
    "B21": [run(1, after=0, key="one"), run(2, after=3600, key="one", name="b.example", address="192.0.2.8")],
    "B46": [run(1, after=0, key="one"), run(2, after=1.5, key="two", address="192.0.2.8")],
    "R17": [run(1, after=0), run(2, after=1.5)],
    "P11": [run(number, after=1800 * number, resource="File[/etc/motd]") for number in range(3)],
    "S20": [run(number, after=1800 * number, compiler=compiler) for number, compiler in enumerate(("c1", "c2", "c1"))],
    "S29": [run(number, after=1800 * number, took=9 if number == 5 else 1) for number in range(6)],
    "R16": [
        run(number, after=number / 10, name=f"n{number}.example", address=f"192.0.2.{number}") for number in range(24)
    ],
}
"""Runs that show each of them, in whichever captures they are, as long as these are several."""
ALONE = ("B46", "P11", "R16", "S29")
"""Those that the rule finds in such runs, too, if they are in one capture: others need signing requests, or more."""


def test_every_one_is_a_rule_with_a_case() -> None:
    assert {each.rule for each in SPANNING} == set(CASES)
    assert all(rule_of(each.rule) for each in SPANNING)


@pytest.mark.slow
@pytest.mark.parametrize("rule", CASES)
def test_it_is_found_in_several_captures_and_only_there(tmp_path: Path, rule: str) -> None:
    runs = CASES[rule]
    for name, split in (("each", [runs[::2], runs[1::2]]), ("together", [runs])):
        (tmp_path / name).mkdir()
        tables = tables_of(tmp_path / name, split)
        rules = {found_rule for found_rule, _, _ in found(tables)}
        assert (rule in rules) == (name == "each"), found(tables)
        if name == "together" and rule in ALONE:
            assert asked(tables, f"SELECT count(*) > 0 FROM findings WHERE rule = '{rule}'") == [(True,)]


def test_as_many_findings_as_changes_of_the_key_and_one_for_two_hosts(tmp_path: Path) -> None:
    """Not one for each two of them: a node that is made anew every hour has thousands of keys."""
    anew = [run_row(number, "anew", 60 * number, key=f"k{number}", capture=f"{number:016}") for number in range(1, 51)]
    turns = [run_row(100 + number, "turns", 60 * number, key=f"t{number % 10}", capture=f"{number:016}")
             for number in range(1, 51)]  # fmt: skip
    tables = tables_with(tmp_path, *anew, *turns)
    tables.conclude()
    counted = asked(tables, "SELECT certname, severity, count(*), max(len(runs)) FROM fleet_findings "
                            "WHERE rule = 'B20' GROUP BY ALL ORDER BY ALL")  # fmt: skip
    assert counted == [("anew", "notice", 49, 2), ("turns", "warning", 1, 20)]


@pytest.mark.slow
def test_healthy_agents_show_nothing(tmp_path: Path) -> None:
    runs = [
        run(10 * agent + number, after=1800 * number + 100 * agent, name=f"n{agent}", address=f"192.0.2.{agent}")
        for agent in range(3)
        for number in range(3)
    ]
    assert found(tables_of(tmp_path, [[one] for one in runs])) == []


@pytest.mark.slow
def test_concluding_again_replaces_what_was_concluded(tmp_path: Path) -> None:
    tables = tables_of(tmp_path, [[one] for one in CASES["B21"]])
    before = found(tables)
    assert len(tables.conclude()) == 1
    assert found(tables) == before
    next(tables.root.glob("runs/date=*/site=*/*.parquet")).unlink()
    assert tables.conclude() == []
    assert found(tables) == []


RUNS = [*CASES["B46"], *(run(number, after=7200 + 1800 * number, resource="File[/etc/motd]") for number in range(3))]


@pytest.mark.slow
@settings(max_examples=4, derandomize=True)
@given(st.data())
def test_the_split_and_the_order_make_no_difference(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Whichever runs are in one capture, and in whatever order captures are converted, the same is found: in one of
    them or in several together. What is concluded of some first is the same at the end."""
    splits = [
        data.draw(st.lists(st.integers(0, 2), min_size=len(RUNS), max_size=len(RUNS)).filter(lambda it: len({*it}) > 1))
        for _ in range(2)
    ]
    one, other = ([[run for run, place in zip(RUNS, places, strict=True) if place == number] for number in range(3)]
                  for places in splits)  # fmt: skip
    one, other = ([capture for capture in split if capture] for split in (one, other))
    made = [
        tables_of(tmp_path_factory.mktemp("split"), split) for split in (one, data.draw(st.permutations(one)), other)
    ]
    for table in ("runs", "exchanges", "findings", "fleet_findings", "facts"):
        rows = [asked(tables, f"SELECT * FROM {table} ORDER BY ALL") for tables in made[:2]]
        assert rows[0] == rows[1]
    assert everything(made[0]) == everything(made[2])
    assert everything(made[0]) == {("B46", "a.example"), ("P11", "a.example")}


def everything(tables: TableDirectory) -> set[tuple[object, ...]]:
    """What is found of these nodes, in one capture or in several, by rules that find it in either."""
    rules = ", ".join(f"'{rule}'" for rule in ALONE)
    statement = "SELECT DISTINCT rule, certname FROM {} WHERE rule IN ({})"
    return {
        *asked(tables, statement.format("findings", rules)),
        *asked(tables, statement.format("fleet_findings", rules)),
    }


@pytest.mark.slow
def test_what_was_concluded_before_the_rest_came_is_concluded_again(tmp_path: Path) -> None:
    tables = tables_of(tmp_path, [[CASES["B21"][0]]])
    assert found(tables) == []
    conversion.convert(save(tmp_path / "rest.sqlite", *CASES["B21"][1]), tables, SITE)
    tables.conclude()
    (tmp_path / "whole").mkdir()
    assert found(tables) == found(tables_of(tmp_path / "whole", [[one] for one in CASES["B21"]])) != []

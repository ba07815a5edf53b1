"""Parts of statements: what they select."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.explain.readiness.changes import CHANGES
from inspector.fleet import database
from inspector.fleet.directory import TableDirectory
from inspector.fleet.statements import AGENTS, RANK, RUN, SERIES, SIGNS, asked_for
from inspector.fleet.tables import ResourceEventRow
from inspector.protocol.kinds import Kind
from tests.support.fleets import micros, run_row, tables_with
from tests.support.made_tables import exchange, fact, run, tables, with_facts
from tests.support.tables_of import asked

if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from inspector.fleet.tables import TableRow

NONE = "0" * 16


def answers(folder: Path, statement: str, *rows: TableRow) -> list[tuple[Any, ...]]:
    with database.opened(folder) as connection:
        tables_with(folder, *rows).show(connection)
        return connection.execute(statement).fetchall()


def test_runs_of_agents_have_a_name_and_are_not_those_of_tools(tmp_path: Path) -> None:
    rows = run_row(1, "a", 1), run_row(2, "a", 2, tool="curl/8")
    assert answers(tmp_path, f"SELECT {RUN} FROM runs WHERE {AGENTS}", *rows) == [(f"{NONE}:1",)]


def test_the_worst_severity_is_first(tmp_path: Path) -> None:
    found = answers(tmp_path, f"SELECT severity FROM (VALUES ('notice'), ('error'), ('warning')) t(severity) "
                              f"ORDER BY {RANK}")  # fmt: skip
    assert found == [("error",), ("warning",), ("notice",)]


def test_endpoints_are_found_by_their_kind() -> None:
    assert asked_for(Kind.CRL) == "endpoint IN ('crl')"
    assert asked_for(Kind.CRL, Kind.CA_BUNDLE) == "endpoint IN ('ca', 'crl')"


def changed(number: int, title: str, line: int = 7) -> ResourceEventRow:
    return ResourceEventRow(capture=NONE, run=number, certname="a", time=micros(number), type="File", title=title,
                            status="success", file="/m/site.pp", line=line)  # fmt: skip


def test_a_series_is_three_runs_in_a_row(tmp_path: Path) -> None:
    runs = [run_row(number, "a", number, report_status="changed") for number in range(1, 9)]
    # Run 4 was quiet about /a; two events of a run are one change, whatever line they name.
    events = [changed(number, "/a") for number in (1, 2, 3, 5, 6)] + [changed(2, "/a", 8)]
    found = answers(tmp_path, f"WITH {SERIES} SELECT certname, ref, long, until, names, reports FROM series",
                    *runs, *events)  # fmt: skip
    assert found == [("a", "File[/a]", 3, 3, [f"{NONE}:{number}" for number in (1, 2, 3)], 8)]


FLAT = ("osfamily", "operatingsystem", "ipaddress_eth0")


def test_each_sign_is_that_of_a_change_without_rules() -> None:
    assert {change.key for change in CHANGES if not change.rules} >= set(SIGNS)


def test_the_nodes_that_a_change_concerns(tmp_path: Path) -> None:
    flat, two, cleaned_before, cleaned = (
        with_facts(run(name, hours)) for name, hours in (("flat", 1), ("two", 1), ("cleaned", 9), ("cleaned", 1))
    )
    tool = run("tool", tool="curl/8")
    root = tables(
        tmp_path, flat, two, cleaned_before, cleaned, tool, run("old", dialect="legacy"), run("new", dialect="v3"),
        *(fact("flat", path, "x", run=flat.run) for path in FLAT),
        *(fact("two", path, "x", run=two.run) for path in FLAT[:2]),
        *(fact("cleaned", path, "x", 9, run=cleaned_before.run) for path in FLAT),
        exchange("old", request_format="text/pson"), exchange("new", format="application/json"),
        exchange("tool", format="text/pson", run=tool.run),
    )  # fmt: skip
    found = {key: asked(TableDirectory.open(root), statement) for key, statement in SIGNS.items()}
    assert found == {"legacy-url": [("old",)], "legacy-facts": [("flat",)], "pson": [("old",)]}

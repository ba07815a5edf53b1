"""`sql`: tables or captures, a statement, a named query, or a script on standard input."""

from __future__ import annotations

import csv
import io
import sys
from typing import TYPE_CHECKING

import pytest

from inspector.fleet.queries.named import QUERIES
from inspector.runs.examples import catalog, plugins, report, talk
from tests.support import json_output
from tests.support.captures import save
from tests.support.hostile import hostile_records
from tests.support.made_tables import certificate, exchange, tables
from tests.support.made_tables import run as run_of
from tests.support.places import SAMPLES
from tests.support.terminals import pretend

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run

SAMPLE = SAMPLES / "first-run.sqlite"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tables(tmp_path, run_of("a.example", 2), run_of("b.example", 1), certificate("a.example", 20))


def scripted(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(script))


def test_a_statement_to_tables_as_table_csv_and_json(run: Run, root: Path) -> None:
    statement = "SELECT certname, outcome FROM runs ORDER BY time"
    assert run("sql", root, statement) == (0, "certname   outcome\na.example  complete\nb.example  complete\n", "")
    _, out, _ = run("sql", root, statement, "--csv")
    assert list(csv.reader(io.StringIO(out)))[1:] == [["a.example", "complete"], ["b.example", "complete"]]
    _, out, _ = run("sql", root, statement, "--json")
    assert json_output.valid("sql", out)[1] == {"certname": "b.example", "outcome": "complete"}


@pytest.mark.slow
def test_captures_are_made_tables_first(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "captures"
    folder.mkdir()
    first = save(folder / "a.sqlite", *talk(plugins(), catalog(), report()))
    second = save(folder / "b.sqlite", *talk(plugins(), catalog(), after=90_000))
    statement = "SELECT count(*) AS n FROM exchanges"
    assert run("sql", first, statement)[:2] == (0, "n\n3\n")
    assert run("sql", first, second, statement)[1] == run("sql", folder, statement)[1] == "n\n5\n"
    monkeypatch.chdir(tmp_path)
    assert run("sql", statement)[1] == "n\n2\n", "the newest in captures/"
    assert sorted(path.name for path in folder.iterdir()) == ["a.sqlite", "b.sqlite"]


def test_a_capture_that_cannot_be_read_is_said_and_the_others_are_asked(run: Run, tmp_path: Path) -> None:
    (tmp_path / "z.sqlite").write_text("no capture")
    status, out, err = run("sql", SAMPLE, tmp_path / "z.sqlite", "SELECT count(*) AS n FROM runs")
    assert (status, out) == (2, "n\n1\n")
    assert "z.sqlite is not a capture" in err
    assert run("sql", tmp_path / "z.sqlite", "SELECT 1")[:2] == (2, "")


def test_a_capture_without_records(run: Run, tmp_path: Path) -> None:
    assert run("sql", save(tmp_path / "a.sqlite"), "SELECT certname FROM runs") == (0, "no rows\n", "")
    assert run("sql", save(tmp_path / "b.sqlite"), "--query", "silent") == (0, "no rows\n", "")


@pytest.mark.slow
def test_rules_of_the_site_are_applied_to_captures(run: Run, tmp_path: Path, root: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text("rules: {U01: {title: a catalog, when: 'phase:catalog'}}\n")
    statement = "SELECT count(*) > 0 AS found FROM findings WHERE rule = 'U01'"
    assert run("sql", SAMPLE, statement)[1] == "found\nno\n"
    assert run("sql", SAMPLE, statement, "--rules", rules)[1] == "found\nyes\n"
    status, _, err = run("sql", root, statement, "--rules", rules)
    assert status == 2
    assert "when captures are read" in err


def test_a_named_query_with_parameters(run: Run, root: Path) -> None:
    status, out, _ = run("sql", root, "--query", "expiring", "--json")
    (row,) = json_output.valid("sql", out)
    assert (status, row["name"], row["days_left"], row["renewal"]) == (0, "a.example", 20, None)
    assert row["not_after"] == "2026-12-11T12:00:00.000000Z"
    assert run("sql", root, "--query", "expiring", "--set", "days=19")[1] == "no rows\n"
    assert "a.example" in run("sql", root, "--query", "expiring", "--set", "days=1", "--set", "at=2026-12-11")[1]


def test_the_list_needs_neither_duckdb_nor_captures(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    monkeypatch.chdir(tmp_path)
    status, out, err = run("sql", "--list")
    assert (status, err) == (0, "")
    assert [line.split()[0] for line in out.splitlines()[1:]] == list(QUERIES)
    _, out, _ = run("sql", "--list", "--json")
    listed = json_output.valid("queries", out)
    assert [each["name"] for each in listed] == list(QUERIES)
    assert all(f"${each['name']}" in query["statement"] for query in listed for each in query["parameters"])


def test_without_duckdb_it_says_what_is_missing(run: Run, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    status, _, err = run("sql", root, "SELECT 1")
    assert status == 2
    assert "pip install 'puppet-inspector[sql]'" in err


def test_an_empty_script_is_a_mistake(run: Run, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scripted(monkeypatch, " \n")
    status, out, err = run("sql", root)
    assert (status, out, err.splitlines()[0]) == (2, "", "puppet-inspector: There is no statement.")


def test_standard_input_is_a_script(run: Run, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scripted(monkeypatch, "-- how many\nSELECT 1 AS a;\n\nSELECT certname\nFROM runs ORDER BY 1 LIMIT 1;")
    assert run("sql", root) == (0, "a\n1\n\ncertname\na.example\n", "")
    scripted(monkeypatch, "SELECT 1 AS a; SELECT nothing FROM runs; SELECT 3")
    status, out, err = run("sql", root)
    assert (status, out) == (2, "a\n1\n\n")
    assert 'Referenced column "nothing" not found' in err
    scripted(monkeypatch, "SELECT 1; COPY runs TO 'x'")
    assert run("sql", root)[:2] == (2, ""), "nothing of it is executed"
    scripted(monkeypatch, "SELECT 1; SELECT 2")
    status, out, err = run("sql", root, "--json")
    assert (status, out) == (2, "")
    assert "of one statement" in err


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "sentence", "hint"),
    [
        (("{}", "SELEC 1"), 'Syntax error at or near "SELEC".', "LINE 1: SELEC 1"),
        (("{}", "SELECT * FROM rums"), "Table with name rums does not exist.", 'Did you mean "runs"?'),
        (("{}", "selec"), "Syntax error", ""),
        (("{}", "SELECT '\udcff'"), "bytes that are not UTF-8", "iconv"),
        (("{}", "COPY runs TO 'x'"), "COPY is not possible here.", "`sql` only reads"),
        (("{}", "--query", "expirng"), "There is no query 'expirng'.", "Did you mean `expiring`?"),
        (("{}", "--query", "expiring", "--set", "days=x"), "'x' is no value of days", "For example: days=30"),
        (("{}", "SELECT 1", "--query", "expiring"), "a statement and a named query", "Give one"),
        (("{}", "--json", "SELECT 1"), "does not take 'SELECT 1'.", "Write it before the options"),
        (("{}", "--set", "days=3"), "--set sets parameters of a named query.", "--query"),
        (("{}/runs", "SELECT 1"), "There are no tables in", "puppet-inspector tables CAPTURE -o"),
        (("{}", "{}/x.sqlite", "SELECT 1"), "not the only argument", "one directory of tables"),
        (("{}/no such file.sqlite",), "at or near", "LINE 1"),
    ],
)
def test_mistakes_are_a_sentence_and_a_hint(
    run: Run, root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], sentence: str,
    hint: str,
) -> None:  # fmt: skip
    monkeypatch.chdir(tmp_path)
    (tmp_path / "captures").mkdir()
    save(tmp_path / "captures" / "a.sqlite")
    status, out, err = run("sql", *(word.replace("{}", str(root)) for word in words))
    assert (status, out) == (2, "")
    assert sentence in err.splitlines()[0]
    assert hint in err


@pytest.mark.slow
@pytest.mark.parametrize("form", [(), ("--csv",), ("--json",)])
def test_hostile_captures_do_nothing_to_the_terminal(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: tuple[str, ...]
) -> None:
    capture = save(tmp_path / "a.sqlite", *hostile_records())
    shown = ""
    for table in ("exchanges", "handshakes", "connections", "runs", "findings", "captures"):
        status, out, err = run("sql", capture, f"SELECT * FROM {table}", *form)
        assert (status, err) == (0, "")
        shown += out
    status, _, err = run("sql", capture, "SELECT path::INT FROM exchanges WHERE length(path) > 1")
    assert status == 2
    assert (shown + err).replace("\n", "").isprintable()
    assert "gnp" in shown
    assert "gnp" in err


def test_a_value_that_ends_a_statement_is_a_value(run: Run, tmp_path: Path) -> None:
    root = tables(tmp_path, exchange("a.example", path="'; SELECT 1 --"))
    _, out, _ = run("sql", root, "SELECT path FROM exchanges WHERE path = '''; SELECT 1 --'")
    assert out == "path\n'; SELECT 1 --\n"


def test_it_fits_a_narrow_terminal(run: Run, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pretend(monkeypatch, 60)
    _, out, _ = run("sql", root, "--query", "failing")
    assert out == "no rows\n"
    _, out, _ = run("sql", root, "SELECT * FROM runs")
    assert "certname" in out
    assert max(map(len, out.splitlines())) < 120

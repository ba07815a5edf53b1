"""Results as a table, CSV and JSON: captured text does nothing, numbers are numbers, times are in UTC."""

from __future__ import annotations

import csv
import io
import math
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from inspector.cli import results
from inspector.fleet.sql import Column, Result
from tests.support import json_output
from tests.support.hostile import HOSTILE
from tests.support.terminals import plain, pretend, too_long

if TYPE_CHECKING:
    from collections.abc import Callable

TIME = datetime(2026, 11, 21, 12, 0, 0, 5000)  # noqa: DTZ001 - as DuckDB returns it
VALUES: dict[str, tuple[str, Any, str, str, Any]] = {
    "text": ("VARCHAR", "node1", "node1", "node1", "node1"),
    "nothing": ("VARCHAR", None, "-", "", None),
    "empty": ("VARCHAR", "", "", "", ""),
    "whole": ("BIGINT", -3, "-3", "-3", -3),
    "single": ("FLOAT", 0.30000001192092896, "0.3", "0.3", 0.3),
    "double": ("DOUBLE", 1234.56789, "1234.568", "1234.56789", 1234.56789),
    "no number": ("DOUBLE", math.nan, "-", "", None),
    "decimal": ("DECIMAL(5,2)", Decimal("1.50"), "1.5", "1.5", 1.5),
    "total": ("HUGEINT", 10**30, str(10**30), str(10**30), 10**30),
    "truth": ("BOOLEAN", True, "yes", "true", True),
    "time": ("TIMESTAMP", TIME, "2026-11-21 12:00:00Z", "2026-11-21T12:00:00.005000Z", "2026-11-21T12:00:00.005000Z"),
    "zoned": (
        "TIMESTAMP WITH TIME ZONE", TIME.replace(tzinfo=timezone(timedelta(hours=2))),
        "2026-11-21 10:00:00Z", "2026-11-21T10:00:00.005000Z", "2026-11-21T10:00:00.005000Z",
    ),
    "day": ("DATE", date(2026, 11, 21), "2026-11-21", "2026-11-21", "2026-11-21"),
    "span": ("INTERVAL", timedelta(days=2), "2 days, 0:00:00", "2 days, 0:00:00", "2 days, 0:00:00"),
    "bytes": ("BLOB", b"\x00\xff", "00ff", "00ff", "00ff"),
    "list": ("VARCHAR[]", ["a", "b"], "a, b", '["a", "b"]', ["a", "b"]),
    "fields": ("STRUCT", {"at": TIME.replace(tzinfo=UTC)}, '{"at": "2026-11-21T12:00:00.005000Z"}',
               '{"at": "2026-11-21T12:00:00.005000Z"}', {"at": "2026-11-21T12:00:00.005000Z"}),
}  # fmt: skip
"""Of each type: its name, a value, and what it is in a table, in CSV and in JSON."""


def result(*batches: list[tuple[Any, ...]], columns: tuple[Column, ...] = (Column("a", "VARCHAR"),)) -> Result:
    return Result(columns, iter(batches))


def every() -> Result:
    columns = tuple(Column(name, kind) for name, (kind, *_) in VALUES.items())
    return result([tuple(value for _, value, *_ in VALUES.values())], columns=columns)


def test_values_in_json(capsys: pytest.CaptureFixture[str]) -> None:
    results.print_json(every())
    assert json_output.valid("sql", capsys.readouterr().out) == [
        {name: expected for name, (*_, expected) in VALUES.items()}
    ]


def test_values_in_csv(capsys: pytest.CaptureFixture[str]) -> None:
    results.print_csv(every())
    (row,) = csv.DictReader(io.StringIO(capsys.readouterr().out))
    assert row == {name: expected for name, (_, _, _, expected, _) in VALUES.items()}


def test_values_in_a_table(capsys: pytest.CaptureFixture[str]) -> None:
    for name, (kind, value, expected, *_) in VALUES.items():
        results.print_table(result([(value,)], columns=(Column(name, kind),)))
        assert capsys.readouterr().out == f"{name}\n{expected}\n"


@pytest.mark.parametrize("show", [results.print_table, results.print_csv, results.print_json])
def test_nothing_captured_reaches_the_terminal_as_it_is(
    show: Callable[[Result], None], capsys: pytest.CaptureFixture[str]
) -> None:
    columns = (Column(HOSTILE, "VARCHAR"), Column("list", "VARCHAR[]"), Column("fields", "STRUCT"))
    show(result([(HOSTILE, [HOSTILE], {HOSTILE: HOSTILE})], columns=columns))
    out = capsys.readouterr().out
    assert out.count("\n") <= 4
    assert out.replace("\n", "").isprintable()


def test_no_text_is_a_formula_in_csv(capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("=1+2", "+1", "-1", "@SUM(A1)", "=cmd|' /C calc'!A0"):
        results.print_csv(result([(text, -1)], columns=(Column(text, "VARCHAR"), Column("n", "INTEGER"))))
        head, row = csv.reader(io.StringIO(capsys.readouterr().out))
        assert (head, row) == ([f"'{text}", "n"], [f"'{text}", "-1"])
        results.print_json(result([(text,)]))
        assert json_output.strict(capsys.readouterr().out) == [{"a": text}], "JSON has it as it is"


def test_no_rows(capsys: pytest.CaptureFixture[str]) -> None:
    for show, expected in (
        (results.print_table, "no rows\n"),
        (results.print_csv, "a\n"),
        (results.print_json, "[]\n"),
    ):
        show(result())
        assert capsys.readouterr().out == expected


def test_a_table_has_the_first_rows_and_csv_and_json_all(capsys: pytest.CaptureFixture[str]) -> None:
    batches = [[(f"{number}-{row}",) for row in range(600)] for number in range(3)]
    results.print_table(result(*batches))
    lines = capsys.readouterr().out.splitlines()
    assert (lines[1000], len(lines)) == ("1-399", 1002)
    assert lines[-1] == "only the first 1,000 rows: --csv or --json prints all"
    results.print_table(result(*batches[:1], batches[1][:400]))
    assert capsys.readouterr().out.splitlines()[-1] == "1-399"
    results.print_csv(result(*batches))
    assert len(capsys.readouterr().out.splitlines()) == 1801
    results.print_json(result(*batches))
    assert len(json_output.strict(capsys.readouterr().out)) == 1800


def test_rows_are_printed_as_they_come(capsys: pytest.CaptureFixture[str]) -> None:
    for show in (results.print_csv, results.print_json):

        def batches(printed: list[str]) -> Any:
            yield [("first",)]
            printed.append(capsys.readouterr().out)
            yield [("second",)]

        printed: list[str] = []
        show(Result((Column("a", "VARCHAR"),), batches(printed)))
        assert "first" in printed[0]
        assert "first" not in capsys.readouterr().out


def test_a_table_fits_the_terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    pretend(monkeypatch, 60)
    columns = tuple(Column(f"column{number}", "VARCHAR") for number in range(12))
    results.print_table(result([tuple("some words of text" for _ in columns)], columns=columns))
    assert too_long(plain(capsys.readouterr().out), 60) == []
    results.print_table(result([("x" * 100_000,)]))
    assert len(plain(capsys.readouterr().out)) < 1000

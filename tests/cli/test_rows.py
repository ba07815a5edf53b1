"""Tables are aligned where there is room, and nothing is cut where there is none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from inspector.cli.rows import OUTCOMES, print_rows, run_row
from inspector.summaries import reading, wording
from tests.support import places
from tests.support.terminals import plain, pretend, too_long

if TYPE_CHECKING:
    import pytest

    from inspector.cli.rows import Cell

    type Capsys = pytest.CaptureFixture[str]

HEADS = ("run", "agent", "phases", "findings")
ROWS: list[list[Cell]] = [
    ["1", "web1.example", "catalog 1 (808 ms), files 10 (442 ms)", Text("B01 B17 R21 B39", "red")],
    ["2", "database-server.example", "report 1 (1 ms)", "-"],
]


def printed(monkeypatch: pytest.MonkeyPatch, capsys: Capsys, width: int | None) -> str:
    if width is not None:
        pretend(monkeypatch, width)
    print_rows(HEADS, ROWS, below="phases")
    return capsys.readouterr().out


def test_in_a_pipe_it_is_plain_and_whole(monkeypatch: pytest.MonkeyPatch, capsys: Capsys) -> None:
    monkeypatch.setenv("COLUMNS", "20")
    monkeypatch.setenv("FORCE_COLOR", "1")
    assert printed(monkeypatch, capsys, None).splitlines() == [
        "run  agent                    phases                                 findings",
        "1    web1.example             catalog 1 (808 ms), files 10 (442 ms)  B01 B17 R21 B39",
        "2    database-server.example  report 1 (1 ms)                        -",
    ]


def test_where_there_is_room_it_is_the_same_table_in_colour(monkeypatch: pytest.MonkeyPatch, capsys: Capsys) -> None:
    piped = printed(monkeypatch, capsys, None)
    out = printed(monkeypatch, capsys, 85)
    assert plain(out) == piped
    assert "\x1b[31mB01 B17 R21 B39\x1b[0m" in out
    monkeypatch.setenv("NO_COLOR", "1")
    print_rows(HEADS, ROWS)
    assert "\x1b[31m" not in capsys.readouterr().out


def test_the_long_column_is_printed_below(monkeypatch: pytest.MonkeyPatch, capsys: Capsys) -> None:
    assert plain(printed(monkeypatch, capsys, 60)).splitlines() == [
        "run  agent                    findings",
        "1    web1.example             B01 B17 R21 B39",
        "    catalog 1 (808 ms), files 10 (442 ms)",
        "2    database-server.example  -",
        "    report 1 (1 ms)",
    ]


def test_then_the_last_column_is_wrapped(monkeypatch: pytest.MonkeyPatch, capsys: Capsys) -> None:
    assert plain(printed(monkeypatch, capsys, 42)).splitlines() == [
        "run  agent                    findings",
        "1    web1.example             B01 B17 R21",
        "                              B39",
        "    catalog 1 (808 ms), files 10 (442 ms)",
        "2    database-server.example  -",
        "    report 1 (1 ms)",
    ]


def test_then_columns_are_left_out(monkeypatch: pytest.MonkeyPatch, capsys: Capsys) -> None:
    pretend(monkeypatch, 38)
    print_rows(HEADS, ROWS, below="phases", spare=("run", "agent"))
    assert plain(capsys.readouterr().out).splitlines() == [
        "agent                    findings",
        "web1.example             B01 B17 R21",
        "                         B39",
        "    catalog 1 (808 ms), files 10 (442",
        "    ms)",
        "database-server.example  -",
        "    report 1 (1 ms)",
    ]


def test_and_at_last_each_line_is_a_paragraph(monkeypatch: pytest.MonkeyPatch, capsys: Capsys) -> None:
    assert plain(printed(monkeypatch, capsys, 30)).splitlines() == [
        "run 1  agent web1.example",
        "    phases catalog 1 (808 ms),",
        "    files 10 (442 ms)",
        "    findings B01 B17 R21 B39",
        "run 2",
        "    agent",
        "    database-server.example",
        "    phases report 1 (1 ms)",
    ]


def test_nothing_is_cut(monkeypatch: pytest.MonkeyPatch, capsys: Capsys) -> None:
    for width in range(30, 130, 7):
        out = printed(monkeypatch, capsys, width)
        assert too_long(out, width) == [], width
        words = plain(out).split()
        for row in ROWS:
            for cell in row:
                assert set(str(cell).split()) - {"-"} <= set(words), width


def test_a_run_shows_what_is_wrong_in_colour() -> None:
    (found,) = reading.read(places.SAMPLES / "mismatched-key.sqlite").briefs
    cells = dict(zip(wording.RUN_COLUMNS, run_row(found), strict=True))
    assert [str(cell) for cell in cells.values()] == list(wording.run_row(found))
    assert isinstance(cells["outcome"], Text)
    assert cells["outcome"].style == OUTCOMES["failed"]
    assert isinstance(cells["findings"], Text)
    assert {str(span.style) for span in cells["findings"].spans} == {"bold red"}

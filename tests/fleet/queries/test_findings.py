"""When which finding was, and which requests are answered with errors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.fleet.tables import CaptureRow
from tests.support.made_tables import CAPTURE, DAY, END, ago, answer, exchange, finding, micros, run, tables

if TYPE_CHECKING:
    from pathlib import Path


def test_first_finding(tmp_path: Path) -> None:
    first = run("first.example", 50)
    root = tables(
        tmp_path,
        first,
        finding("first.example", "R02", 50, run=first.run, severity="warning"),
        finding("later.example", "R02", 20),
        finding("later.example", "R02", 10),
        finding("later.example", "S01", 3),
    )
    columns = "rule severity first certname capture run findings nodes last"
    assert answer(root, "first_finding", columns) == [
        ("S01", "error", ago(3), "later.example", CAPTURE, None, 1, 1, ago(3)),
        ("R02", "warning", ago(50), "first.example", CAPTURE, first.run, 3, 2, ago(10)),
    ]


def test_findings(tmp_path: Path) -> None:
    root = tables(
        tmp_path,
        finding("a.example", "R02", 1),
        finding("a.example", "R02", 2, cause=True),
        finding("b.example", "R02", 24),
        finding("a.example", "S01", 31 * DAY),
    )
    today, yesterday = END.date(), ago(24).date()
    assert answer(root, "findings", "day rule severity findings nodes causes") == [
        (today, "R02", "error", 2, 1, 1),
        (yesterday, "R02", "error", 1, 1, 0),
    ]
    assert answer(root, "findings", "day findings", "at=2026-11-21T10:30:00Z") == [(today, 1), (yesterday, 1)]


def test_errors(tmp_path: Path) -> None:
    root = tables(
        tmp_path,
        exchange("a.example", status=500, path="/puppet/v3/catalog/a.example"),
        exchange("b.example", status=500, path="/puppet/v3/catalog/b.example"),
        exchange("c.example", status=None, error="the master closed the connection"),
        exchange("d.example", status=304),
    )
    assert answer(root, "errors", "endpoint status error requests nodes example path") == [
        ("catalog", 500, None, 2, 2, "a.example", "/puppet/v3/catalog/a.example"),
        ("catalog", None, "the master closed the connection", 1, 1, "c.example", ""),
    ]


def test_gaps(tmp_path: Path) -> None:
    whole = CaptureRow(capture="w", time=micros(2), last=micros(0), name="whole.sqlite")
    lossy = CaptureRow(capture="l", time=micros(1), last=micros(0), name="lossy.sqlite", lost=3)
    damaged = CaptureRow(capture="d", time=micros(2), last=micros(0), name="damaged.sqlite", trouble="torn")
    root = tables(tmp_path, whole, lossy, damaged)
    assert answer(root, "gaps", "name lost trouble") == [("damaged.sqlite", 0, "torn"), ("lossy.sqlite", 3, None)]

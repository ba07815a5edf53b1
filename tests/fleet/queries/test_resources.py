"""Which resources never settle, are corrected, or fail."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.made_tables import DAY, answer, event, run, tables

if TYPE_CHECKING:
    from pathlib import Path


def test_changing_resources(tmp_path: Path) -> None:
    often = [run("a.example", hours, report_status="changed") for hours in (3, 2, 1)]
    other = [run("b.example", hours, report_status="changed") for hours in (3, 2, 1)]
    seldom = [run("c.example", hours, report_status="changed") for hours in (2, 1)]
    noop = [run("d.example", hours, report_status="changed", noop=True) for hours in (3, 2, 1)]
    refused = run("a.example", 4, outcome="refused")  # it has no report, and does not count
    root = tables(
        tmp_path,
        *often, *other, *seldom, *noop, refused,
        *(event(one, "/always") for one in (*often, *other, *seldom, *noop)),
        *(event(one, "/always", property="mode") for one in often),  # two changes of a run are one
        *(event(one, "/twice") for one in often[:2]),
        *(event(one, "/fails", "failure") for one in often),
    )  # fmt: skip
    columns = "type title file line nodes example changes"
    assert answer(root, "changing_resources", columns) == [("File", "/always", "/site.pp", 7, 2, "a.example", 6)]
    assert answer(root, "changing_resources", "title nodes", "runs=2") == [("/always", 3)]


def test_corrective(tmp_path: Path) -> None:
    one, two, old = run("a.example"), run("b.example"), run("b.example", 31 * DAY)
    root = tables(
        tmp_path,
        one, two, old,
        event(one, "/drifts", corrective=True),
        event(two, "/drifts", corrective=True),
        event(old, "/drifted", corrective=True),
        event(one, "/new", corrective=False),
        event(one, "/noop", "noop", corrective=True),
    )  # fmt: skip
    assert answer(root, "corrective", "type title property changes nodes example") == [
        ("File", "/drifts", "content", 2, 2, "a.example")
    ]


def test_failed_resources(tmp_path: Path) -> None:
    first, last = run("a.example", 2), run("a.example", 1)
    root = tables(
        tmp_path,
        first, last,
        event(first, "/full", "failure", message="older"),
        event(last, "/full", "failure", message="no space left"),
        event(last, "/good"),
    )  # fmt: skip
    assert answer(root, "failed_resources", "type title file line failures nodes example message") == [
        ("File", "/full", "/site.pp", 7, 2, 1, "a.example", "no space left")
    ]

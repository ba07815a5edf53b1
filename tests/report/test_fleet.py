"""The fleet report: what a reader sees in a browser, and that nothing of it runs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from inspector.fleet.overview import overview_of
from inspector.fleet.tables import CertificateRow
from inspector.report import fleet as report
from tests.support.fleets import DAY, fleet, micros, run_row, tables_with
from tests.support.pages import browser

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.fleet.overview import Overview


LABELS = """[...document.querySelectorAll("svg.dates")].map(svg => [...svg.querySelectorAll("text")]
    .map(text => text.getBoundingClientRect()).filter(box => box.width).flatMap(box => [box.left, box.right]))"""
"""Where the labels of each axis begin and end."""


@pytest.fixture
def found(tmp_path: Path) -> Overview:
    return overview_of(fleet(tmp_path, 120))


@pytest.mark.slow
def test_the_answer_comes_first(found: Overview) -> None:
    page = report.html(found, "tables")
    answer = page.index('id="answer"')
    assert "3 nodes failing, 3 nodes silent, 114 nodes completed" in page
    for section in ("findings", "certificates", "times", "unsettled", "silent", "use", "nodes"):
        assert page.index(f'<section id="{section}"') > answer
    assert "File[/etc/motd]" in page
    assert page.count("web00003.example") >= 1, "it is silent"


def test_a_healthy_fleet_says_so(tmp_path: Path) -> None:
    rows = [run_row(number, f"n{number}", DAY - 600) for number in range(1, 4)]
    page = report.html(overview_of(tables_with(tmp_path, *rows)), "t")
    assert "✓ 3 nodes completed" in page
    assert 'id="silent"' not in page


def test_the_fix_of_a_cause_stands_there_with_the_run_by_the_name_of_its_capture(tmp_path: Path) -> None:
    rows = [run_row(1, "a.example", DAY - 600, "waiting", cause="B18", reason="another key")]
    page = report.html(overview_of(tables_with(tmp_path, *rows)), "t")
    assert "puppetserver ca clean --certname a.example" in page
    assert "<dd>a.sqlite:1</dd>" in page
    assert "puppet-inspector explain" not in page
    assert "What it means" in page


def test_a_chart_has_numbers_and_every_day(tmp_path: Path) -> None:
    rows = [run_row(number, "a", day * DAY, compile_time=1.0 + day) for number, day in enumerate((0, 1, 5), 1)]
    page = report.html(overview_of(tables_with(tmp_path, *rows, until=6 * DAY)), "t")
    assert "<span>1 run</span><span>0</span>" in page
    assert "<title>2026-11-22: 0 runs, 0 did not complete</title>" in page
    assert page.count(">2026-11-22</text>") == 2, "runs, and times of compilation"
    assert "<span>6 s</span><span>3 s</span><span>0</span>" in page


def test_days_of_a_clock_that_is_wrong_do_not_fill_the_axis(tmp_path: Path) -> None:
    rows = [run_row(1, "a", 0), run_row(2, "a", 5000 * DAY)]
    page = report.html(overview_of(tables_with(tmp_path, *rows, until=5001 * DAY)), "t")
    assert page.count(" did not complete</title>") == 2


def test_months_follow_each_other_and_what_ends_much_later_is_in_words(tmp_path: Path) -> None:
    def certificate(name: str, days: int) -> CertificateRow:
        return CertificateRow(capture="0" * 16, time=micros(0), last=micros(0), fingerprint=name, role="agent",
                              certname=name, subject=name, serial="0x1", issuer="CN=CA", key=name,
                              not_after=micros(days * DAY))  # fmt: skip

    ending = [certificate(f"n{days}", days) for days in (1, 100, 5000)]
    page = report.html(overview_of(tables_with(tmp_path, run_row(1, "a", 0), *ending)), "t")
    months = re.findall(r"<title>(20\d\d-\d\d: [a-z0-9 ]+)</title>", page)
    assert months == ["2026-11: 1 agent", "2026-12: nothing", "2027-01: nothing", "2027-02: 1 agent"]
    assert "later: 2040-07: 1 agent" in page


def test_without_rows_it_is_a_page(tmp_path: Path) -> None:
    assert "! No run of an agent" in report.html(overview_of(tables_with(tmp_path)), "t")


def test_names_are_text(tmp_path: Path) -> None:
    hostile = "<img src=x onerror=alert(1)>\x1b[2J\u202e"
    rows = [run_row(1, hostile, DAY - 10, "failed", reason=hostile, environment=hostile, compiler=hostile)]
    page = report.html(overview_of(tables_with(tmp_path, *rows)), hostile)
    assert "<img" not in page
    assert "\x1b" not in page
    assert "\u202e" not in page


@pytest.mark.slow
def test_dates_below_an_axis_do_not_overlap(tmp_path: Path) -> None:
    rows = [run_row(number, "a", number * DAY, compile_time=1.0) for number in range(1, 41)]
    path = tmp_path / "fleet.html"
    path.write_text(report.html(overview_of(tables_with(tmp_path, *rows, until=41 * DAY)), "tables"))
    with browser() as chromium:
        page = chromium.new_page()
        page.goto(path.as_uri())
        for width, labels in ((1280, 7), (800, 3), (400, 3)):
            page.set_viewport_size({"width": width, "height": 800})
            drawn = page.evaluate(LABELS)
            assert len(drawn) == 2
            for edges in drawn:
                assert len(edges) == 2 * labels
                assert edges == sorted(edges)
                assert edges[-1] <= width
        page.close()


@pytest.mark.slow
def test_in_a_browser(tmp_path: Path, found: Overview) -> None:
    path = tmp_path / "fleet.html"
    path.write_text(report.html(found, "tables"))
    with browser() as chromium:
        page = chromium.new_page(viewport={"width": 1200, "height": 900})
        messages: list[str] = []
        page.on("console", lambda message: messages.append(message.text))
        page.on("pageerror", lambda error: messages.append(str(error)))
        page.on(
            "request", lambda request: messages.append(request.url) if not request.url.startswith("file:") else None
        )
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]", state="attached")
        output = page.locator("output[for=filter-nodes]")
        assert output.text_content() == "120 of 120"
        for words, expected in (("state:failing", "3 of 120"), ("version:7* -state:failing", "60 of 120"),
                                ("00011", "1 of 120"), ("cause:S01 env:prod*", "3 of 120")):  # fmt: skip
            page.fill("#filter-nodes", words)
            assert output.text_content() == expected, words
        page.fill("#filter-nodes", "nothing:x")
        assert "There is no column 'nothing'" in (output.text_content() or "")
        page.fill("#filter-nodes", "")
        page.click("#list-nodes .head button:has-text('node')")
        page.click("#list-nodes .head button:has-text('node')")
        assert (page.text_content("#list-nodes .view .row") or "").startswith("web00119.example")
        assert messages == []
        assert page.evaluate("document.documentElement.scrollWidth") <= 1200
        page.set_viewport_size({"width": 400, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= 400
        page.close()
    quiet = tmp_path / "quiet.html"
    quiet.write_text(path.read_text())
    with browser() as chromium:
        context = chromium.new_context(java_script_enabled=False)
        page = context.new_page()
        page.goto(quiet.as_uri())
        assert page.locator("#nodes tbody tr").count() == 100
        assert page.locator("text=20 more nodes: the whole list needs JavaScript").is_visible()
        context.close()

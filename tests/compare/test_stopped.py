"""A run that ended before it got a catalog, compared with one that got one."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from inspector.analysis.analyzer import retrace
from inspector.compare import comparison, diff_lines, documents
from inspector.compare.circumstances import KEY
from inspector.compare.differences import Section
from inspector.runs.examples import (
    ca,
    catalog,
    content,
    crl,
    csr,
    issued,
    metadata,
    node,
    plugins,
    refused,
    report,
    talk,
)
from inspector.summaries import conclusions
from tests.support.compared import file, run_of
from tests.support.conversations import SIGNED, runs_of

if TYPE_CHECKING:
    from inspector.compare.comparison import Comparison
    from inspector.compare.documents import RunDocuments
    from inspector.model import Record

NAME = "modules/m/f"
GOOD = talk(
    node(), plugins(), catalog(resources=[file("/f", source=f"puppet:///{NAME}")]), metadata(NAME, b"1"),
    content(NAME, b"1"), report(),
)  # fmt: skip
REVOKED = talk(refused("certificate_revoked", by="proxy", certificate=True))
FAILED = talk(node(), plugins(), catalog(status=500, text="Server Error: no role"), report(result="failed"))


def concluded(records: list[Record], label: str) -> RunDocuments:
    """What is compared of a run, with its verdict."""
    (run,) = runs_of(records)
    return documents.gather(retrace(records), conclusions.of_run(run), label)


def compared(before: list[Record], after: list[Record]) -> Comparison:
    return comparison.compare(concluded(before, "run 1"), concluded(after, "run 2"))


def printed(found: Comparison, *, full: bool = False) -> list[str]:
    return [line.text for line in diff_lines.lines(found, full=full)]


def test_it_begins_with_what_refused_it_and_the_rest_is_one_line() -> None:
    found = compared(GOOD, REVOKED)
    lines = printed(found)
    assert lines[2:4] == ["", "refused: run 2"]
    assert lines[4].startswith("  node1.example was refused: T05 the certificate of node1.example")
    assert "is revoked" in lines[4]
    assert lines[5] == "  never got that far: catalog, facts, report, 2 files, 6 requests (--full)"
    assert [line for line in lines[6:] if line] == ["times: no difference beyond noise (whole run: 5.2 s -> 0 ms)"]


def test_in_full_everything_is_listed() -> None:
    lines = printed(compared(GOOD, REVOKED), full=True)
    assert lines[3] == "refused: run 2"
    assert not [line for line in lines if "never got that far" in line]
    assert "  - report: 200  (report)" in lines
    assert "  ~ outcome: complete -> refused" in lines


def test_files_that_a_stopped_run_never_asked_for_are_not_the_same() -> None:
    lines = printed(compared(REVOKED, GOOD), full=True)
    assert "files: not compared: run 1 asked for fewer (0 and 2 files)" in lines
    assert not [line for line in lines if line.startswith("no difference") and "files" in line]


def test_the_key_differs_if_both_asked_for_a_certificate() -> None:
    mismatch = talk(ca(), crl(), csr(key="other", status=400, text=SIGNED), issued())
    good = talk(ca(), crl(), csr(), issued(), catalog(), report())
    found = compared(mismatch, good)
    (line,) = (line for line in printed(found) if KEY in line)
    keys = [side.requested_key for side in (found.before, found.after)]
    assert line == f"  ~ {KEY}: {keys[0][:16]}... -> {keys[1][:16]}..."
    for before, after in ((good, good), (good, GOOD), (GOOD, good)):
        assert KEY not in str(printed(compared(before, after), full=True))


def test_the_other_way_round() -> None:
    lines = printed(compared(REVOKED, GOOD))
    assert lines[3] == "refused: run 1"
    assert lines[5] == "  never got that far: catalog, facts, report, 2 files, 6 requests (--full)"


def test_what_came_before_the_end_still_counts() -> None:
    failed = talk(plugins(), catalog(status=500, text="Server Error: no role"), report(result="failed"))
    lines = printed(compared(GOOD, failed))
    assert lines[3] == "failed: run 2"
    assert "S01 no catalog" in lines[4]
    assert lines[5] == "  never got that far: 1 file, 2 requests (--full)"
    assert "  - node: 200  (node)" in lines
    assert "catalog: not compared: run 2 got no catalog" in lines
    assert "  ~ status: unchanged -> failed" in lines


def test_a_fact_that_is_missing_may_be_why_there_is_no_catalog() -> None:
    facts = {"kernel": "Linux"}
    good = talk(plugins(), catalog(facts=facts | {"role": "db"}), report())
    failed = talk(plugins(), catalog(status=500, text="Server Error: no role", facts=facts), report(result="failed"))
    assert '  - role: "db"' in printed(compared(good, failed))


def test_a_request_that_was_repeated_until_it_failed_counts() -> None:
    failed = talk(*[catalog(status=503, text="busy")] * 3)
    found = compared(run_of(file("/a")), failed)
    assert found.stopped
    number = next(each for each in found.of(Section.REQUESTS) if each.part == "number")
    assert (number.before, number.after) == ("1", "3")
    assert not found.stopped.covers(number)
    more = talk(*[catalog(resources=[file("/a")])] * 3)
    found = compared(more, talk(catalog(status=503, text="busy")))
    assert found.stopped
    number = next(each for each in found.of(Section.REQUESTS) if each.part == "number")
    assert found.stopped.covers(dataclasses.replace(number, before="(masked)", after="(masked)"))
    assert found.stopped.rest(found.differences, ()) == "2 requests"


@pytest.mark.parametrize(("before", "after"), [(GOOD, GOOD), (REVOKED, REVOKED), (FAILED, REVOKED)])
def test_only_one_of_them_ended_early(before: list[Record], after: list[Record]) -> None:
    assert compared(before, after).stopped is None


def test_json_and_status_are_the_same() -> None:
    found = compared(GOOD, REVOKED)
    assert found.status == 1, "what stopped it is printed, and what it never came to"
    assert (found.without_catalogs, compared(REVOKED, REVOKED).status) == ("", 2)
    failed = compared(GOOD, FAILED)
    assert (failed.status, failed.without_catalogs) == (2, "run 2 got no catalog")
    assert {Section.RUN, Section.REQUESTS} <= {each.section for each in found.differences}


def test_without_a_verdict_the_outcome_is_the_reason() -> None:
    (run,) = runs_of(REVOKED)
    bad = documents.gather(retrace(REVOKED), run.snapshot(), "run 2")
    found = comparison.compare(concluded(GOOD, "run 1"), bad)
    assert found.stopped
    assert (found.stopped.why, found.stopped.reason, found.stopped.fix) == ("node1.example: refused", "refused", "")
    assert found.stopped.seq is None


def test_rows_have_the_fix_and_what_is_left_out_does_not_count() -> None:
    rows = diff_lines.rows(compared(GOOD, REVOKED))
    assert [row.section for row in rows if row.counts] == ["refused", "refused"]
    assert rows[0].cause
    assert "puppetserver ca clean --certname node1.example" in rows[0].note
    assert rows[0].proof
    assert rows[0].proof.seq == 1


def test_that_the_node_completed_the_other_run_since_is_said_and_the_fix_is_of_that_time() -> None:
    later = talk(node(), plugins(), catalog(), report(), after=600)
    found = compared(REVOKED, later)
    lines = printed(found)
    assert lines[lines.index("refused: run 1") + 2] == "  completed since: run 2"
    assert diff_lines.rows(found)[0].note.startswith("at the time (run 2 completed since):\n")
    other = compared(REVOKED, talk(node(), plugins(), catalog(), report(), certname="other.example", after=600))
    assert not any("since" in line and "completed" in line for line in printed(other))
    assert not diff_lines.rows(other)[0].note.startswith("at the time")

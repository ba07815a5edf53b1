"""What mitmproxy's user interfaces show of findings, beside what a user marked and wrote."""

from __future__ import annotations

import pytest
from mitmproxy.test import tflow

from inspector.proxy.mitm.marks import ERROR, OTHER, annotate

B01, B18 = ("B01", "warning", "unverified\x1b[31m"), ("B18", "error", "another key")


def test_findings_are_a_mark_and_a_comment() -> None:
    flow = tflow.tflow()
    assert annotate(flow, [B01])
    assert (flow.marked, flow.comment.partition("\x1b")[1]) == (OTHER, "")
    assert annotate(flow, [B01, B18])
    assert flow.marked == ERROR
    assert flow.comment.startswith("B01: unverified")
    assert flow.comment.endswith("; B18: another key")


def test_findings_of_a_later_analysis_replace_those_before() -> None:
    flow = tflow.tflow()
    annotate(flow, [B18])
    assert not annotate(flow, [B18])
    assert annotate(flow, [])
    assert (flow.marked, flow.comment) == ("", "")


def test_what_a_user_wrote_and_marked_stays() -> None:
    flow = tflow.tflow()
    flow.marked, flow.comment = ":star:", "look here\n\nB18 is known"
    assert annotate(flow, [B18])
    assert (flow.marked, flow.comment) == (":star:", "look here\n\nB18 is known\nB18: another key")
    assert annotate(flow, [])
    assert (flow.marked, flow.comment) == (":star:", "look here\n\nB18 is known")


def test_a_mark_of_ours_that_a_user_removed_does_not_come_back() -> None:
    flow = tflow.tflow()
    annotate(flow, [B18])
    flow.marked = ""
    assert not annotate(flow, [B18])
    assert flow.marked == ""


@pytest.mark.parametrize("mark", [ERROR, OTHER])
def test_a_mark_like_ours_on_a_flow_without_findings_is_the_users(mark: str) -> None:
    flow = tflow.tflow()
    flow.marked = mark
    assert not annotate(flow, [])
    assert flow.marked == mark

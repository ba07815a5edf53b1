"""What each node is now, and why."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from inspector.analysis.analyzer import Analyzer
from inspector.model import NOTHING_OPEN, Present
from inspector.runs.examples import (
    altered,
    ca,
    catalog,
    crl,
    csr,
    issued,
    not_issued,
    plugins,
    talk,
    together,
    unanswered,
)  # fmt: skip
from inspector.runs.examples import node as node_request
from inspector.summaries import conclusions, incidents
from inspector.summaries.calls import Apart
from inspector.summaries.judgement import Judgement, Node, NodeState, Recorded, judge, of_runs
from tests.support.nodes import uncompiled, well

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inspector.model import Record


def test_a_capture_without_runs_shows_nothing() -> None:
    assert of_runs(()) == Judgement()


# -- states ---------------------------------------------------------------------------------------------


def judged(*conversations: Sequence[Record], present: Present = NOTHING_OPEN, now: float = math.inf) -> Judgement:
    """What runs show that nothing closes but the end of the records."""
    analyzer = Analyzer()
    for record in sorted(together(*conversations), key=lambda record: record.time):
        analyzer.feed(record)
    apart = Apart()
    briefs = []
    for run in analyzer.end():
        if run.number is None:
            apart.add(conclusions.of_run(run))
    for run in analyzer.runs:
        briefs.append(conclusions.of_run(run))
    return judge([Recorded(briefs, present=present, apart=apart)], now)


def only(found: Judgement) -> Node:
    (node,) = found.nodes.values()
    return node


UNKNOWN = "no buffer space available"
"""Says nothing about the cause."""
STOPPED = (plugins(), unanswered(catalog(), UNKNOWN))
UNANSWERED = (unanswered(plugins(), UNKNOWN), unanswered(catalog(), UNKNOWN))


def test_a_node_whose_latest_run_got_no_answer_is_failing_also_if_it_ever_worked() -> None:
    found = judged(well(1), talk(*UNANSWERED, certname="web1.example", address="192.0.2.1", after=600))
    node = only(found)
    assert (node.state, node.cause, found.bad) == (NodeState.FAILING, None, True)
    assert node.before
    assert node.before.outcome == "complete"
    assert found.headline.startswith("1 node failing")
    (incident,) = incidents.by_cause(found).now
    assert (incident.cause, incident.nodes) == (None, ["web1.example"])


def test_a_failure_without_a_cause_leaves_that_of_the_failed_run_before_it_in_force() -> None:
    again = talk(*UNANSWERED, certname="web2.example", address="192.0.2.2", after=600)
    node = only(found := judged(uncompiled(2), again))
    assert (node.state, node.cause) == (NodeState.FAILING, "S01")
    assert [incident.nodes for incident in incidents.by_cause(found).now] == [["web2.example"]]
    node = only(judged(uncompiled(2), well(2, 300), again))
    assert (node.state, node.cause) == (NodeState.FAILING, None), "it completed a run since"


def test_a_bootstrap_by_hand_is_a_call_and_no_node() -> None:
    found = judged(talk(ca(), crl(), csr(), issued()))
    assert (found.nodes, found.bad) == ({}, False)
    (calls,) = found.calls
    assert calls.command
    assert found.headline.startswith("no run of an agent; 1 call of `puppet ssl ")


def test_what_a_tool_asks_for_belongs_to_no_node() -> None:
    curl = {"User-Agent": "curl/7.88.1", "X-Puppet-Version": None}
    answered = [altered(part, headers=curl) for part in (node_request(status=403), catalog(status=403))]
    found = judged(talk(*answered))
    assert found.nodes == {}
    assert found.headline.startswith("no run of an agent; 2 requests of curl/7.88.1, 2 answered 403; ")
    assert found.findings


def test_a_node_is_silent_when_it_missed_three_runs_as_the_recording_goes_on() -> None:
    runs = [well(1, 1800.0 * number) for number in range(3)]
    others = [well(2, 1800.0 * number) for number in range(9)]
    found = judged(*runs, *others)
    assert {node.name: str(node.state) for node in found.nodes.values()} == {
        "web1.example": "silent", "web2.example": "well",
    }  # fmt: skip
    assert not found.bad


def test_who_failed_before_it_showed_its_name_is_the_node_that_came_up_there() -> None:
    fresh = talk(ca(), unanswered(crl()), certname="", address="192.0.2.1")
    found = judged(fresh, well(1, 600))
    assert {node.name: str(node.state) for node in found.nodes.values()} == {"web1.example": "well"}
    alone = judged(fresh, well(2, 600))
    assert {node.name: str(node.state) for node in alone.nodes.values()} == {
        "192.0.2.1": "failing", "web2.example": "well",
    }  # fmt: skip


# -- the present ----------------------------------------------------------------------------------------


def test_a_run_that_is_under_way_has_no_verdict_until_there_is_evidence_that_it_is_over() -> None:
    going = talk(node_request(uuid="a-1"), plugins(), certname="web1.example", address="192.0.2.1")
    end = going[-1].ended
    present = Present("open", end + 1)
    node = only(found := judged(going, present=present, now=end + 20))
    assert (node.state, node.latest, found.bad, found.verdicts) == (NodeState.OPEN, None, False, [])
    assert node.open
    assert (node.open.run.ending, node.open.run.verdict) == ("open", None)
    assert [(each.name, each.activity, each.since) for each in found.under_way] == [
        ("web1.example", "gathers facts, or has ended", end)
    ]
    assert found.headline.startswith("1 node under way")
    late = judged(going, present=present, now=end + 4000)
    assert (only(late).state, late.bad, late.under_way) == (NodeState.FAILING, True, [])


def test_what_looks_like_a_command_is_an_agents_run_while_it_is_under_way() -> None:
    going = talk(plugins(), certname="web1.example", address="192.0.2.1")
    present, end = Present("open", going[-1].ended), going[-1].ended
    assert only(judged(going, present=present, now=end + 20)).state is NodeState.OPEN
    over = judged(going, present=present, now=end + 4000)
    assert (over.nodes, [str(calls) for calls in over.calls]) == ({}, ["1 call of `puppet plugin download`, completed"])


def test_the_run_before_says_how_the_node_is_while_the_next_is_under_way() -> None:
    going = talk(plugins(), certname="web2.example", address="192.0.2.2", after=600)
    present = Present("open", going[-1].ended)
    node = only(found := judged(uncompiled(2), going, present=present, now=going[-1].ended + 1))
    assert (node.state, node.cause, found.bad) == (NodeState.FAILING, "S01", True)
    assert node.open
    assert "1 of them in another run" in found.headline


def test_what_was_under_way_when_the_recording_ended_is_cut_off() -> None:
    going = talk(node_request(uuid="a-1"), plugins(), certname="web1.example", address="192.0.2.1")
    for recording in ("ended", "cut off"):
        present = Present(recording, going[-1].ended + 3)
        node = only(found := judged(going, present=present, now=going[-1].ended + 9e6))
        assert node.open
        assert (node.state, node.open.run.ending, found.bad) == (NodeState.OPEN, "cut off", False)
        assert found.under_way == []


def test_who_waits_for_a_signature_waits_also_while_it_asks_again() -> None:
    asking = talk(ca(), crl(), csr(), not_issued(), certname="new.example")
    end = asking[-1].ended
    node = only(judged(asking, present=Present("open", end), now=end + 2))
    assert node.state is NodeState.OPEN, "a CA that signs by itself may do it now"
    node = only(found := judged(asking, present=Present("open", end), now=end + 30))
    assert (node.state, found.bad) == (NodeState.WAITING, True)
    assert node.open
    assert found.headline.startswith("1 node waiting for a signature")
    node = only(judged(asking, present=Present("ended", end + 0.1), now=end + 2))
    assert (node.state, node.cause) == (NodeState.WAITING, None), "nothing comes any more"

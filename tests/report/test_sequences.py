"""The sequence of a page: arrows between agent, proxy and master."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from inspector.report.sequences import MOST, ROW, sequence
from tests.support.pages import copied, sample

if TYPE_CHECKING:
    from inspector.report.sequences import SequenceDiagram


def drawn(name: str, times: int = 1) -> SequenceDiagram:
    with copied(sample(name)) as copy:
        (run, *_) = copy.runs
        return sequence(run, copy.source.briefs(run.number) * times)


def test_each_exchange_has_an_arrow_there_and_one_back() -> None:
    found = drawn("mismatched-key").arrows
    assert [(arrow.kind, arrow.seq) for arrow in found if arrow.kind in ("request", "answer")] == [
        ("request", 1), ("answer", 1), ("request", 2), ("answer", 2),
    ]  # fmt: skip
    asked, answered = (next(arrow for arrow in found if arrow.kind == kind) for kind in ("request", "answer"))
    assert asked.text.startswith("PUT certificate_request")
    assert (answered.right, answered.bad, answered.reaches) == ("400", True, True)


def test_a_connection_begins_with_the_certificates_of_its_ends() -> None:
    first = next(arrow for arrow in drawn("mismatched-key").arrows if arrow.kind == "handshake")
    assert first.text == "no certificate ↔ proxy.example"


def test_a_refused_handshake_does_not_reach_the_master() -> None:
    refused = next(arrow for arrow in drawn("revoked").arrows if arrow.kind == "request")
    assert (refused.bad, refused.reaches) == (True, False)


def test_lines_have_places_of_their_own_and_are_bounded() -> None:
    found = drawn("first-run", 10)
    places = [arrow.y for arrow in found.arrows]
    assert len(places) == MOST
    assert found.left_out > 0
    assert {after - before for before, after in itertools.pairwise(places)} == {ROW}
    assert places[-1] < found.height

"""The bootstrap of a page: a ladder, and a chain that breaks where it breaks."""

from __future__ import annotations

import pytest

from inspector.explain.bootstrap import Condition
from inspector.report.ladders import HEIGHT, LETTERS, WIDTH, Ladder
from tests.support.pages import content_of, sample


def ladder_of(name: str) -> Ladder:
    (found,) = content_of(sample(name)).ladders
    return found


def test_another_key_breaks_the_chain_between_request_and_certificate() -> None:
    found = ladder_of("mismatched-key")
    (broken,) = found.broken
    assert (broken.does, broken.breaks) == ("becomes", "another key")
    assert [box.title for box in found.boxes if box.condition is Condition.BROKEN] == ["agent's certificate"]
    assert "another key" in found.stuck
    assert [(rung.condition, rung.seqs) for rung in found.rungs] == [(Condition.BROKEN, (1,)), (Condition.SOUND, (2,))]


def test_a_chain_that_holds_has_no_break() -> None:
    found = ladder_of("first-run")
    assert (found.broken, found.stuck) == ([], "")
    assert {box.condition for box in found.boxes} == {Condition.SOUND}
    assert any(line.startswith("breaks on 20") for line in found.conclusions)


def test_a_request_that_waits_is_not_broken() -> None:
    found = ladder_of("bootstrap-waiting")
    assert Condition.WAITING in {link.condition for link in found.links} | {rung.condition for rung in found.rungs}


@pytest.mark.parametrize("name", ["first-run", "mismatched-key", "revoked"])
def test_everything_is_within_the_picture(name: str) -> None:
    for found in content_of(sample(name)).ladders:
        assert all(0 <= box.x < WIDTH and 0 <= box.y < HEIGHT for box in found.boxes)
        assert all(len(line) <= LETTERS for box in found.boxes for line in box.lines)
        assert len(found.links) == 5

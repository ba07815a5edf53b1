"""The newest records of a large capture are read first; then everything has its final number."""

from __future__ import annotations

import contextlib
import dataclasses
from itertools import chain
from typing import TYPE_CHECKING

import pytest

from inspector.capture.store import Capture
from inspector.model import Exchange
from inspector.summaries import index, indexer, newest
from inspector.summaries.indexed import IndexedCapture
from inspector.summaries.source import Source
from tests.support.captures import save
from tests.support.conversations import START, Agent, together

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.model import Record

AGENTS = 6


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """Six runs one after the other."""
    agents = [Agent(f"n{n}.example", f"192.0.2.{n}", time=START + 100 * n).run(f"u-{n}") for n in range(AGENTS)]
    return save(tmp_path / "c.sqlite", *connected(together(*agents)))


def connected(records: list[Record]) -> list[Record]:
    """Records with the moments at which their agents connected: right before the first request."""
    first: dict[str, float] = {}
    return [
        dataclasses.replace(
            record,
            agent=dataclasses.replace(record.agent, connected=first.setdefault(record.agent.id, record.time) - 0.01),
        )
        if isinstance(record, Exchange)
        else record
        for record in records
    ]


@pytest.fixture
def stages(capture: Path, monkeypatch: pytest.MonkeyPatch) -> list[list[tuple[int, str, str]]]:
    """The runs that a reader of the index finds after each of its commits: number, name, outcome."""
    monkeypatch.setattr(newest, "MANY", 10)
    length = _records(capture)
    # Of the run before the last two its end only: where it began is not known yet, so it isn't shown.
    monkeypatch.setattr(newest, "NEWEST", length // AGENTS * 2 + 1)
    monkeypatch.setattr(indexer, "BATCH", 5)
    found: list[list[tuple[int, str, str]]] = []

    def look(done: int, _total: int, *_: object) -> None:
        if done % indexer.BATCH:
            return
        opened = index.Index.open(index.place(capture))
        assert opened
        with contextlib.closing(opened):
            runs = sorted((run.brief for run in opened.runs().values()), key=lambda run: run.started)
            found.append([(run.number, run.name, run.outcome) for run in runs])

    indexer.build(capture, index.place(capture), watch=look)
    look(0, 0)
    return found


def _records(path: Path) -> int:
    with Capture.open(path) as opened:
        return opened.last


def test_the_newest_runs_come_first_and_are_replaced(stages: list[list[tuple[int, str, str]]]) -> None:
    first, last = stages[0], stages[-1]
    assert first[-2:] == [(-2, "n4.example", "complete"), (-1, "n5.example", "complete")]
    assert [name for _, name, _ in first[:-2]] == ["n0.example"]
    assert last == [(n + 1, f"n{n}.example", "complete") for n in range(AGENTS)]
    for stage in stages:
        names = [name for _, name, _ in stage]
        assert len(names) == len(set(names)), "no run is there twice"
        assert names[-1] == "n5.example", "the newest is there from the beginning"


def test_who_looks_at_one_of_the_newest_keeps_it(capture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    length = _records(capture)
    monkeypatch.setattr(newest, "MANY", 10)
    monkeypatch.setattr(newest, "NEWEST", length // AGENTS * 2)
    monkeypatch.setattr(indexer, "BATCH", length // 2 + 2)
    seen: list[tuple[str, int, int]] = []
    monkeypatch.setattr(Source, "_begin", lambda _: None)
    sources: list[Source] = []

    def look(done: int, _total: int, *_: object) -> None:
        if done % indexer.BATCH:
            return
        source = Source(capture)
        sources.append(source)
        run = source.run(-1)
        assert run
        assert len(source.briefs(-1)) == run.records
        seen.append((run.name, run.number, len(source.seqs(-1))))

    indexer.build(capture, index.place(capture), watch=look)
    assert seen == [("n5.example", -1, length // AGENTS)]
    (source,) = sources
    with source:
        source.poll()
        run = source.run(-1)
        assert run
        assert (run.name, run.number) == ("n5.example", AGENTS)
        assert source.seqs(-1) == source.seqs(AGENTS)
        assert [found.number for found in source.runs] == list(range(1, AGENTS + 1))


def test_all_records_have_their_run(capture: Path) -> None:
    indexer.build(capture, index.place(capture))
    with IndexedCapture.whole(capture) as indexed:
        assert indexed
        every = list(chain.from_iterable(indexed.pages()))
        assert [brief.seq for brief in every] == list(range(1, indexed.last + 1))
        for brief in every:
            owner = indexed.owner_of(brief)
            assert owner
            assert brief.seq in indexed.seqs(owner.number)
        assert indexed.latest() == every[-1].ended


def test_more_pages_than_are_kept_are_read_anew(capture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "PAGE", 4)
    monkeypatch.setattr(index, "KEPT", 2)
    indexer.build(capture, index.place(capture))
    with IndexedCapture.whole(capture) as indexed:
        assert indexed
        assert indexed._index
        assert [brief.seq for page in indexed.pages() for brief in page] == list(range(1, indexed.last + 1))
        assert indexed._index._pages == {}
        for number in range(1, AGENTS + 1):
            assert [brief.seq for brief in indexed.briefs(number)] == list(indexed.seqs(number))
        assert len(indexed._index._pages) == 2

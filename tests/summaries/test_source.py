"""Where the views get what they show: the index is only a saving, and whatever becomes of it the capture is shown."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
import time
from typing import TYPE_CHECKING

import pytest

from inspector import rules
from inspector.summaries import index, ruleset
from inspector.summaries.source import AGAIN, Source
from tests.support.briefs import all_briefs
from tests.support.captures import save
from tests.support.conversations import START, Agent, together
from tests.support.waiting import eventually
from tests.tui.screens import indexed, sample

if TYPE_CHECKING:
    from pathlib import Path


def spoil(path: Path, statement: str) -> None:
    with contextlib.closing(sqlite3.connect(index.place(path))) as db:
        db.execute(statement)
        db.commit()


@pytest.mark.slow
def test_an_index_that_is_just_being_written_is_left_alone(tmp_path: Path) -> None:
    path = sample("first-run", tmp_path)
    with Source(path) as source, contextlib.closing(sqlite3.connect(index.place(path), isolation_level=None)) as db:
        db.execute("BEGIN EXCLUSIVE")
        assert source.briefs(1) == []
        db.execute("COMMIT")
        assert not source.poll()
        assert len(source.briefs(1)) == source.runs[0].records
    assert index.place(path).exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE run SET data = x'c1', change = change + 1",
        "UPDATE meta SET value = 'x' WHERE key = 'change'",
        "UPDATE page SET data = x'c1'",
        "DROP TABLE page",
    ],
)
def test_an_index_that_is_damaged_is_made_anew(tmp_path: Path, statement: str) -> None:
    path = sample("first-run", tmp_path)
    spoil(path, statement)
    with Source(path) as source:
        for run in source.runs:
            source.briefs(run.number)
        all_briefs(source)
        source.poll()
        assert not index.place(path).exists()
        indexed(path)  # as the process does that the source starts
        source.poll()
        assert [run.number for run in source.runs] == [1]
        assert len(source.briefs(1)) == source.runs[0].records
        assert len(all_briefs(source)) == source.total


def test_a_capture_that_was_replaced_by_a_shorter_one_is_indexed_anew(tmp_path: Path) -> None:
    first = Agent("a.example", "192.0.2.1").run()
    path = indexed(save(tmp_path / "c.sqlite", *together(first, Agent("b.example", "192.0.2.2").run())))
    other = save(tmp_path / "other.sqlite", *together(Agent("z.example", "192.0.2.9", time=START + 500).run()))
    with Source(path) as source:
        assert {run.name for run in source.runs} == {"a.example", "b.example"}
        shutil.copy(other, path)
        source.poll()
        assert source._indexer is not None, "somebody has to make it anew"
        source._indexer.wait(300)
        source.poll()
        assert [run.name for run in source.runs] == ["z.example"]


def test_what_was_read_stays_when_the_source_is_closed_meanwhile(tmp_path: Path) -> None:
    with Source(sample("first-run", tmp_path)) as source:
        assert all_briefs(source)
    assert all_briefs(source) == []
    assert source.briefs(1) == []


def test_whose_a_record_is_follows_what_the_index_says(tmp_path: Path) -> None:
    path = indexed(save(tmp_path / "c.sqlite", *together(Agent("a.example", "192.0.2.1").run())))
    with Source(path) as source:
        owners = source.owners(range(1, source.total + 1))
        assert {run.number for run in owners.values()} == {1}
        assert sorted(owners) == list(source.seqs(1))
        owner = source.owner(1)
        assert owner is source.run(1)
        assert source.owner(10_000) is None


@pytest.mark.slow
def test_two_with_other_rules_on_one_capture_come_to_rest(tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text("rules: {U01: {title: a catalog, when: 'phase:catalog'}}\n")
    site = ruleset.load(tmp_path / "rules.yaml")
    path = sample("first-run", tmp_path)
    try:
        with Source(path) as plain:
            rules.use(site)
            with Source(path) as own:
                sources = ((plain, None), (own, site))

                def both_read(source: Source) -> bool:
                    return source.state.complete and not source.indexing

                def look() -> bool:
                    for source, used in sources:
                        rules.use(used)
                        source.poll()
                    return all(both_read(source) for source, _ in sources)

                def rest() -> bool:
                    """Whether both have everything for longer than it takes one to begin anew."""
                    until = time.monotonic() + 2 * AGAIN
                    while time.monotonic() < until:
                        if not look():
                            return False
                    return True

                assert eventually(rest)
                assert "U01" not in {finding.rule for run in plain.runs for finding in run.findings}
                assert "U01" in {finding.rule for run in own.runs for finding in run.findings}
            assert sorted(each.name for each in tmp_path.iterdir()) == [path.name, f"{path.name}.index", "rules.yaml"]
    finally:
        rules.use(None)

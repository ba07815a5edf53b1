"""Commands get the same from an index as from the records, and notice when an index is not good."""

from __future__ import annotations

import contextlib
import shutil
import sqlite3
from typing import TYPE_CHECKING

import pytest

from inspector.capture.store import Capture
from inspector.errors import InspectorError
from inspector.summaries import index, indexer, reading
from tests.support.captures import save
from tests.support.conversations import START, Agent, together
from tests.support.recorded import SAMPLES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

FILTERS = ["", "outcome:complete", "phase:catalog status:>=400", "-status:>=400", "rule:B", "text:mode", "certificates"]


def content(found: reading.CaptureRuns) -> tuple[object, ...]:
    """Everything that a command gets."""
    runs = [(run.brief, list(run.seqs)) for run in found.runs]
    return runs, found.every, found.unanalyzed, sorted(found.keys, key=lambda key: (key.kind, key.certname, key.key))


@pytest.fixture
def unread(monkeypatch: pytest.MonkeyPatch) -> None:
    """The records of a capture cannot be read from beginning to end."""

    def records(*_: object) -> Iterator[object]:
        raise AssertionError("the index would have been enough")

    monkeypatch.setattr(Capture, "records", records)


@pytest.mark.parametrize("path", SAMPLES, ids=[path.stem for path in SAMPLES])
def test_the_index_gives_what_the_records_give(path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "c.sqlite"
    shutil.copy(path, copy)
    streamed = [content(reading.read(copy, text)) for text in FILTERS]
    (together,) = reading.read_together([copy])
    indexer.build(copy, index.place(copy))
    monkeypatch.setattr(Capture, "records", None)
    assert [content(reading.read(copy, text)) for text in FILTERS] == streamed
    assert list(map(content, reading.read_together([copy]))) == [content(together)]


def conversation(folder: Path) -> Path:
    return save(folder / "c.sqlite", *together(Agent("a.example", "192.0.2.1").run()))


@pytest.mark.parametrize("change", ["none", "more records", "damage"])
def test_an_index_that_is_not_good_is_not_used(change: str, tmp_path: Path) -> None:
    path = conversation(tmp_path)
    if change != "none":
        indexer.build(path, index.place(path))
    if change == "more records":
        save(path, *together(Agent("b.example", "192.0.2.2", time=START + 100).run("u-2")))
    if change == "damage":
        with contextlib.closing(sqlite3.connect(index.place(path))) as db:
            db.execute("UPDATE run SET data = x'c1'")
            db.commit()
    names = [run.certname for run in reading.read(path).briefs]
    assert names == (["a.example", "b.example"] if change == "more records" else ["a.example"])


@pytest.mark.usefixtures("unread")
def test_several_captures_need_the_records(tmp_path: Path) -> None:
    path = conversation(tmp_path)
    with pytest.raises(AssertionError):
        reading.read_together([path, path])


def test_how_far_it_is_can_be_watched(tmp_path: Path) -> None:
    path = conversation(tmp_path)
    reported: list[tuple[int, int]] = []
    reading.read(path, "", lambda done, total, *_: reported.append((done, total)))
    with Capture.open(path) as capture:
        assert reported == [(done, capture.count()) for done in range(capture.count() + 1)]


def test_a_mistake_in_a_filter_is_reported_before_anything_is_read(tmp_path: Path) -> None:
    with pytest.raises(InspectorError, match="no key"):
        reading.read(tmp_path / "none.sqlite", "nokey:1")

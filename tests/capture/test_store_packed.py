"""The JSON of a capture's records is packed with what its first records taught, and comes out as it went in."""

from __future__ import annotations

import dataclasses
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING, Any

import pytest

from inspector.capture.bodies import LEARNT
from inspector.capture.store import Capture
from inspector.errors import CaptureError
from inspector.model import Closed, Connection, Gap
from tests.support.records import AGENT, ALL, FULL, MASTER, read, written

if TYPE_CHECKING:
    from pathlib import Path

MANY = [ALL[number % len(ALL)] for number in range(3 * LEARNT)]


def stored(path: Path, query: str) -> list[Any]:
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as db:
        return [value for (value,) in db.execute(query)]


def in_batches(path: Path) -> None:
    with Capture.create(path) as capture:
        for number, record in enumerate(MANY, 1):
            capture.note(Connection(AGENT))
            capture.note(Connection(MASTER))
            capture.append(record)
            if number % 10 == 0:
                capture.flush()


def test_later_records_are_packed_with_what_the_first_taught(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    in_batches(path)
    records = [dataclasses.replace(record, seq=seq) for seq, record in enumerate(MANY, 1)]
    assert read(path) == records
    with Capture.open(path) as capture:
        assert capture.record(len(MANY)) == records[-1]
        assert capture.connection(AGENT.id) == Connection(AGENT)
    assert stored(path, "SELECT DISTINCT typeof(data) FROM record WHERE seq <= 32") == ["text"]
    assert stored(path, "SELECT DISTINCT typeof(data) FROM record WHERE seq > 40") == ["blob"]
    plain, packed = stored(path, "SELECT avg(length(data)) FROM record GROUP BY typeof(data) ORDER BY 1 DESC")
    assert float(packed) < float(plain) / 8
    assert len(stored(path, "SELECT data FROM dictionary")) == 1


def test_appending_goes_on_with_the_same_dictionary(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    in_batches(path)
    written(path, FULL, connections=(Connection(AGENT, Closed(99.0)), Connection(MASTER)))
    assert stored(path, "SELECT typeof(data) FROM record ORDER BY seq DESC LIMIT 1") == ["blob"]
    assert stored(path, "SELECT count(*) FROM dictionary") == [1]
    assert read(path)[-1] == dataclasses.replace(FULL, seq=len(MANY) + 1)


def test_two_writers_share_one_dictionary(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    with Capture.create(path) as one, Capture.create(path) as other:
        for _ in range(LEARNT):
            for capture in (one, other):
                capture.append(Gap(1.0, "x"))
                capture.flush()
    assert stored(path, "SELECT count(*) FROM dictionary") == [1]
    assert len(read(path)) == 2 * LEARNT


def test_a_dictionary_that_could_not_be_written_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise sqlite3.IntegrityError("no")

    path = tmp_path / "c.sqlite"
    with Capture.create(path) as capture:
        for _ in range(LEARNT):
            capture.append(Gap(1.0, "x"))
        capture.flush()
        capture.append(Gap(2.0, "y"))
        with monkeypatch.context() as broken:
            broken.setattr(capture, "_write_record", fail)
            with pytest.raises(sqlite3.IntegrityError):
                capture.flush()
        assert capture._db.execute("SELECT count(*) FROM dictionary").fetchone() == (0,)
    assert len(read(path)) == LEARNT + 1


def test_a_capture_of_before_is_read_and_continued(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    records = written(path, *MANY)
    with closing(sqlite3.connect(path)) as db:
        db.executescript("DROP TABLE dictionary; DROP TABLE present; PRAGMA user_version = 1;")
    assert read(path) == records
    written(path, FULL)
    written(path, FULL)
    assert stored(path, "SELECT typeof(data) FROM record ORDER BY seq DESC LIMIT 1") == ["blob"]
    assert read(path)[: len(MANY)] == records


@pytest.mark.parametrize("data", [b"", b"no frame", bytes(100)])
def test_what_can_not_be_unpacked_is_reported(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "c.sqlite"
    in_batches(path)
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE record SET data = ? WHERE seq = 90", (data,))
        db.commit()
    with Capture.open(path) as capture, pytest.raises(CaptureError, match="Record 90 of"):
        capture.record(90)

"""What goes into a capture comes out of it, whatever happens meanwhile."""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import sqlite3
import stat
from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from inspector.capture.schema import VERSION
from inspector.capture.store import Capture, Continued
from inspector.errors import CaptureError
from inspector.model import (
    Closed,
    Connection,
    Exchange,
    Gap,
    Headers,
    Identity,
    Leg,
    Request,
    Response,
)
from tests.support.records import AGENT, ALL, BARE, FAILED, FULL, LOST, MASTER, read, written

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def test_what_goes_in_comes_out(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    records = written(path, FULL, BARE, FAILED, LOST)
    assert records == [dataclasses.replace(r, seq=n) for n, r in enumerate(ALL, 1)]
    assert read(path) == records
    assert read(path, after=2) == records[2:]
    with Capture.open(path) as capture:
        assert capture.record(3) == records[2]
        assert capture.record(5) is None
        assert capture.last == 4


def test_connections_come_out_with_their_ends(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    silent = Connection(Leg("a-0", "agent", connected=1.0), Closed(5.0, "peer"))
    with Capture.create(path) as capture:
        capture.note(Connection(AGENT))
        capture.note(silent)
        capture.flush()
        capture.note(Connection(AGENT, Closed(20.0, "proxy")))
    with Capture.open(path) as capture:
        assert capture.connections() == [silent, Connection(AGENT, Closed(20.0, "proxy"))]


def test_more_records_than_a_page_come_in_order(tmp_path: Path) -> None:
    records = written(tmp_path / "c.sqlite", *[dataclasses.replace(LOST, lost=n) for n in range(200)])
    assert read(tmp_path / "c.sqlite") == records


def test_appending_goes_on_where_it_stopped(tmp_path: Path) -> None:
    first = written(tmp_path / "c.sqlite", FULL)
    second = written(tmp_path / "c.sqlite", LOST)
    assert [record.seq for record in second] == [2]
    assert read(tmp_path / "c.sqlite") == first + second


LATIN = st.text(st.characters(max_codepoint=255), max_size=40)
TIMES = st.none() | st.floats(0, 4e9)
HEADERS: st.SearchStrategy[Headers] = st.lists(st.tuples(LATIN, LATIN), max_size=5).map(tuple)
BODIES = st.binary(max_size=300)
REQUESTS = st.builds(Request, HEADERS, BODIES, LATIN, TIMES, TIMES, LATIN, LATIN)
RESPONSES = st.builds(Response, HEADERS, BODIES, LATIN, TIMES, TIMES, st.integers(0, 999), LATIN)
CHAINS: st.SearchStrategy[tuple[bytes, ...]] = st.lists(BODIES.filter(bool), max_size=3).map(tuple)
EXCHANGES = st.builds(
    Exchange,
    st.builds(Leg, st.just("a-1"), st.just("agent"), st.none() | LATIN, peer_chain=CHAINS, own_chain=CHAINS),
    REQUESTS,
    st.none() | RESPONSES,
    st.none() | st.builds(Leg, st.just("m-1"), st.just("master"), secured=TIMES, peer_chain=CHAINS),
    st.none() | st.builds(Identity, LATIN, st.none() | LATIN, st.none() | LATIN),
    st.none() | LATIN,
    st.lists(LATIN, max_size=3).map(tuple),
)


@settings(max_examples=80, suppress_health_check=list(HealthCheck))
@given(EXCHANGES)
def test_any_exchange_comes_out_as_it_went_in(tmp_path: Path, exchange: Exchange) -> None:
    path = tmp_path / "c.sqlite"
    path.unlink(missing_ok=True)
    assert written(path, exchange) == read(path)


def test_files_are_for_nobody_else(tmp_path: Path) -> None:
    path = tmp_path / "new" / "deep" / "c.sqlite"
    old = os.umask(0o000)
    try:
        with Capture.create(path) as capture:
            capture.append(LOST)
            capture.flush()
            modes = [stat.S_IMODE(file.stat().st_mode) for file in sorted(path.parent.iterdir())]
    finally:
        os.umask(old)
    assert modes == [0o600] * 3  # the file, -shm and -wal
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert stat.S_IMODE(path.parent.parent.stat().st_mode) == 0o700
    path.chmod(0o644)
    Capture.create(path).close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_a_body_is_stored_once_whoever_sent_it(tmp_path: Path) -> None:
    body = os.urandom(300_000)
    answer = Response(body=body, status=200)
    written(tmp_path / "1.sqlite", *[Exchange(AGENT, Request(), answer)])
    once = (tmp_path / "1.sqlite").stat().st_size
    written(tmp_path / "2.sqlite", *[Exchange(AGENT, Request(body=body), answer) for _ in range(20)])
    written(tmp_path / "2.sqlite", *[Exchange(AGENT, Request(), answer) for _ in range(20)])
    assert (tmp_path / "2.sqlite").stat().st_size < once + 100_000
    assert [getattr(record, "response").body == body for record in read(tmp_path / "2.sqlite")] == [True] * 40  # noqa: B009


def test_a_reader_sees_what_is_flushed_while_it_is_open(tmp_path: Path) -> None:
    with Capture.create(tmp_path / "c.sqlite") as writer, Capture.open(tmp_path / "c.sqlite") as reader:
        record = writer.append(FULL)
        writer.note(Connection(AGENT))
        writer.note(Connection(MASTER))
        assert list(reader.records()) == []
        writer.flush()
        assert (list(reader.records()), reader.last) == ([record], 1)
        assert writer.pending == []


@pytest.mark.parametrize(("number", "pauses"), [(1, 0), (10, 3), (1000, 333)])
def test_a_commit_may_be_spread(number: int, pauses: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    with Capture.create(tmp_path / "c.sqlite") as writer:
        for _ in range(number):
            writer.append(BARE)
        assert len(writer.flush(within=0.1)) == number
        assert len(slept) == pauses
        assert sum(slept) <= 0.1
        writer.append(BARE)
        writer.flush()
        assert len(slept) == pauses
    assert len(read(tmp_path / "c.sqlite")) == number + 1


def _foreign(path: Path) -> None:
    sqlite3.connect(path).execute("CREATE TABLE x (y)").connection.close()


def _newer(path: Path) -> None:
    Capture.create(path).close()
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute(f"PRAGMA user_version = {VERSION + 1}")


WRONG: dict[str, tuple[Callable[[Path], object], str]] = {
    "missing": (lambda path: None, "There is no capture at"),
    "a directory": (lambda path: path.mkdir(), "is a directory"),
    "no SQLite": (lambda path: path.write_bytes(b"mitmproxy flows" * 100), "is not a capture"),
    "empty": (lambda path: path.write_bytes(b""), "but not a capture"),
    "other SQLite": (_foreign, "but not a capture"),
    "newer": (_newer, f"capture of version {VERSION + 1}"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_no_capture_is_one_clear_error(tmp_path: Path, name: str) -> None:
    path = tmp_path / "c.sqlite"
    make, message = WRONG[name]
    make(path)
    with pytest.raises(CaptureError, match=message) as caught:
        Capture.open(path)
    assert str(path) in caught.value.message
    assert caught.value.hint


@pytest.mark.parametrize("name", ["no SQLite", "other SQLite", "newer", "a directory"])
def test_nothing_foreign_is_appended_to(tmp_path: Path, name: str) -> None:
    path = tmp_path / "c.sqlite"
    WRONG[name][0](path)
    before = path.read_bytes() if path.is_file() else b""
    with pytest.raises(CaptureError) as caught:
        Capture.create(path)
    assert caught.value.hint
    assert (path.read_bytes() if path.is_file() else b"") == before


def test_a_damaged_capture_says_so(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    written(path, FULL)
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute("DELETE FROM blob")
        db.commit()
    with pytest.raises(CaptureError, match="a body is missing"):
        read(path)


def test_damaged_records_are_left_out_and_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "c.sqlite"
    with Capture.create(path) as capture:
        for number in range(1, 7):
            capture.append(Gap(float(number), f"{number}"))
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("UPDATE record SET data = '{' || char(27) WHERE seq IN (2, 3, 6)")
    damaged: list[tuple[str, int]] = []
    with Capture.open(path) as capture:
        found = [record.seq for record in capture.readable(0, lambda *one: damaged.append(one))]
        assert found == [1, 4, 5]
        assert [seq for _, seq in damaged] == [2, 3, 6]
        assert all(trouble.startswith(f"Record {seq} of ") and "\x1b" not in trouble for trouble, seq in damaged)
        assert [record.seq for record in capture.readable(4, lambda *_: None)] == [5]
        # Of a rest that cannot be read nothing is known, not even what follows.
        damaged.clear()
        monkeypatch.setattr(capture, "following", Mock(side_effect=CaptureError("torn")))
        assert [record.seq for record in capture.readable(0, lambda *one: damaged.append(one))] == [1]
        assert [seq for _, seq in damaged] == [1]


def test_what_another_writer_had_not_written_comes_after_the_end_of_the_capture(tmp_path: Path) -> None:
    one, other = Capture.create(tmp_path / "1.sqlite"), Capture.create(tmp_path / "1.sqlite")
    other.append(Gap(1.0, "waits"))
    for _ in range(3):
        one.append(Gap(1.0, "written"))
    one.flush()
    path = one.continue_in(tmp_path / "2.sqlite")
    with pytest.raises(Continued) as raised:
        other.flush()
    assert raised.value.following == path
    fresh = Capture.create(path, after=other.last)
    fresh.adopt(other)
    assert [record.seq for record in fresh.flush()] == [4]
    fresh.append(Gap(2.0, "next"))
    assert [record.seq for record in fresh.flush()] == [5]
    for capture in (one, other, fresh):
        capture.abandon()


def test_two_writers_share_a_capture(tmp_path: Path) -> None:
    with Capture.create(tmp_path / "c.sqlite") as one, Capture.create(tmp_path / "c.sqlite") as two:
        one.append(Gap(1.0, "one"))
        two.append(Gap(2.0, "two"))
        two.flush()
        one.append(Gap(3.0, "one again"))
        one.flush()
        two.append(Gap(4.0, "two again"))
    with Capture.open(tmp_path / "c.sqlite") as capture:
        gaps = [(record.seq, record.reason) for record in capture.records() if isinstance(record, Gap)]
    assert gaps == [(1, "two"), (2, "one"), (3, "one again"), (4, "two again")]


def test_a_records_json_holds_what_was_observed_and_nothing_else(tmp_path: Path) -> None:
    """It is public: `sqlite3 capture.sqlite "select data from record"`."""
    FULL.request.header("host")  # whoever looks at a record changes nothing in it
    path = tmp_path / "c.sqlite"
    with Capture.create(path) as capture:
        for leg in FULL.legs:
            capture.note(Connection(leg))
        capture.append(FULL)
    with contextlib.closing(sqlite3.connect(path)) as db:
        (data,) = db.execute("SELECT data FROM record").fetchone()
    document = json.loads(data)
    assert set(document["record"]["request"]) == {
        "headers", "body", "http_version", "started", "ended", "lost", "digest", "method", "target"
    }  # fmt: skip
    assert set(document["record"]["response"]) == {
        "headers", "body", "http_version", "started", "ended", "lost", "digest", "status", "reason"
    }  # fmt: skip


def test_a_body_by_its_digest(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    written(path, FULL)
    with Capture.open(path) as capture:
        body = FULL.request.body
        assert body
        assert capture.body(hashlib.sha256(body).hexdigest()) == body
        assert capture.body("0" * 64) is None
        assert capture.body("no digest") is None

"""Several captures read as one, and a vacuum changes nothing but the size."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import shutil
import sqlite3
import stat
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from inspector.capture import merge
from inspector.capture.notes import Notes
from inspector.capture.store import Capture
from inspector.errors import CaptureError
from inspector.model import Closed, Connection, Exchange, Gap, Handshake, Leg, Request, Response
from inspector.summaries import index, indexer
from tests.support import places
from tests.support.captures import keep, save
from tests.support.conversations import numbered, runs_of
from tests.support.records import read, unnumbered

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.model import Record

SAMPLES = places.SAMPLES


def connections(path: Path) -> list[Connection]:
    with Capture.open(path) as capture:
        return capture.connections()


def sampled(name: str) -> list[Record]:
    """The records of a recorded run, as the proxy would give them."""
    return unnumbered(read(SAMPLES / f"{name}.sqlite"))


def runs_in(path: Path) -> list[tuple[object, ...]]:
    return [(run.certname, run.outcome, list(run.seqs), run.findings) for run in runs_of(read(path))]


def blobs(path: Path) -> int:
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro&immutable=1", uri=True)) as db:
        return int(db.execute("SELECT count(*) FROM blob").fetchone()[0])


def exchange(leg: Leg, at: float, body: bytes = b"body") -> Exchange:
    return Exchange(
        leg, Request(body=body, started=at, ended=at), Response(body=body, started=at, ended=at, status=200)
    )


# -- merge ---------------------------------------------------------------------------------------------


def test_runs_that_were_cut_in_two_are_whole_again(tmp_path: Path) -> None:
    records = sampled("first-run")
    whole = save(tmp_path / "whole.sqlite", *records)
    first = save(tmp_path / "1.sqlite", *records[:14])
    second = save(tmp_path / "2.sqlite", *records[14:])
    assert [run[:2] for run in runs_in(first)] == [("node1.example", "unfinished")]
    target = tmp_path / "merged.sqlite"
    assert merge.merge([second, first], target) == merge.Merged(22, 0, 0)
    assert read(target) == read(whole)
    assert connections(target) == connections(whole)
    assert runs_in(target) == runs_in(whole)
    assert [run[:2] for run in runs_in(target)] == [("node1.example", "complete")]
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert len(list(tmp_path.iterdir())) == 4


def test_an_agent_behind_two_proxies_is_one(tmp_path: Path) -> None:
    records = sampled("first-run")
    legs = {record.agent.id: number for number, record in enumerate(records) if isinstance(record, Exchange)}
    split: tuple[list[Record], list[Record]] = [], []
    for record in records:
        if isinstance(record, Exchange):
            split[legs[record.agent.id] % 2].append(record)
    assert all(split)
    paths = [save(tmp_path / f"{number}.sqlite", *some) for number, some in enumerate(split)]
    merge.merge(paths, tmp_path / "c.sqlite")
    whole = save(tmp_path / "whole.sqlite", *records)
    assert (read(tmp_path / "c.sqlite"), runs_in(tmp_path / "c.sqlite")) == (read(whole), runs_in(whole))


def test_everything_that_a_capture_holds_is_taken_over(tmp_path: Path) -> None:
    leg = Leg("a", "agent", "192.0.2.1", 4711, connected=5.0, secured=6.0, peer_chain=(b"leaf",), own_chain=(b"ours",))
    silent = Connection(Leg("quiet", "agent", "192.0.2.2", connected=1.0), Closed(3.0, "peer"))
    master = Leg("m", "master", "192.0.2.9", 8140)
    first = dataclasses.replace(exchange(leg, 10.0), master=master)
    records: list[Record] = [first, Handshake(leg, 11.0, "revoked"), Gap(12.0, "x", 3)]
    with Capture.create(tmp_path / "a.sqlite") as capture:
        capture.note(silent)
        keep(capture, *records)
        capture.note(Connection(leg, Closed(20.0, "proxy")))
        capture.flush()
        capture.set_meta([("source", "here"), ("continued_in", "b.sqlite")])
    other = save(tmp_path / "b.sqlite", Gap(11.5, "y"))
    merge.merge([tmp_path / "a.sqlite", other], tmp_path / "c.sqlite")
    assert read(tmp_path / "c.sqlite") == numbered([*records[:2], Gap(11.5, "y"), records[2]])
    assert set(connections(tmp_path / "c.sqlite")) == {
        silent, Connection(master), Connection(leg, Closed(20.0, "proxy")),
    }  # fmt: skip
    with Capture.open(tmp_path / "c.sqlite") as merged:
        meta = merged.meta()
    assert (meta["source"], meta["merged"]) == ("here", "a.sqlite, b.sqlite")
    assert "continued_in" not in meta
    assert meta["made_by"].startswith("puppet-inspector ")


def test_bodies_are_stored_once(tmp_path: Path) -> None:
    paths = [save(tmp_path / f"{n}.sqlite", exchange(Leg(f"a{n}", "agent"), n, b"same" * 1000)) for n in (1, 2, 3)]
    merge.merge(paths, tmp_path / "c.sqlite")
    assert blobs(tmp_path / "c.sqlite") == 1
    assert [record.request.body for record in read(tmp_path / "c.sqlite") if isinstance(record, Exchange)] == [
        b"same" * 1000
    ] * 3


def test_a_record_that_two_hold_is_there_once(tmp_path: Path) -> None:
    records = sampled("out-of-sync")
    first = save(tmp_path / "1.sqlite", *records[:8])
    second = save(tmp_path / "2.sqlite", *records[4:])
    merged = merge.merge([first, second], tmp_path / "c.sqlite")
    assert merged == merge.Merged(len(records), 4, 0)
    assert unnumbered(read(tmp_path / "c.sqlite")) == unnumbered(records)


def test_what_one_capture_holds_twice_stays_twice(tmp_path: Path) -> None:
    first = save(tmp_path / "1.sqlite", Gap(1.0, "x"), Gap(1.0, "x"), Gap(2.0, "y"))
    assert merge.merge([first], tmp_path / "c.sqlite") == merge.Merged(3, 0, 0)


def test_a_record_that_differs_in_one_body_is_another(tmp_path: Path) -> None:
    leg = Leg("a", "agent", "192.0.2.1", 4711, connected=1.0)
    paths = [save(tmp_path / f"{n}.sqlite", exchange(leg, 5.0, body)) for n, body in enumerate((b"one", b"two"))]
    assert merge.merge(paths, tmp_path / "c.sqlite") == merge.Merged(2, 0, 0)


def test_connections_that_are_only_called_alike_stay_two(tmp_path: Path) -> None:
    one = Leg("a", "agent", "192.0.2.1", 4711, connected=1.0, peer_chain=(b"one",))
    two = Leg("a", "agent", "192.0.2.2", 4711, connected=1.0, peer_chain=(b"two",))
    taken = Leg("a~2", "agent", "192.0.2.3", connected=1.0)
    master = Leg("m", "master", "192.0.2.9")
    first = save(tmp_path / "1.sqlite", dataclasses.replace(exchange(one, 5.0), master=master), exchange(taken, 5.5))
    second = save(
        tmp_path / "2.sqlite",
        dataclasses.replace(exchange(two, 6.0), master=dataclasses.replace(master, address="192.0.2.8")),
        Handshake(two, 7.0, "revoked"),
        exchange(dataclasses.replace(taken, id="a~3"), 8.0),
    )
    assert merge.merge([first, second], tmp_path / "c.sqlite").renamed == 2
    records = read(tmp_path / "c.sqlite")
    assert isinstance(records[0], Exchange)
    assert isinstance(records[2], Exchange)
    assert isinstance(records[3], Handshake)
    assert records[0].agent == one
    assert records[2].agent == records[3].leg == dataclasses.replace(two, id="a~4")
    assert records[2].master == Leg("m~2", "master", "192.0.2.8")


def test_a_connection_that_went_on_is_one_and_known_best(tmp_path: Path) -> None:
    early = Leg("a", "agent", "192.0.2.1", 4711, connected=1.0)
    known = dataclasses.replace(early, secured=2.0, peer_chain=(b"leaf",))
    with Capture.create(tmp_path / "1.sqlite") as capture:
        capture.note(Connection(early))
    with Capture.create(tmp_path / "2.sqlite") as capture:
        keep(capture, exchange(known, 5.0))
        capture.note(Connection(known, Closed(9.0, "peer")))
    for order in ((1, 2), (2, 1)):
        target = tmp_path / f"{order}.sqlite"
        assert merge.merge([tmp_path / f"{n}.sqlite" for n in order], target).renamed == 0
        assert connections(target) == [Connection(known, Closed(9.0, "peer"))]


def test_a_target_that_is_there_is_left_alone(tmp_path: Path) -> None:
    source = save(tmp_path / "1.sqlite", Gap(1.0, "x"))
    (tmp_path / "there").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("there", "link", "1.sqlite"):
        with pytest.raises(CaptureError, match="already"):
            merge.merge([source], tmp_path / name)
    assert (tmp_path / "there").read_text() == "mine"


def test_what_can_not_be_read_leaves_nothing_behind(tmp_path: Path) -> None:
    good = save(tmp_path / "good.sqlite", exchange(Leg("a", "agent"), 1.0))
    bad = save(tmp_path / "bad.sqlite", exchange(Leg("b", "agent"), 2.0))
    with closing(sqlite3.connect(bad)) as db:
        db.execute("DELETE FROM blob")
        db.commit()
    with pytest.raises(CaptureError, match=r"Record 1 of .*bad.sqlite cannot be read: a body is missing"):
        merge.merge([good, bad], tmp_path / "c.sqlite")
    (tmp_path / "text.sqlite").write_text("no capture at all, but long enough to be read as one" * 99)
    with pytest.raises(CaptureError, match="is not a capture"):
        merge.merge([good, tmp_path / "text.sqlite"], tmp_path / "c.sqlite")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.sqlite", "good.sqlite", "text.sqlite"]


def test_one_that_is_being_written_is_merged_as_far_as_it_is(tmp_path: Path) -> None:
    with Capture.create(tmp_path / "1.sqlite") as capture:
        keep(capture, exchange(Leg("a", "agent"), 1.0))
        capture.append(Gap(2.0, "not written yet"))
        assert merge.merge([tmp_path / "1.sqlite"], tmp_path / "c.sqlite").records == 1


# -- vacuum --------------------------------------------------------------------------------------------


def orphaned(path: Path) -> Path:
    """A capture with a body that nobody refers to."""
    asked = exchange(Leg("a", "agent", peer_chain=(b"leaf",), own_chain=(b"ours",)), 1.0)
    save(path, dataclasses.replace(asked, response=Response(body=b"answer", status=200)), Gap(2.0, "x"))
    body = os.urandom(200_000)
    with closing(sqlite3.connect(path)) as db:
        row = hashlib.sha256(body).digest(), len(body), body
        db.execute("INSERT INTO blob (sha256, size, data) VALUES (?, ?, ?)", row)
        db.commit()
    return path


def test_a_vacuum_takes_out_what_nobody_refers_to(tmp_path: Path) -> None:
    path = orphaned(tmp_path / "c.sqlite")
    path.chmod(0o644)
    records, legs, size = read(path), connections(path), path.stat().st_size
    done = merge.vacuum(path)
    assert (done.before, done.dropped) == (size, 1)
    assert done.after == path.stat().st_size < size - 190_000
    assert (read(path), connections(path), blobs(path)) == (records, legs, 4)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["c.sqlite"]
    assert merge.vacuum(path) == merge.Vacuumed(done.after, done.after, 0)


def test_a_vacuum_keeps_index_and_notes(tmp_path: Path) -> None:
    path = orphaned(tmp_path / "c.sqlite")
    indexer.build(path, index.place(path))
    Notes.open(path).set_note("record", 1, "look here")
    merge.vacuum(path)
    assert Notes.open(path).note("record", 1) == "look here"
    found = index.Index.open(index.place(path))
    assert found is not None
    with Capture.open(path) as capture, closing(found):
        assert found.fits(capture)


def test_a_vacuum_takes_in_what_a_killed_proxy_left(tmp_path: Path) -> None:
    with Capture.create(tmp_path / "living.sqlite") as capture:
        keep(capture, exchange(Leg("a", "agent"), 1.0))
        for ending in ("", "-wal"):
            shutil.copy(tmp_path / f"living.sqlite{ending}", tmp_path / f"killed.sqlite{ending}")
    path = tmp_path / "killed.sqlite"
    assert merge.vacuum(path).after == path.stat().st_size
    assert len(read(path)) == 1
    assert not list(tmp_path.glob("killed.sqlite-*"))


def test_what_is_being_written_is_not_vacuumed(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    with Capture.create(path) as capture:
        keep(capture, Gap(1.0, "x"))
        with pytest.raises(CaptureError, match="is being written"):
            merge.vacuum(path)
        keep(capture, Gap(2.0, "y"))
        assert not capture.lost()
    assert [record.time for record in read(path)] == [1.0, 2.0]
    assert [file.name for file in tmp_path.iterdir()] == ["c.sqlite"]


@pytest.mark.slow
def test_nobody_begins_to_write_meanwhile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(tmp_path / "c.sqlite", Gap(1.0, "x"))

    def come(*_: object) -> int:
        with pytest.raises(CaptureError, match="locked"):
            Capture.create(path)
        return 0

    monkeypatch.setattr(merge, "_drop", come)
    merge.vacuum(path)


def test_a_vacuum_of_a_link_keeps_the_link(tmp_path: Path) -> None:
    real = orphaned(tmp_path / "real.sqlite")
    link = tmp_path / "link.sqlite"
    link.symlink_to(real.name)
    merge.vacuum(link)
    assert link.is_symlink()
    assert blobs(real) == 4


def test_a_damaged_capture_is_left_as_it_is(tmp_path: Path) -> None:
    path = orphaned(tmp_path / "c.sqlite")
    with closing(sqlite3.connect(path)) as db:
        db.execute("DELETE FROM blob WHERE size < 1000")
        db.commit()
    with pytest.raises(CaptureError, match="cannot be read"):
        merge.vacuum(path)
    assert blobs(path) == 1
    with pytest.raises(CaptureError, match="no capture at"):
        merge.vacuum(tmp_path / "none.sqlite")
    assert [file.name for file in tmp_path.iterdir()] == ["c.sqlite"]


ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n"


def test_a_statement_that_takes_long_can_be_interrupted() -> None:
    def look() -> None:
        raise KeyboardInterrupt

    with closing(sqlite3.connect(":memory:", check_same_thread=False)) as db:
        with pytest.raises(KeyboardInterrupt):
            merge._execute(db, ENDLESS, look=look)
        assert merge._execute(db, "SELECT 1 + ?", "1").fetchall() == [(2,)], "the connection goes on"
        with pytest.raises(sqlite3.OperationalError, match="no such table"):
            merge._execute(db, "SELECT x FROM nowhere")

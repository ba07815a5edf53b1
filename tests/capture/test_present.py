"""What is under way, written beside the records: who reads it knows whether its writer is alive."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
from contextlib import closing
from typing import TYPE_CHECKING

import msgspec
import pytest
import zstandard

from inspector.capture import merge
from inspector.capture.present import CONNECTIONS, REQUESTS, SILENCE, TEXT
from inspector.capture.store import Capture
from inspector.cli.main import main
from inspector.errors import CaptureError
from inspector.model import NOTHING_OPEN, Gap, OpenConnection, OpenRequest, Present
from inspector.runs.examples import ca, catalog, report, talk
from tests.support.captures import save

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

REQUEST = OpenRequest("leg", 95.0, "POST", "/puppet/v3/catalog/a8.test?environment=production")
CONNECTION = OpenConnection("leg", 90.0, "192.0.2.8", "a8.test", 94.0)
NOW = Present("open", 100.0, (REQUEST,), (CONNECTION,))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "c.sqlite"


def with_present(capture: Capture, present: Present = NOW) -> Capture:
    capture.set_present(present)
    capture.flush()
    return capture


def read(path: Path, now: float = 101.0) -> Present:
    with Capture.open(path) as capture:
        return capture.present(now)


def state(present: Present) -> tuple[str, float, int]:
    return present.recording, present.time, len(present.requests)


def test_it_is_read_while_its_writer_lives(path: Path) -> None:
    with Capture.create(path) as writer:
        assert read(path) == NOTHING_OPEN
        with_present(writer)
        assert read(path) == Present("open", 101.0, (REQUEST,), (CONNECTION,))
        assert writer.present(102.0).recording == "open"
        assert read(path, 99.0).time == 100.0  # a clock that was set back


def test_a_writer_that_does_not_get_to_write_is_believed_until_then(path: Path) -> None:
    with Capture.create(path) as writer:
        with_present(writer)
        assert state(read(path, 100.0 + SILENCE)) == ("open", 100.0, 1)
        with_present(writer, Present("open", 100.0))
        assert state(read(path, 5000.0)) == ("open", 5000.0, 0)  # nothing changes, so nothing is written


def test_the_end_is_marked_with_what_was_under_way(path: Path) -> None:
    with_present(Capture.create(path), Present("ended", 105.0, (REQUEST,))).close()
    for now in (105.0, 1e9):
        assert state(read(path, now)) == ("ended", 105.0, 1)


def test_nothing_was_under_way_if_whom_it_recorded_had_ended(path: Path) -> None:
    with_present(Capture.create(path), Present("ended", 105.0, (REQUEST,))).close()
    with Capture.create(path) as again:
        again.settle()
    assert read(path, 105.0) == NOTHING_OPEN


def test_without_a_mark_it_was_cut_off(path: Path) -> None:
    with_present(Capture.create(path)).close()
    for now in (101.0, 1e9):
        assert state(read(path, now)) == ("cut off", 100.0, 1)


KILLED = """
import sys
from inspector.capture.store import Capture
from inspector.model import OpenRequest, Present
capture = Capture.create(sys.argv[1])
capture.set_present(Present("open", 100.0, (OpenRequest("leg", 95.0, "GET", "/"),)))
capture.flush()
print("written", flush=True)
sys.stdin.read()
"""


def test_kill_9_cuts_it_off_at_once(path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", KILLED, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"written\n"
        assert state(read(path)) == ("open", 101.0, 1)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert state(read(path)) == ("cut off", 100.0, 1)
    copy = path.with_name("copy.sqlite")
    for ending in ("", "-wal"):
        copy.with_name(copy.name + ending).write_bytes(path.with_name(path.name + ending).read_bytes())
    assert state(read(copy)) == ("cut off", 100.0, 1)
    with Capture.create(path) as next_writer:  # the next recording knows nothing of this
        with_present(next_writer, Present("open", 200.0))
        assert state(read(path, 201.0)) == ("open", 201.0, 0)


def test_a_copy_of_what_is_recorded_is_nobodys(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.sqlite"
    with Capture.create(path) as writer:
        with_present(writer)
        for ending in ("", "-wal"):
            copy.with_name(copy.name + ending).write_bytes(path.with_name(path.name + ending).read_bytes())
    assert state(read(copy)) == ("cut off", 100.0, 1)


def test_several_writers_tell_theirs_each(path: Path) -> None:
    one, two = with_present(Capture.create(path)), Capture.create(path)
    other = OpenRequest("other", 93.0, "GET", "/")
    with_present(two, Present("open", 100.5, (other,), (CONNECTION,), more_requests=3))
    found = read(path, 101.0)
    assert found == Present("open", 101.0, (other, REQUEST), (CONNECTION, CONNECTION), 3)
    with_present(two, Present("ended", 101.0)).close()
    assert state(read(path, 102.0)) == ("open", 102.0, 1)
    one.abandon()
    assert state(read(path, 102.0)) == ("cut off", 101.0, 1)


def test_a_worker_that_replaces_a_dead_one_takes_its_place(path: Path) -> None:
    one, two = with_present(Capture.create(path)), with_present(Capture.create(path))
    one.abandon()
    three = with_present(Capture.create(path), Present("open", 101.0))
    assert len(read(path).requests) == 1
    two.abandon()
    three.abandon()


def test_a_part_that_is_continued_has_ended(path: Path) -> None:
    with with_present(Capture.create(path)) as writer:
        writer.continue_in(path.with_name("next.sqlite"))
        assert state(read(path, 500.0)) == ("ended", 100.0, 1)


def test_it_is_no_record_and_needs_none(path: Path) -> None:
    with with_present(Capture.create(path)) as writer, Capture.open(path) as reader:
        assert list(reader.records()) == []
        assert reader.count() == reader.last == 0
        writer.append(Gap(1.0, "x"))
        writer.flush()
        assert reader.last == 1


@pytest.mark.slow
def test_an_hour_of_signs_of_life_makes_nothing_grow(path: Path) -> None:
    """As many as a proxy writes in an hour, of all sizes up to the largest that cannot be packed."""
    everything = [OpenRequest("a", 90.0, "GET", os.urandom(TEXT // 2).hex()) for _ in range(REQUESTS)]
    with with_present(Capture.create(path)) as writer:
        sizes = []
        for number in range(3600):
            with_present(writer, Present("open", 100.0 + number, tuple(everything[number % 7 * 10 :])))
            sizes.append((path.stat().st_size, path.with_name(path.name + "-wal").stat().st_size))
        for early, late in zip(zip(*sizes[:100], strict=True), zip(*sizes[-1000:], strict=True), strict=True):
            assert max(late) < max(early) + 6 * 2**20  # SQLite begins its log anew at a thousand pages
    assert path.stat().st_size < 2**20


def row(
    requests: int = 0, connections: int = 0, *, target: str = "/", time: object = 95.0, last: float = 0.0, more: int = 0
) -> bytes:
    return zstandard.compress(
        msgspec.json.encode(
            {
                "requests": [{"leg": "a", "time": time, "method": "GET", "target": target}] * requests,
                "connections": [{"leg": "a", "connected": 1.0, "last": last}] * connections,
                "more_requests": more,
            }
        )
    )


DAMAGED: dict[str, tuple[object, object, object, object]] = {
    "no frame": (0, 1.0, 0, b"x"),
    "a text": (0, 1.0, 0, "x"),
    "no JSON": (0, 1.0, 0, zstandard.compress(b"[")),
    "a frame of a gigabyte": (0, 1.0, 0, zstandard.compress(bytes(2**26))),
    "deep": (0, 1.0, 0, zstandard.compress(b'{"requests":' + b"[" * 100_000)),
    "a writer beyond all": (2**62, 1.0, 0, row()),
    "a negative writer": (-1, 1.0, 0, row()),
    "a time that is none": (0, "x", 0, row()),
    "an infinite time": (0, 9e999, 0, row()),
    "a negative time": (0, -1.0, 0, row()),
    "a request of another age": (0, 1.0, 0, row(1, time=1e300)),
    "a request without a time": (0, 1.0, 0, row(1, time=float("nan"))),
    "a connection of another age": (0, 1.0, 0, row(0, 1, last=-5.0)),
    "too many requests": (0, 1.0, 0, row(REQUESTS + 1)),
    "too many connections": (0, 1.0, 0, row(0, CONNECTIONS + 1)),
    "a long target": (0, 1.0, 0, row(1, target="/" * (TEXT + 1))),
    "a negative number": (0, 1.0, 0, row(more=-1)),
    "a huge number": (0, 1.0, 0, row(more=2**62)),
}


@pytest.mark.parametrize("name", DAMAGED)
def test_what_is_damaged_tells_nothing(path: Path, name: str) -> None:
    Capture.create(path).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("INSERT INTO present VALUES (?, ?, ?, ?)", DAMAGED[name])
        db.commit()
    assert read(path) == NOTHING_OPEN


def test_a_row_as_the_tests_make_it_is_sound(path: Path) -> None:
    Capture.create(path).close()
    with closing(sqlite3.connect(path)) as db:
        db.execute("INSERT INTO present VALUES (0, 1.0, 0, ?)", (row(REQUESTS, CONNECTIONS, target="/" * TEXT),))
        db.commit()
    assert state(read(path)) == ("cut off", 1.0, REQUESTS)


def test_many_rows_tell_nothing(path: Path) -> None:
    Capture.create(path).close()
    with closing(sqlite3.connect(path)) as db:
        db.executemany("INSERT INTO present VALUES (?, 1.0, 0, ?)", ((number, row()) for number in range(300)))
        db.commit()
    assert read(path) == NOTHING_OPEN


FOREIGN: dict[str, Callable[[Path], object]] = {
    "a pipe": lambda wal: os.mkfifo(wal),
    "a link": lambda wal: wal.symlink_to("c.sqlite"),
}


@pytest.mark.parametrize("name", FOREIGN)
def test_no_pipe_and_no_link_is_asked_for_a_lock(path: Path, name: str) -> None:
    with_present(Capture.create(path)).close()
    with Capture.open(path) as capture:
        FOREIGN[name](path.with_name(path.name + "-wal"))
        assert capture.present(101.0).recording == "cut off"


def test_a_row_that_cannot_be_written_costs_no_record(path: Path) -> None:
    with Capture.create(path) as writer:
        writer.append(Gap(1.0, "x"))
        with_present(writer, Present("open", 100.0, (OpenRequest("a", 1.0, "GET", "\ud800"),)))
    with Capture.open(path) as capture:
        assert len(list(capture.records())) == 1


def test_a_table_that_is_locked_is_an_error_not_nothing(path: Path) -> None:
    with_present(Capture.create(path)).close()
    with Capture.open(path) as capture:
        capture._db.close()
        with pytest.raises(CaptureError, match="What is under way of"):
            capture.present(1.0)


def test_what_is_under_way_does_not_leave(path: Path) -> None:
    """Copies that leave know nothing of it; what is only made smaller, or merged, still does."""
    save(path, *talk(ca(), catalog(), report()))
    with_present(Capture.create(path)).close()
    made = {name: path.with_name(f"{name}.sqlite") for name in ("shared", "imported")}
    merged = path.with_name("merged.sqlite")
    jsonl = path.with_name("c.jsonl")
    for command in (
        ["captures", "merge", path, "-o", merged],
        ["share", path, "-o", made["shared"]],
        ["export", path, "-o", jsonl],
        ["import", jsonl, "-o", made["imported"]],
        ["captures", "vacuum", path],
    ):
        assert main([str(word) for word in command]) == 0
    assert {name: read(copy) for name, copy in made.items()} == dict.fromkeys(made, NOTHING_OPEN)
    assert b"a8.test" not in jsonl.read_bytes()
    assert state(read(path)) == state(read(merged)) == ("cut off", 100.0, 1)


def test_of_the_captures_of_one_place_the_last_says_what_was_under_way(path: Path) -> None:
    """What was under way when the proxy went on with another capture is over in that one."""
    later = path.with_name("later.sqlite")
    with_present(Capture.create(path), Present("ended", 100.0, (OpenRequest("leg", 95.0, "GET", "/"),))).close()
    with_present(Capture.create(later), Present("ended", 200.0)).close()
    for captures in ((path, later), (later, path)):
        target = path.with_name(f"{captures[0].stem}-first.sqlite")
        assert merge.merge(captures, target).present == read(target) == Present("ended", 200.0)


def test_what_several_have_under_way_is_listed_within_limits(path: Path) -> None:
    """Of several captures that are merged it may be more than one proxy lists."""
    present = Present("open", 100.0, (REQUEST,) * (REQUESTS + 3), (CONNECTION,) * (CONNECTIONS + 1), 1)
    with with_present(Capture.create(path), present):
        assert read(path, 100.0) == Present(
            "open", 100.0, (REQUEST,) * REQUESTS, (CONNECTION,) * CONNECTIONS, more_requests=4, more_connections=1
        )

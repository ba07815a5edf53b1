"""A capture when its writer is killed, its disk is full, its file locked, deleted or not ours to write."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from inspector.capture.store import Capture
from inspector.model import Connection, Exchange, Response
from tests.support.records import AGENT, FAILED, FULL, LOST, MASTER, read, written

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

CHILD = """
import sys
from inspector.model import Connection, Exchange, Leg, Request, Response
from inspector.capture.store import Capture
capture, leg = Capture.create(sys.argv[1]), Leg("a", "agent", peer_chain=(b"x",))
capture.note(Connection(leg))
while True:
    for _ in range(7):
        number = capture.last + len(capture.pending) + 1
        body = str(number).encode() * 5000
        last = capture.append(Exchange(leg, Request(target=f"/{number}", body=body), Response(body=body, status=200)))
    capture.flush()
    print(last.seq, flush=True)
"""


@pytest.mark.slow
@pytest.mark.parametrize("flushes", [1, 5, 23])
def test_a_killed_writers_capture_holds_everything_flushed(tmp_path: Path, flushes: int) -> None:
    path = tmp_path / "c.sqlite"
    command = [sys.executable, "-c", CHILD, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout
        flushed = [int(child.stdout.readline()) for _ in range(flushes)][-1]
        child.send_signal(signal.SIGKILL)
    records = read(path)
    assert child.returncode == -signal.SIGKILL
    assert len(records) >= flushed == 7 * flushes
    for seq, record in enumerate(records, 1):
        assert isinstance(record, Exchange)
        assert record.response
        assert (record.seq, record.request.target, record.agent.peer_chain) == (seq, f"/{seq}", (b"x",))
        assert record.request.body == record.response.body == str(seq).encode() * 5000


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield


@contextlib.contextmanager
def full(path: Path) -> Iterator[None]:
    """No file of this process may grow: what a full disk does to a write."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.with_name(path.name + "-wal").stat().st_size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.slow
@pytest.mark.parametrize("trouble", [locked, full])
def test_what_could_not_be_written_is_written_later(
    tmp_path: Path, trouble: Callable[[Path], contextlib.AbstractContextManager[None]]
) -> None:
    path = tmp_path / "c.sqlite"
    big = dataclasses.replace(FULL, response=Response(body=os.urandom(400_000), status=200))
    with Capture.create(path) as capture:
        capture.note(Connection(AGENT))
        first = capture.append(FAILED)
        capture.flush()
        with trouble(path):
            second = capture.append(big)
            capture.note(Connection(MASTER))
            with pytest.raises(sqlite3.Error):
                capture.flush()
            assert capture.pending == [second]
        third = capture.append(LOST)
        capture.flush()
        assert capture.pending == []
        assert read(path) == [first, second, third]


@pytest.mark.parametrize("replaced", [False, True])
def test_a_deleted_file_is_noticed_and_what_was_pending_moves_on(tmp_path: Path, replaced: bool) -> None:
    path = tmp_path / "c.sqlite"
    capture = Capture.create(path)
    retained = capture.append(LOST)
    assert not capture.lost()
    path.rename(tmp_path / "away.sqlite")
    if replaced:
        Capture.create(path).close()
    assert capture.lost()
    with Capture.create(tmp_path / "new.sqlite") as other:
        other.adopt(capture)
        later = other.append(LOST)
    capture.abandon()
    assert (retained.seq, later.seq) == (1, 2)
    assert read(tmp_path / "new.sqlite") == [retained, later]


@contextlib.contextmanager
def powerless() -> Iterator[None]:
    """As root, permissions do not bind: become nobody for a while."""
    root = os.geteuid() == 0
    if root:
        os.seteuid(65534)
    try:
        yield
    finally:
        if root:
            os.seteuid(0)


def test_a_capture_in_a_directory_that_may_not_be_written_is_readable(tmp_path: Path) -> None:
    records = written(tmp_path / "c.sqlite", FULL, LOST)
    with tempfile.TemporaryDirectory(dir="/tmp") as name:  # pytest's own is closed to nobody
        path = Path(name) / "sample.sqlite"
        shutil.copy(tmp_path / "c.sqlite", path)
        path.chmod(0o444)
        path.parent.chmod(0o555)
        with powerless():
            assert read(path) == records
            assert [file.name for file in path.parent.iterdir()] == ["sample.sqlite"]
        path.parent.chmod(0o755)

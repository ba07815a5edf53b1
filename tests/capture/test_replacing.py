"""A capture is at its place when it is complete, and not before."""

from __future__ import annotations

import os
import sqlite3
from typing import TYPE_CHECKING

import pytest

from inspector.capture.replacing import created, replacement
from inspector.capture.store import Capture
from inspector.errors import CaptureError
from inspector.model import Gap

if TYPE_CHECKING:
    from pathlib import Path

RECORD = Gap(1.0, "x")


def test_it_is_there_at_the_end(tmp_path: Path) -> None:
    target = tmp_path / "new" / "c.sqlite"
    with created(target, after=6) as made:
        made.append(RECORD)
        made.flush()
        assert not target.exists()
        made.append(RECORD)
    with Capture.open(target) as capture:
        assert [record.seq for record in capture.records()] == [7, 8]
    assert [path.name for path in target.parent.iterdir()] == ["c.sqlite"]
    assert target.stat().st_mode & 0o777 == 0o600
    assert target.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize(
    ("error", "raised"),
    [
        (KeyboardInterrupt(), KeyboardInterrupt),
        (SystemExit(143), SystemExit),
        (OSError(28, "No space left on device"), CaptureError),
        (sqlite3.OperationalError("database or disk is full"), CaptureError),
    ],
)
def test_whatever_ends_it_nothing_remains(error: BaseException, raised: type[BaseException], tmp_path: Path) -> None:
    def work() -> None:
        with created(tmp_path / "c.sqlite") as made:
            made.append(RECORD)
            made.flush()
            made.append(RECORD)
            raise error

    with pytest.raises(raised) as ended:
        work()
    assert list(tmp_path.iterdir()) == []
    if raised is CaptureError:
        assert str(ended.value).startswith(f"Cannot write {tmp_path / 'c.sqlite'}: ")


def test_what_is_there_stays(tmp_path: Path) -> None:
    (tmp_path / "c.sqlite").write_text("mine")
    (tmp_path / "link.sqlite").symlink_to("nowhere")
    for name in ("c.sqlite", "link.sqlite"):
        with pytest.raises(CaptureError, match="already exists"), created(tmp_path / name):
            pass
    assert (tmp_path / "c.sqlite").read_text() == "mine"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.sqlite", "link.sqlite"]


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    with (
        pytest.raises(CaptureError, match=f"Cannot write {tmp_path}/file/c.sqlite: "),
        created(tmp_path / "file" / "c.sqlite"),
    ):
        pass

    def full(*_: object) -> int:
        raise OSError(28, os.strerror(28))

    monkeypatch.setattr(os, "fchmod", full)  # in the middle of Capture.create
    with (
        pytest.raises(CaptureError, match=f"Cannot write {tmp_path}/c.sqlite: No space"),
        created(tmp_path / "c.sqlite"),
    ):
        pass
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_file_is_replaced_at_once(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    path.write_text("old")
    with replacement(path) as fresh:
        assert fresh.read_bytes() == b""
        fresh.write_text("new")
        assert path.read_text() == "old"
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]

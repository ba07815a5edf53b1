"""``inspector.host.replacing``: a file is replaced as a whole, or not at all."""

from __future__ import annotations

import os
import stat
from typing import TYPE_CHECKING

import pytest

from inspector.errors import InspectorError
from inspector.host import replacing

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "ca_crl.pem"
    path.write_bytes(b"old")
    path.chmod(0o640)
    os.utime(path, (1_000_000_000, 1_000_000_000))
    return path


def _replace(path: Path, old: bytes | None = b"old") -> Path | None:
    return replacing.replace(path, b"new", old, model=path, suffix="then")


def test_the_copy_is_the_old_file_and_the_new_one_has_its_mode(file: Path) -> None:
    copy = _replace(file)
    assert copy == file.with_name("ca_crl.pem.then")
    assert (file.read_bytes(), copy.read_bytes()) == (b"new", b"old")
    assert {stat.S_IMODE(path.stat().st_mode) for path in (file, copy)} == {0o640}
    assert copy.stat().st_mtime == 1_000_000_000
    assert file.stat().st_mtime > 1_000_000_000  # a server answers If-Modified-Since by it
    assert sorted(path.name for path in file.parent.iterdir()) == ["ca_crl.pem", "ca_crl.pem.then"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_owner_and_group_stay(file: Path) -> None:
    os.chown(file, 1234, 4321)
    copy = _replace(file)
    assert copy
    assert {(path.stat().st_uid, path.stat().st_gid) for path in (file, copy)} == {(1234, 4321)}


def test_without_an_old_file_there_is_no_copy(file: Path) -> None:
    path = file.with_name("other.pem")
    assert replacing.replace(path, b"new", None, model=file, suffix="then") is None
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", 0o640)


def test_what_another_process_wrote_meanwhile_is_not_lost(file: Path) -> None:
    with pytest.raises(InspectorError, match="changed by another process"):
        _replace(file, b"older")
    assert [path.read_bytes() for path in file.parent.iterdir()] == [b"old"]


def test_an_earlier_copy_is_not_overwritten(file: Path) -> None:
    copy = file.with_name("ca_crl.pem.then")
    copy.write_bytes(b"precious")
    with pytest.raises(InspectorError, match="already exists"):
        _replace(file)
    assert (file.read_bytes(), copy.read_bytes()) == (b"old", b"precious")
    assert len(list(file.parent.iterdir())) == 2


@pytest.mark.parametrize("name", ["ca_crl.pem.then", ".ca_crl.pem.PID"])
def test_no_link_is_written_through(file: Path, name: str) -> None:
    (target := file.with_name("target")).write_bytes(b"precious")
    file.with_name(name.replace("PID", str(os.getpid()))).symlink_to(target)
    with pytest.raises(InspectorError):
        _replace(file)
    assert (file.read_bytes(), target.read_bytes()) == (b"old", b"precious")


def test_on_a_full_disk_nothing_is_changed(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InspectorError, match=r"No space left on device\. It is unchanged") as error:
        _replace(file)
    assert "the disk is neither full" in error.value.hint
    assert [path.read_bytes() for path in file.parent.iterdir()] == [b"old"]


def test_a_file_is_given_away_but_not_what_a_link_leads_to(file: Path) -> None:
    replacing.give(file, os.geteuid(), os.getegid(), 0o604)
    assert stat.S_IMODE(file.stat().st_mode) == 0o604
    link = file.with_name("link")
    link.symlink_to(file)
    with pytest.raises(InspectorError, match="cannot be changed"):
        replacing.give(link, os.geteuid(), os.getegid(), 0o600)
    assert stat.S_IMODE(file.stat().st_mode) == 0o604

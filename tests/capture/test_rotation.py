"""When another capture begins, which old ones go, and what is never deleted."""

from __future__ import annotations

import os
import re
import shutil
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from inspector.capture import paths, rotation
from inspector.capture.rotation import Rotation
from inspector.capture.schema import marked
from inspector.capture.store import Capture
from inspector.errors import InspectorError
from inspector.model import Gap
from tests.support.captures import save

if TYPE_CHECKING:
    from pathlib import Path

CURRENT = "20261121T120000Z.sqlite"


@pytest.fixture
def current(tmp_path: Path) -> Path:
    return save(tmp_path / CURRENT, Gap(1.0, "x"))


def old(current: Path, *names: str) -> list[Path]:
    """Closed captures beside the current one."""
    return [save(current.with_name(f"{name}.sqlite"), Gap(1.0, "x")) for name in names]


def names(paths: list[Path]) -> list[str]:
    return [path.stem for path in paths]


# -- when to begin another one -------------------------------------------------------------------------


def test_without_limits_one_capture_goes_on(current: Path) -> None:
    assert not Rotation().due(current, 0.0, 1e9)
    assert Rotation().retire(current) == []


def test_it_is_due_by_size_with_what_is_being_written(current: Path) -> None:
    size = current.stat().st_size
    assert Rotation(size=size).due(current, 0.0, 0.0)
    assert not Rotation(size=size + 1).due(current, 0.0, 0.0)
    current.with_name(f"{CURRENT}-wal").write_bytes(b"x")
    assert Rotation(size=size + 1).due(current, 0.0, 0.0)


def test_it_is_due_by_age(current: Path) -> None:
    assert not Rotation(age=60.0).due(current, 100.0, 159.0)
    assert Rotation(age=60.0).due(current, 100.0, 160.0)


def test_a_run_under_way_is_waited_for_but_not_for_ever(current: Path) -> None:
    size = current.stat().st_size
    assert not Rotation(size=size).due(current, 0.0, 0.0, under_way=True)
    assert Rotation(size=size // 2).due(current, 0.0, 0.0, under_way=True)
    assert not Rotation(age=60.0).due(current, 0.0, 119.0, under_way=True)
    assert Rotation(age=60.0).due(current, 0.0, 120.0, under_way=True)


def test_the_next_one_is_beside_it_and_new(current: Path) -> None:
    first = Rotation().next(current)
    assert first.parent == current.parent
    assert re.fullmatch(r"\d{8}T\d{6}Z\.sqlite", first.name)
    first.touch()
    second = Rotation().next(current)
    assert second not in (first, current)
    assert paths.age_key(second) is not None


# -- what goes -----------------------------------------------------------------------------------------


def test_the_oldest_go_beyond_a_number(current: Path) -> None:
    paths = old(current, "20261118T120000Z", "20261120T120000Z", "20261119T120000Z", "20261119T120000Z-10",
                "20261119T120000Z-2")  # fmt: skip
    assert Rotation(keep=6).retire(current) == []
    assert names(Rotation(keep=3).retire(current)) == ["20261118T120000Z", "20261119T120000Z", "20261119T120000Z-2"]
    assert [path.stem for path in paths if path.exists()] == ["20261120T120000Z", "20261119T120000Z-10"]
    assert names(Rotation(keep=1).retire(current)) == ["20261119T120000Z-10", "20261120T120000Z"]
    assert current.exists()


def test_the_oldest_go_beyond_a_size(current: Path) -> None:
    old(current, "20261118T120000Z", "20261119T120000Z", "20261120T120000Z")
    size = current.stat().st_size
    assert Rotation(keep_size=4 * size).retire(current) == []
    assert names(Rotation(keep_size=3 * size).retire(current)) == ["20261118T120000Z"]
    assert names(Rotation(keep_size=1).retire(current)) == ["20261119T120000Z", "20261120T120000Z"]
    assert current.exists()


def test_what_is_older_than_one_that_goes_goes_too(current: Path) -> None:
    _, large = old(current, "20261118T120000Z", "20261119T120000Z")
    with large.open("ab") as file:
        file.truncate(10**7)
    assert names(Rotation(keep_size=10**6).retire(current)) == ["20261118T120000Z", "20261119T120000Z"]


def test_the_oldest_go_at_an_age(current: Path) -> None:
    first, second = old(current, "20261118T120000Z", "20261119T120000Z")
    os.utime(first, (1e9, 1e9))
    assert Rotation(keep_age=3600.0).retire(current) == [first]
    assert second.exists()


def test_what_was_derived_from_it_goes_with_it(current: Path) -> None:
    (path,) = old(current, "20261118T120000Z")
    for ending in ("-shm", ".index", ".index.lock", ".index-journal"):
        path.with_name(path.name + ending).touch()
    assert Rotation(keep=1).retire(current) == [path]
    assert [file.name for file in current.parent.iterdir()] == [CURRENT]


def test_what_a_reader_or_a_killed_proxy_left_beside_a_capture_keeps_it_no_longer(current: Path) -> None:
    (path,) = old(current, "20261118T120000Z")
    writer = Capture.create(path)
    writer.append(Gap(1.0, "more"))
    writer.flush()
    with Capture.open(path) as reader:
        assert reader.last
        writer.abandon()
    assert paths.companion(path, "-wal").exists()
    assert Rotation(keep=1).retire(current) == [path]
    assert [file.name for file in current.parent.iterdir()] == [CURRENT]


def test_what_is_never_deleted(current: Path) -> None:
    folder = current.parent
    noted, open_one, linked_to = old(current, "20261101T120000Z", "20261102T120000Z", "mine")
    noted.with_name(f"{noted.name}.notes.json").write_text("{}")
    writer = Capture.create(open_one)
    writer.append(Gap(1.0, "more"))
    writer.flush()
    (folder / "20261103T120000Z.sqlite").symlink_to(linked_to)
    (folder / "20261104T120000Z.sqlite").write_bytes(b"SQLite format 3\0" + bytes(100))
    (folder / "20261105T120000Z.sqlite").write_text("no capture")
    (folder / "20261106T120000Z.sqlite").mkdir()
    old(current, "20261107T120000Z-x", "before-20261107T120000Z", "first-run")
    shutil.copy(current, folder / "20261107T120000Z.sqlite.bak")
    (folder / "samples").mkdir()
    save(folder / "samples" / "20261108T120000Z.sqlite", Gap(1.0, "x"))
    before = sorted(folder.rglob("*"))
    assert Rotation(keep=1, keep_size=1, keep_age=0.001).retire(current) == []
    assert sorted(folder.rglob("*")) == before
    writer.abandon()


def test_what_is_never_deleted_does_not_count(current: Path) -> None:
    old(current, "20261118T120000Z", "mine", "yours")
    assert Rotation(keep=2).retire(current) == []


def test_one_that_is_being_written_stays(current: Path) -> None:
    path = current.with_name("20261118T120000Z.sqlite")
    with Capture.create(path) as other:
        other.append(Gap(1.0, "x"))
        other.flush()
        assert Rotation(keep=1).retire(current) == []
    assert Rotation(keep=1).retire(current) == [path]


def test_what_continues_one_that_is_open_stays_too(current: Path) -> None:
    """A worker that is late goes through all of them; in one that it had to make again nobody would look."""
    unrelated, second, third = old(current, "20261111T120000Z", "20261113T120000Z", "20261114T120000Z")
    late = current.with_name("20261112T120000Z.sqlite")
    with Capture.create(late):
        assert not marked(late)  # its header is still in its log
        for one, two in pairwise((late, second, third, current)):
            with Capture.create(one) as capture:
                capture.continue_in(two)
        assert Rotation(keep=1).retire(current) == [unrelated]
    assert Rotation(keep=1).retire(current) == [late, second, third]


def test_a_folder_that_is_gone_is_no_mistake(tmp_path: Path) -> None:
    gone = tmp_path / "gone" / CURRENT
    assert Rotation(size=1, keep=1).retire(gone) == []
    assert not Rotation(size=1).due(gone, 0.0, 0.0)
    assert Rotation(free=10**18).room(gone) is None


# -- room ----------------------------------------------------------------------------------------------


def test_there_is_room_until_the_disk_is_nearly_full(current: Path) -> None:
    left = shutil.disk_usage(current.parent).free
    assert Rotation(free=0).room(current) is None
    assert Rotation(free=left // 2).room(current) is None
    why = Rotation(free=10**18).room(current)
    assert why is not None
    assert re.fullmatch(r"only [\d.]+ [kM]?B free on the disk of .* \(puppet_keep_free is .*\)", why)


# -- the options ---------------------------------------------------------------------------------------


def test_nothing_given_is_one_capture_and_some_room() -> None:
    assert rotation.of("", "", "", "") == Rotation(free=500_000_000)


def test_sizes_ages_and_numbers() -> None:
    assert rotation.of("500M", "1d", "30", "1G") == Rotation(500_000_000, 86_400.0, 30, free=10**9)
    assert rotation.of("1.5G", "12h", "30,20G, 14d", "0") == Rotation(
        1_500_000_000, 43_200.0, 30, 20_000_000_000, 1_209_600.0, free=0
    )
    assert rotation.of("4096", "90m", "2w", "10k") == Rotation(4096, 5400.0, keep_age=1_209_600.0, free=10_000)


def test_what_is_no_limit_is_reported(subtests: pytest.Subtests) -> None:
    for given, message in [
        (("much", "", "", ""), "puppet_rotate_size is 'much', which is not a size (500M)."),
        (("500m", "", "", ""), "puppet_rotate_size is '500m', which is not a size (500M)."),
        (("0", "", "", ""), "puppet_rotate_size is '0', which is not a size (500M)."),
        (("-1G", "", "", ""), "puppet_rotate_size is '-1G', which is not a size (500M)."),
        (("", "86400", "", ""), "puppet_rotate_age is '86400', which is not an age (12h, 1d)."),
        (("", "", "0", ""), "puppet_keep is '0', which is not a number, a size or an age (30, 20G, 14d)."),
        (("", "", "2.5", ""), "puppet_keep is '2.5', which is not a whole number of captures (30)."),
        (("", "", "30,", ""), "puppet_keep is '', which is not a number, a size or an age (30, 20G, 14d)."),
        (("", "", "30x", ""), "puppet_keep is '30x', which is not a number, a size or an age (30, 20G, 14d)."),
        (("", "", "", "1GB"), "puppet_keep_free is '1GB', which is not a size (1G)."),
        (("", "", "", "٣G"), "puppet_keep_free is '٣G', which is not a size (1G)."),
    ]:
        with subtests.test(given=given):
            with pytest.raises(InspectorError) as error:
                rotation.of(*given)
            assert error.value.message == message
            assert "k, M, G, T" in error.value.hint

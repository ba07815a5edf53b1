"""A directory of tables is recognised; one with captures, or where captures are recorded, is none."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from inspector.errors import InspectorError
from inspector.fleet.directory import TableDirectory
from inspector.fleet.layout import KEY, has_tables
from tests.support.places import SAMPLES
from tests.support.tables_of import converted

if TYPE_CHECKING:
    from pathlib import Path

CAPTURE = SAMPLES / "first-run.sqlite"


def test_a_new_directory_and_a_copy_without_the_key_have_tables(tmp_path: Path) -> None:
    assert has_tables(TableDirectory.create(tmp_path / "new").root)
    copy = shutil.copytree(converted(tmp_path, CAPTURE).root, tmp_path / "copy")
    (copy / KEY).unlink()
    assert has_tables(TableDirectory.open(copy).root)


def test_where_captures_are_recorded_is_none(tmp_path: Path) -> None:
    (tmp_path / "captures").mkdir()  # a table has this name
    shutil.copy(CAPTURE, tmp_path / "captures")
    for path in (tmp_path, tmp_path / "captures", tmp_path / "captures" / CAPTURE.name, tmp_path / "missing"):
        assert not has_tables(path)
        with pytest.raises(InspectorError, match=r"no tables|captures, not tables"):
            TableDirectory.open(path)
    for path in (tmp_path, tmp_path / "captures"):
        with pytest.raises(InspectorError, match="is no directory of tables"):
            TableDirectory.create(path)
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["captures", CAPTURE.name]

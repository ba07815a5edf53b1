"""Captures of earlier versions, written by the programs of that time: they are read, and continued."""

from __future__ import annotations

import dataclasses
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from inspector.capture.store import Capture
from inspector.cli.main import main
from tests.support.records import read

if TYPE_CHECKING:
    from inspector.model import Record

FOLDER = Path(__file__).with_name("versions")
VERSIONS = {1: 5, 2: 38, 3: 7}
"""The records of each; the last five are the same in 1 and 2. 3 was recorded by the first program that wrote this
version (`demo --own --fault catalog-error` of commit 113db8a0)."""


@pytest.fixture(params=VERSIONS)
def path(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of the capture of one version."""
    return Path(shutil.copy(FOLDER / f"{request.param}.sqlite", tmp_path))


def compiled(records: list[Record]) -> list[Record]:
    """The last five records, with numbers of their own: an agent whose catalog could not be compiled."""
    return [dataclasses.replace(record, seq=number) for number, record in enumerate(records[-5:], 1)]


@pytest.mark.parametrize("version", VERSIONS)
def test_it_is_read(version: int) -> None:
    path = FOLDER / f"{version}.sqlite"
    records = read(path)
    assert len(records) == VERSIONS[version]
    if version < 3:
        assert compiled(records) == read(FOLDER / "1.sqlite")


def test_its_runs_are_judged(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(path)]) == 1
    name = "web1.lab.example" if path.stem == "3" else "node1.example"
    assert f"{name} failed: S01" in capsys.readouterr().out


def test_it_is_continued(path: Path) -> None:
    before = read(path)
    with Capture.create(path) as capture:
        capture.append(before[0])
    assert read(path) == [*before, dataclasses.replace(before[0], seq=len(before) + 1)]

"""Logs are read line by line, whatever is in them."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

import pytest

from inspector.errors import InspectorError
from inspector.formats.log_files import TRIED, LogFile
from inspector.progress import unwatched

if TYPE_CHECKING:
    from pathlib import Path


def parse(line: str) -> tuple[float, None] | None:
    return (float(line), None) if line.strip().isdecimal() else None


def times(path: Path) -> tuple[list[float], LogFile]:
    log = LogFile(path, parse, "a number", "Look there.")
    return [time for time, _ in log.logged(unwatched)], log


@pytest.mark.parametrize("compressed", [False, True])
def test_lines_are_counted_and_those_in_no_pattern_too(tmp_path: Path, *, compressed: bool) -> None:
    path = tmp_path / "log"
    text = b"1\n2\nx\n" + b"y" * 2**21 + b"\n\xff\n3"
    path.write_bytes(gzip.compress(text) if compressed else text)
    found, log = times(path)
    assert found == [1, 2, 3]
    assert (log.lines, log.unknown, log.first_unknown) == (6, 3, 3)


def test_another_pattern_is_a_mistake_after_some_lines(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("x\n" * (TRIED + 100) + "1\n")
    with pytest.raises(InspectorError) as raised:
        times(path)
    assert str(raised.value) == (
        f"{path} is in no known pattern: line 1, and {TRIED - 1} more. Known is a number (and older ones, "
        "docs/times.md). Look there."
    )


def test_one_line_in_another_pattern(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.write_text("x\n")
    with pytest.raises(InspectorError, match=r"is in no known pattern: line 1\. Known"):
        times(path)


def test_an_empty_file_has_no_lines(tmp_path: Path) -> None:
    path = tmp_path / "log"
    path.touch()
    assert times(path)[0] == []


def test_what_cannot_be_read_is_a_mistake(tmp_path: Path) -> None:
    damaged = tmp_path / "log.gz"
    damaged.write_bytes(gzip.compress(b"1\n" * 10_000)[:-20])
    wrong = tmp_path / "wrong.gz"
    wrong.write_bytes(gzip.compress(b"1\n") + b"no gzip")
    for path in (damaged, wrong, tmp_path / "absent", tmp_path):
        with pytest.raises(InspectorError, match="Cannot read") as raised:
            times(path)
        assert "None" not in raised.value.message

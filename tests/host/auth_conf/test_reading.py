"""Files of either kind, and files that are none."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inspector.errors import InspectorError
from inspector.host.auth_conf import reading
from tests.support import auth_confs

if TYPE_CHECKING:
    from pathlib import Path


def read(path: Path, text: str) -> str:
    """Which kind of file it is, or why it is none."""
    path.write_text(text)
    try:
        return reading.read(path).kind
    except InspectorError as error:
        return str(error)


def test_both_kinds(tmp_path: Path) -> None:
    assert read(tmp_path / "auth.conf", auth_confs.USUAL) == "puppetserver"
    assert read(tmp_path / "auth.conf", "# old\npath /file\nallow *\n") == "ruby"


def test_a_mistake_names_the_file_the_line_and_the_master(tmp_path: Path) -> None:
    path = tmp_path / "auth.conf"
    assert read(path, "authorization: {\n x") == (
        f"{path}:2: the file ends within an object or a list. So puppetserver does not start with this file."
    )
    assert read(path, "path /file\nalow *\n") == (
        f"{path}:2: 'alow *' is no line of such a file. So the Ruby master does not start with this file."
    )


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(InspectorError, match=r"Cannot read .*: No such file"):
        reading.read(tmp_path / "none")
    with pytest.raises(InspectorError, match=r"Cannot read .*: Is a directory"):
        reading.read(tmp_path)
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(50_000_000)
    with pytest.raises(InspectorError, match="it is larger than 1048576 bytes"):
        reading.read(large)


def test_bytes_that_are_no_text_are_no_hocon(tmp_path: Path) -> None:
    path = tmp_path / "auth.conf"
    path.write_bytes(bytes(range(256)) * 10)
    with pytest.raises(InspectorError, match=rf"{path}:\d+: "):
        reading.read(path)

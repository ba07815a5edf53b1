"""SSLKEYLOGFILE: the same variables as mitmproxy, a private file, and one sentence if it cannot be written."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector.errors import InspectorError
from inspector.proxy import key_log


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in key_log.VARIABLES:
        monkeypatch.delenv(name, raising=False)


def test_nothing_is_written_unless_asked() -> None:
    assert key_log.path() is None
    assert key_log.writer() is None


def test_lines_are_appended_to_a_private_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path / "keys"))
    for line in (b"CLIENT_RANDOM 1 2", b"CLIENT_RANDOM 3 4"):
        write = key_log.writer()
        assert write
        write(line)
    assert (tmp_path / "keys").read_bytes() == b"CLIENT_RANDOM 1 2\nCLIENT_RANDOM 3 4\n"
    assert (tmp_path / "keys").stat().st_mode & 0o777 == 0o600


def test_mitmproxys_own_variable_comes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSLKEYLOGFILE", "/b")
    assert key_log.path() == Path("/b")
    monkeypatch.setenv("MITMPROXY_SSLKEYLOGFILE", "/a")
    assert key_log.path() == Path("/a")


def test_a_file_that_cannot_be_written_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSLKEYLOGFILE", str(tmp_path))
    with pytest.raises(InspectorError, match="which SSLKEYLOGFILE names: Is a directory"):
        key_log.writer()

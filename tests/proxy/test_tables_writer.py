"""Tables beside a proxy: written at its start and again and again, and never in its way."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from inspector.fleet.directory import TableDirectory
from inspector.proxy import tables_writer
from inspector.proxy.tables_writer import TablesWriter
from inspector.runs.examples import catalog, plugins, report, talk
from tests.support.captures import save
from tests.support.tables_of import asked
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def writer(tmp_path: Path) -> Callable[..., tuple[TablesWriter, list[str]]]:
    def make(interval: float = 3600.0) -> tuple[TablesWriter, list[str]]:
        lines: list[str] = []
        current = lambda: tmp_path / "captures" / "a.sqlite"  # noqa: E731
        made = TablesWriter(TableDirectory.create(tmp_path / "tables").root, current, (), lines.append, interval)
        return made, lines

    return make


def records(tmp_path: Path) -> list[tuple[int]]:
    return [row for row in asked(TableDirectory(tmp_path / "tables"), "SELECT sum(records) FROM captures") if row[0]]


@pytest.mark.slow
def test_what_is_there_is_converted_at_the_start(
    tmp_path: Path, writer: Callable[..., tuple[TablesWriter, list[str]]]
) -> None:
    save(tmp_path / "captures" / "a.sqlite", *talk(plugins(), catalog(), report()))
    save(tmp_path / "captures" / "earlier.sqlite", *talk(plugins(), after=7000))
    made, lines = writer()
    assert eventually(lambda: records(tmp_path) == [(4,)])
    made.close()
    assert lines == []


@pytest.mark.slow
def test_what_is_added_is_converted_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writer: Callable[..., tuple[TablesWriter, list[str]]]
) -> None:
    monkeypatch.setattr(tables_writer, "SHARE", 0)
    made, lines = writer(0.1)
    path = tmp_path / "captures" / "a.sqlite"
    talked = talk(plugins(), catalog(), report())
    save(path, *talked[:1])
    assert eventually(lambda: records(tmp_path) == [(1,)])
    save(path, *talked[1:])
    assert eventually(lambda: records(tmp_path) == [(3,)])
    made.close()
    assert lines == []


@pytest.mark.slow
def test_what_goes_wrong_is_said_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writer: Callable[..., tuple[TablesWriter, list[str]]]
) -> None:
    monkeypatch.setattr(tables_writer, "SHARE", 0)
    (tmp_path / "captures").mkdir()
    (tmp_path / "captures" / "a.sqlite").write_text("no capture")
    made, lines = writer(0.05)
    assert eventually(lambda: bool(lines))
    time.sleep(0.5)
    made.close()
    assert len(lines) == 1
    assert "could not be written" in lines[0]
    assert "is not a capture" in lines[0]


@pytest.mark.slow
def test_the_end_of_the_proxy_does_not_wait(
    tmp_path: Path, writer: Callable[..., tuple[TablesWriter, list[str]]]
) -> None:
    save(tmp_path / "captures" / "a.sqlite", *talk(plugins(), catalog(), report()))
    made, _ = writer()
    assert eventually(lambda: made._process is not None)
    process = made._process
    made.close()
    assert process is not None
    assert process.returncode is not None
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)
    assert not Path(f"/proc/{process.pid}").exists()

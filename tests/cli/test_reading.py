"""A capture that cannot be read does not hide the others."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from inspector.cli.reading import Unreadable
from inspector.errors import CaptureError
from tests.support import places

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Run

SAMPLE = places.SAMPLES / "mismatched-key.sqlite"


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:9000])


def no_capture(path: Path) -> None:
    path.write_text("no capture " * 100)


def record_lost(path: Path) -> None:
    with closing(sqlite3.connect(path)) as db:
        db.execute("UPDATE record SET data = 'x' WHERE seq = 2")
        db.commit()


def page_lost(path: Path) -> None:
    """The page on which the records are."""
    with closing(sqlite3.connect(path)) as db:
        (page,) = db.execute("SELECT rootpage FROM sqlite_master WHERE name = 'record'").fetchone()
        (size,) = db.execute("PRAGMA page_size").fetchone()
    with path.open("r+b") as file:
        file.seek((page - 1) * size)
        file.write(bytes(size))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("bad", "good"):
        shutil.copy(SAMPLE, tmp_path / f"{name}.sqlite")
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("damage", [cut, no_capture, record_lost, page_lost])
@pytest.mark.parametrize("command", ["runs", "check", "list"])
def test_the_others_are_read(run: Run, folder: Path, command: str, damage: Callable[[Path], None]) -> None:
    _, whole, _ = run(command, folder / "good.sqlite")
    damage(folder / "bad.sqlite")
    for words in ([folder], [folder / "bad.sqlite", folder / "good.sqlite"]):
        status, out, err = run(command, *words)
        (line,) = err.splitlines()
        assert line.startswith("puppet-inspector: ")
        assert f"{folder}/bad.sqlite" in line
        assert status == 2
        assert "bad.sqlite run" not in out
        found = [text for text in out.splitlines() if text.startswith("good.sqlite ")]
        assert found
        if command == "list":
            assert found == [f"good.sqlite {line}" for line in whole.splitlines()]
        document = json.loads(run(command, *words, "--json")[1])
        rows = document["findings"] if command == "check" else document
        assert {row["capture"] for row in rows} == {str(folder / "good.sqlite")}


@pytest.mark.parametrize("command", ["runs", "check", "list"])
def test_where_none_can_be_read_nothing_is_claimed(run: Run, folder: Path, command: str) -> None:
    for path in folder.iterdir():
        cut(path)
    status, out, err = run(command, folder)
    assert (status, out, err.count("\n")) == (2, "", 2)


def test_one_alone_is_a_mistake_with_a_hint(run: Run, folder: Path) -> None:
    cut(folder / "bad.sqlite")
    status, out, err = run("runs", folder / "bad.sqlite")
    assert (status, out, err.count("\n")) == (2, "", 2)
    with pytest.raises(CaptureError):
        Unreadable([folder / "bad.sqlite"]).report(CaptureError("x"))


def test_a_mistake_in_a_filter_is_no_damage(run: Run, folder: Path) -> None:
    for command in ("runs", "list"):
        status, out, err = run(command, folder, "--filter", "nokey:1")
        assert (status, out, err.count("\n")) == (2, "", 2)


def test_a_line_quotes_no_captured_byte_raw(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    Unreadable([tmp_path, tmp_path]).report(CaptureError("\x1b[2J" + "x" * 2000))
    _, err = capsys.readouterr()
    assert err.startswith("puppet-inspector: \\x1b[2J")
    assert len(err) < 500


BOTH = (places.SAMPLES / "first-run.sqlite", places.SAMPLES / "revoked.sqlite")


@pytest.mark.parametrize(
    "words",
    [
        ("why", *BOTH, "File[/none]"),
        ("report", *BOTH, "--agent", "nobody", "--json"),
        ("bootstrap", *BOTH, "--agent", "nobody"),
    ],
)
def test_a_mistake_about_several_names_those_that_were_given(run: Run, words: tuple[object, ...]) -> None:
    status, out, err = run(*words)
    assert (status, out) == (2, "")
    assert "puppet-inspector-" not in err  # a temporary directory
    assert f"{BOTH[0]} {BOTH[1]}" in err


@pytest.mark.parametrize("words", [("why", *BOTH, "File[/none]"), ("report", *BOTH, "--json")])
def test_the_number_of_a_run_is_of_one_capture(run: Run, words: tuple[object, ...]) -> None:
    """Of several it would be a number that `runs` prints of none of them."""
    status, out, err = run(*words, "--run", "1")
    assert (status, out) == (2, "")
    assert err == (
        "puppet-inspector: 2 captures may each have a run 1.\n"
        f"  Name the one that is meant: `puppet-inspector runs {BOTH[0]} {BOTH[1]}` lists them.\n"
    )


def test_what_was_on_the_wire_is_beside_one_capture(run: Run, tmp_path: Path) -> None:
    status, _, err = run("export", *BOTH, "--wire", "-o", tmp_path / "x.pcapng")
    assert (status, err) == (
        2,
        "puppet-inspector: What was on the wire is a file beside each capture.\n  Name one capture.\n",
    )

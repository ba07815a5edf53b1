"""A capture that cannot be read does not hide the others."""

from __future__ import annotations

import json
import shutil
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from inspector.capture.places import PLACE
from inspector.cli.reading import Unreadable
from inspector.errors import CaptureError
from inspector.runs.examples import answered_by, catalog, plugins, report, talk
from tests.support import places
from tests.support.apart import CA, ONE, TWO, apart
from tests.support.captures import recording, save
from tests.support.records import read, unnumbered

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


@pytest.mark.slow
def test_captures_of_several_places_are_read_as_one(run: Run, tmp_path: Path) -> None:
    apart(tmp_path, -420.0)
    for command in ("runs", "check", "doctor"):
        status, out, err = run(command, tmp_path, "--json")
        assert status == 0
        assert "puppet-inspector: 3 captures are read as one" in err
        assert f"{TWO}: its clock was " in err
        assert "/puppet-inspector-" not in out, "what was read instead"
        if command == "runs":
            (found,) = json.loads(out)
            assert (found["capture"], found["outcome"], found["run"]) == (str(tmp_path), "complete", 1)
            (server,) = found["servers"]
            assert server["places"] == [CA, ONE, TWO]
    status, out, _ = run("runs", tmp_path)
    assert status == 0
    assert "was answered by" not in out, "by one server"
    assert run("sql", tmp_path, "SELECT outcome FROM runs")[:2] == (0, "outcome\ncomplete\n")
    status, out, _ = run(
        "captures", "merge", *sorted(tmp_path.glob("*.sqlite")), "-o", tmp_path / "all.sqlite", "--json"
    )
    merged = json.loads(out)
    assert (status, merged["records"], merged["joined"], len(merged["places"])) == (0, 22, 0, 3)


@pytest.mark.parametrize(("ahead", "state"), [(0.0, "open"), (-420.0, "cut off")])
def test_a_run_that_is_under_way_at_one_of_several_places_is_not_over(
    run: Run, tmp_path: Path, ahead: float, state: str
) -> None:
    """Where the clock is wrong of the place at which it goes on, what is under way there now is not known."""
    apart(tmp_path, ahead)
    records = unnumbered(read(tmp_path / "two.sqlite"))[:-1]  # without the report
    (tmp_path / "two.sqlite").unlink()
    merged = tmp_path / "merged" / "all.sqlite"
    with recording(tmp_path / "two.sqlite", *records, legs=(records[-1].legs[0].id,)) as capture:
        capture.set_meta([(PLACE, TWO)])
        (found,) = json.loads(run("runs", tmp_path, "--json")[1])
        assert (found["state"], found["certname"]) == (state, "node1.example")
        assert run("captures", "merge", *sorted(tmp_path.glob("*.sqlite")), "-o", merged)[0] == 0
    (found,) = json.loads(run("runs", merged, "--json")[1])
    assert found["state"] == "cut off"


@pytest.mark.slow
def test_captures_of_several_places_of_which_one_is_damaged_are_read_one_by_one(run: Run, tmp_path: Path) -> None:
    paths = apart(tmp_path, 0.0)
    record_lost(paths[0])
    status, out, err = run("runs", tmp_path)
    first, second = err.splitlines()
    assert first.startswith("puppet-inspector: the captures are read one by one, not as one: ")
    assert f"{paths[0]}" in second
    assert status == 2
    assert "two" in out


@pytest.mark.slow
def test_the_servers_of_a_run_are_printed_where_several_answered(run: Run, tmp_path: Path) -> None:
    parts = [part for number in range(2) for part in answered_by(f"c{number}.example", plugins(), catalog(), report())]
    capture = save(tmp_path / "a.sqlite", *talk(*answered_by("c0.example", plugins()), *parts[4:]))
    _, out, _ = run("runs", capture)
    lines = out.splitlines()
    first = lines.index("run 1 was answered by 2 servers:")
    assert lines[first + 1].startswith("  c0.example: plugins (1); 7.23.0; production; certificate ")
    assert lines[first + 2].startswith("  c1.example: catalog, report (2); 7.23.0; production; ")
    runs = [part for number in range(5) for part in (*answered_by("c0.example", plugins()),
            *answered_by("c1.example", catalog(uuid=f"{number}"), report(uuid=f"{number}")))]  # fmt: skip
    _, out, _ = run("runs", save(tmp_path / "b.sqlite", *talk(*runs)))
    assert out.count(" was answered by 2 servers:") == 3
    assert "and 2 more runs: --filter run:N shows which servers answered one" in out

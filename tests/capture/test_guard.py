"""Captures that somebody else made: one sentence or what can be read, never a traceback, never a control character."""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING
from unittest.mock import Mock

import pytest

from inspector.capture.store import Capture
from inspector.cli.main import main
from inspector.errors import CaptureError
from inspector.runs.examples import ca, catalog, report, talk
from inspector.summaries import index
from tests.support.captures import save
from tests.support.hostile import harmless

if TYPE_CHECKING:
    from pathlib import Path

ESCAPE = "\x1b]0;owned\x07"
NOT_UTF8 = f"CAST(x'{ESCAPE.encode().hex()}ff' AS TEXT)"
DEEP = json.dumps('{"record":' + '{"a":' * 5000 + "1" + "}" * 5000 + "}")
FOREIGN = {
    "an endless view": "ALTER TABLE record RENAME TO r; CREATE VIEW record AS WITH RECURSIVE n(i) AS (SELECT 1 UNION "
    "ALL SELECT i + 1 FROM n) SELECT i AS seq, 'gap' AS kind, 0 AS time, '{}' AS data FROM n",
    "a trigger": "CREATE TRIGGER t AFTER INSERT ON record BEGIN DELETE FROM record; END",
    "a table of its own": "CREATE TABLE other (x)",
    "a computed column": "ALTER TABLE record ADD COLUMN x GENERATED ALWAYS AS (1) VIRTUAL",
    "an index of its own": "CREATE INDEX i ON record (time)",
    "many tables": ";".join(f"CREATE TABLE t{number} (x)" for number in range(1000)),
    "a hostile name": f'CREATE TABLE "{ESCAPE}" (x)',
}
DAMAGED = {
    "a record that is not UTF-8": f"UPDATE record SET data = {NOT_UTF8} WHERE seq = 2",
    "a kind that is not UTF-8": f"UPDATE record SET kind = {NOT_UTF8} WHERE seq = 2",
    "a connection that is not UTF-8": f"UPDATE connection SET leg = {NOT_UTF8}",
    "metadata that is not UTF-8": f"UPDATE meta SET value = {NOT_UTF8}",
    "another capture outside": "INSERT INTO meta VALUES ('continued_in', '../../etc/passwd')",
    "a NUL in a name": "INSERT INTO meta VALUES ('continued_in', 'a' || char(0) || 'b')",
    "a number instead of a name": "INSERT INTO meta VALUES ('continued_in', x'00ff')",
    "a record that is a number": "UPDATE record SET data = 7 WHERE seq = 2",
    "a deep record": f"UPDATE record SET data = {DEEP.replace(chr(34), chr(39), 1)[:-1]}' WHERE seq = 2",
    "a time that is a text": "UPDATE record SET time = 'x'",
    "a huge number": "UPDATE record SET seq = 9223372036854775807 WHERE seq = 3",
    "a negative number": "UPDATE record SET seq = -5 WHERE seq = 2",
    "a forged present": "INSERT INTO present VALUES (7, 9e999, 0, x'28b52ffd2000')",
    "no bodies": "DELETE FROM blob",
    "a body that claims to be huge": "UPDATE blob SET size = 9223372036854775807",
    "a body that claims to be negative": "UPDATE blob SET size = -1",
    "a negative size of a body without one": "UPDATE blob SET size = -1, data = X'28B52FFD000045000010787801003F012C'",
    "no rows in the dictionary but a frame": "UPDATE record SET data = x'28b52ffd2000' WHERE seq = 2",
}
COMMANDS = {
    "runs": ["runs", "{}"],
    "list": ["list", "{}"],
    "check": ["check", "{}"],
    "show": ["show", "{}", "2"],
    "doctor": ["doctor", "{}"],
    "bootstrap": ["bootstrap", "{}"],
    "export": ["export", "{}", "-o", "{}.jsonl"],
    "share": ["share", "{}", "-o", "{}.shared.sqlite"],
    "reduce": ["reduce", "{}", "-o", "{}.reduced.sqlite"],
    "merge": ["captures", "merge", "{}", "{}.other.sqlite", "-o", "{}.merged.sqlite"],
    "vacuum": ["captures", "vacuum", "{}"],
    "captures": ["captures", "{parent}"],
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A capture, and another one beside it."""
    save(tmp_path / "c.sqlite.other.sqlite", *talk(catalog()))
    return save(tmp_path / "c.sqlite", *talk(ca(), catalog(), report()))


def change(path: Path, statements: str) -> None:
    """Change a capture as a stranger does."""
    with closing(sqlite3.connect(path)) as db:
        db.executescript(statements)


@pytest.mark.parametrize("name", FOREIGN)
def test_only_our_tables_are_read_and_written(name: str, path: Path) -> None:
    change(path, FOREIGN[name])
    before = path.read_bytes()
    for opening in (Capture.open, Capture.create):
        with pytest.raises(CaptureError, match="which no capture does") as raised:
            opening(path)
        assert harmless(raised.value.message)
    assert path.read_bytes() == before


def test_a_column_whose_name_is_not_utf8_is_refused(path: Path) -> None:
    data = path.read_bytes()
    assert data.count(b"closed_by TEXT") == 1
    path.write_bytes(data.replace(b"closed_by TEXT", b"closed_b\xba TEXT"))
    with pytest.raises(CaptureError, match="which no capture does"):
        Capture.open(path)


def test_a_trigger_that_is_added_later_does_not_run(path: Path) -> None:
    with Capture.create(path) as capture:
        change(path, FOREIGN["a trigger"])
        capture.append(talk(report())[0])
    with closing(sqlite3.connect(path)) as db:
        assert db.execute("SELECT count(*) FROM record").fetchone() == (4,)


@pytest.mark.slow
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", [*FOREIGN, *DAMAGED])
def test_every_command_gives_one_sentence_or_what_can_be_read(
    name: str, command: str, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change(path, (FOREIGN | DAMAGED)[name])
    arguments = [part.format(path, parent=path.parent) for part in COMMANDS[command]]
    status = main(arguments)
    output = capsys.readouterr()
    assert status in (0, 1, 2)
    for line in (output.out + output.err).splitlines():
        assert harmless(line.replace("\t", "")), line
    assert "Traceback" not in output.err
    if status == 2:
        assert output.err.startswith("puppet-inspector: ")


@pytest.mark.parametrize("statements", [FOREIGN["a trigger"].replace("record", "run"), "CREATE VIEW v AS SELECT 1"])
def test_an_index_with_foreign_parts_is_none(statements: str, tmp_path: Path) -> None:
    path = tmp_path / "c.index"
    change(path, f"{index.SCHEMA} INSERT INTO meta VALUES ('maker', '{index.maker()}')")
    found = index.Index.open(path)
    assert found is not None
    found.close()
    change(path, statements)
    assert index.Index.open(path) is None


@pytest.mark.parametrize("end", ["", "-wal", "-shm", "-journal"])
def test_a_pipe_is_not_waited_for(end: str, path: Path) -> None:
    beside = path.with_name(f"{path.name}{end}")
    beside.unlink(missing_ok=True)
    os.mkfifo(beside)
    for opening in (Capture.open, Capture.create):
        with pytest.raises(CaptureError, match=r"is not a regular file|There is no capture"):
            opening(path)
    found = path.with_name(f"{path.name}.index")
    found.with_name(f"{found.name}{end}").unlink(missing_ok=True)
    os.mkfifo(found.with_name(f"{found.name}{end}"))
    assert index.Index.open(found) is None


@pytest.mark.parametrize("kind", ["TEXT", "BLOB", "REAL"])
def test_record_numbers_of_another_type_are_damage(kind: str, path: Path) -> None:
    change(
        path,
        f"ALTER TABLE record RENAME TO r; CREATE TABLE record (seq {kind} PRIMARY KEY, kind, time, data);"
        "INSERT INTO record SELECT seq || '.5', kind, time, data FROM r; DROP TABLE r",
    )
    with pytest.raises(CaptureError, match="damaged"):
        Capture.open(path)


OUT_OF_RANGE = {
    "zero": "UPDATE record SET seq = 0 WHERE seq = 1",
    "below zero": "UPDATE record SET seq = seq - 100",
    "above all": "UPDATE record SET seq = 9223372036854775807 WHERE seq = 3",
    "none": (
        "ALTER TABLE record RENAME TO r; CREATE TABLE record (seq INT PRIMARY KEY, kind, time, data);"
        "INSERT INTO record SELECT NULL, kind, time, data FROM r; DROP TABLE r"
    ),
}


@pytest.mark.parametrize("name", OUT_OF_RANGE)
def test_records_that_no_number_finds_are_damage_not_none(
    name: str, path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    change(path, OUT_OF_RANGE[name])
    for command in ("check", "runs", "list", "doctor"):
        assert main([command, str(path)]) == 2
        output = capsys.readouterr()
        assert output.out == ""
        assert "is damaged: it has records whose numbers are out of range" in output.err
    with pytest.raises(CaptureError, match="out of range"):
        Capture.create(path)


@pytest.mark.parametrize("value", ["7", "'x'", "x'00'", "x'92c0c0'", "x'28b52ffd00'"])
def test_an_index_with_values_of_other_types_cannot_be_read(value: str, tmp_path: Path) -> None:
    path = tmp_path / "c.index"
    change(path, f"{index.SCHEMA} INSERT INTO meta VALUES ('maker', '{index.maker()}'), ('last', x'00')")
    change(path, f"INSERT INTO run VALUES (1, 1, NULL, {value})")
    found = index.Index.open(path)
    assert found is not None
    with closing(found), pytest.raises(CaptureError, match="cannot be read"):
        found.runs()


def test_records_that_a_damaged_tree_returns_again_are_not_read_for_ever(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Capture.open(path) as capture:
        first = capture._db.execute("SELECT seq, kind, data FROM record WHERE seq = 1").fetchall()
        monkeypatch.setattr(capture, "_db", Mock(**{
            "execute.return_value.fetchall.return_value": first, "execute.return_value.fetchone.return_value": (1,),
        }))  # fmt: skip
        monkeypatch.setattr(capture, "_unpack", lambda seq, *_: seq)
        with pytest.raises(CaptureError, match="not in order"):
            list(capture.records())
        assert capture.following(1) is None
        monkeypatch.undo()

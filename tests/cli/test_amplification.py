"""A small capture whose records name large bodies again and again costs what its size allows, with every command."""

from __future__ import annotations

import dataclasses
import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
import zstandard

from inspector.capture import bodies
from inspector.capture.bodies import Bodies, Share
from inspector.capture.store import Capture
from inspector.model import Exchange
from inspector.runs.examples import catalog, node, plugins, report, talk
from tests.support.captures import save

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run

SIZE = 2_000_000
"""Bytes of each large body."""
LIMIT = 5 * SIZE
TIMES = 60
"""How often the run is repeated."""
COMMANDS = (
    "check {capture}", "runs {capture}", "list {capture}", "report {capture} -o {new}", "share {capture} -o {new}",
    "reduce {capture} -o {new}",
    "export {capture} --format jsonl -o {new}", "export {capture} --format har -o {new}",
    "export {capture} --format otlp -o {new}", "tables {capture} -o {new}", "sql {capture} --query endpoints",
    "diff {capture}:1 {capture}:60", "captures {folder}", "doctor {capture}", "certificates {capture}",
    "readiness {capture}", "why {capture} File[/a]", "bootstrap {capture}", "show {capture} 230",
)  # fmt: skip


def bomb(path: Path, size: int = SIZE, times: int = TIMES) -> Path:
    """A capture of some kilobytes: two bodies, named by many records."""
    run = []
    for number, record in enumerate(talk(node(), plugins(), catalog(), report())):
        assert isinstance(record, Exchange)
        assert record.response is not None
        body = b'{"name":"%d","classes":["' % (number % 2) + b"a" * size + b'"]}'
        run.append(dataclasses.replace(record, response=dataclasses.replace(record.response, body=body)))
    save(path, *run)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        for time in range(1, times):
            db.execute(
                "INSERT INTO record SELECT seq + ?, kind, time + ?, data FROM record WHERE seq <= ?",
                (time * len(run), time * 1800, len(run)),
            )
    assert path.stat().st_size < SIZE
    return path


@pytest.fixture
def unpacked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the large bodies that are unpacked, within the limit of a small file."""
    monkeypatch.setattr(bodies, "UNPACKED", LIMIT)
    monkeypatch.setattr(bodies, "RATIO", 1)
    sizes: list[int] = []
    read = Bodies.read

    def counting(self: Bodies, digest: str | None) -> bytes:
        body = read(self, digest)
        if len(body) >= SIZE:
            sizes.append(len(body))
        return body

    monkeypatch.setattr(Bodies, "read", counting)
    return sizes


@pytest.mark.parametrize("words", COMMANDS, ids=[words.replace(" {capture}", "") for words in COMMANDS])
def test_no_command_unpacks_more_than_the_share(run: Run, tmp_path: Path, unpacked: list[int], words: str) -> None:
    capture = bomb(tmp_path / "bomb.sqlite")
    status, out, err = run(*words.format(capture=capture, new=tmp_path / "new", folder=tmp_path).split())
    # There is no such resource, and no catalog that could be compared.
    expected = {2} if words.startswith(("why", "diff")) else {0, 1}
    assert status in expected, err
    assert "--help" not in err, "a mistake on the command line reads nothing"
    assert sum(unpacked) <= 4 * LIMIT, (len(unpacked), out[-200:], err[-200:])  # some read a capture again
    if words.startswith("check"):
        assert "bytes were not unpacked: what was read of this capture before has many times its size" in out + err
        assert unpacked


def test_a_body_beyond_the_share_is_missing_and_its_record_says_so(tmp_path: Path, unpacked: list[int]) -> None:
    with Capture.open(bomb(tmp_path / "bomb.sqlite")) as capture:
        records = [record for record in capture.records() if isinstance(record, Exchange)]
    assert len(records) == 4 * TIMES
    whole, cut = records[0], records[-1]
    assert whole.response is not None
    assert cut.response is not None
    assert (whole.unread, whole.response.lost, len(whole.response.body)) == ("", 0, SIZE + 27)
    assert cut.unread.startswith("2,000,0")
    assert (cut.response.body, cut.response.lost, len(cut.response.digest)) == (b"", SIZE + 27, 64)
    assert sum(unpacked) <= LIMIT + (tmp_path / "bomb.sqlite").stat().st_size


def test_who_copies_a_capture_gets_all_of_it(run: Run, tmp_path: Path, unpacked: list[int]) -> None:
    capture = bomb(tmp_path / "bomb.sqlite", times=4)

    other = save(tmp_path / "other.sqlite", *talk(catalog(), report(), certname="b.example"))
    assert run("merge", capture, other, "-o", tmp_path / "new.sqlite")[0] == 0
    assert len(unpacked) == 16 + 1  # the first one identifies the capture
    with Capture.open(tmp_path / "new.sqlite", whole=True) as made:
        assert sum(len(one.response.body) >= SIZE for one in made.records()
                   if isinstance(one, Exchange) and one.response) == 16  # fmt: skip


def test_the_json_of_records_counts_too(tmp_path: Path, unpacked: list[int]) -> None:
    """It is packed as well: some kilobytes may become megabytes."""
    path = bomb(tmp_path / "bomb.sqlite", size=10)
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        (text,) = db.execute("SELECT data FROM record WHERE seq = 2").fetchone()
        db.execute("INSERT INTO dictionary VALUES (?)", (zstandard.compress(b"x" * 100),))
        packer = zstandard.ZstdCompressor(dict_data=bodies._dictionary(b"x" * 100))
        large = packer.compress(text.replace('"GET"', '"GET' + "T" * SIZE + '"').encode())
        db.execute("UPDATE record SET data = ?", (large,))
    read: list[str] = []
    with Capture.open(path) as capture:
        assert len([*capture.readable(0, lambda reason, _: read.append(reason))]) == 5
    assert "bytes were not unpacked" in read[0]
    assert unpacked == []


def test_a_body_is_not_larger_than_its_record_says(tmp_path: Path) -> None:
    path = bomb(tmp_path / "bomb.sqlite")
    with closing(sqlite3.connect(path, isolation_level=None)) as db:
        db.execute("UPDATE blob SET size = 10 WHERE size >= ?", (SIZE,))
    read: list[str] = []
    with Capture.open(path) as capture:
        assert [*capture.readable(0, lambda reason, _: read.append(reason))] == []
    assert "a body has another size than its record" in read[0]


def test_holes_in_a_file_do_not_count(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with path.open("wb") as file:
        file.truncate(2**40)
    share = Share(path)
    share.take(bodies.UNPACKED)
    share.take(bodies.SMALL)
    with pytest.raises(bodies.Unread):
        share.take(bodies.SMALL + 1)

"""The copies of bodies that pass."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from inspector.proxy import bodies
from inspector.proxy.bodies import Body, Copies

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_a_small_body_is_in_memory(tmp_path: Path) -> None:
    copies = Copies(tmp_path, 2**20)
    body = Body(copies)
    body.add(b"abc")
    body.add(b"def")
    assert copies.size == 6
    assert body.finish() == (b"abcdef", None, 0, "")
    assert copies.size == 0


def test_a_large_body_goes_to_the_disk_whole(tmp_path: Path) -> None:
    copies = Copies(tmp_path, 2**20)
    body = Body(copies)
    pieces = [bytes([number]) * 10_000 for number in range(20)]
    for piece in pieces:
        body.add(piece)
    copy = body.finish()
    assert copy.data == b""
    assert copy.spool
    assert b"".join(copy.spool.chunks()) == b"".join(pieces)
    assert copies.size == 0
    copy.spool.close()


def test_of_a_body_that_is_too_large_there_are_head_size_and_digest(tmp_path: Path) -> None:
    body = Body(Copies(tmp_path, 100_000))
    data = bytes(range(256)) * 1000
    for at in range(0, len(data), 1000):
        body.add(data[at : at + 1000])
    copy = body.finish()
    assert copy.spool is None
    assert copy.data == data[: 2**16]
    assert copy.lost == len(data) - 2**16
    assert copy.digest == hashlib.sha256(data).hexdigest()


def test_a_body_of_which_nothing_is_lost_has_no_digest(tmp_path: Path) -> None:
    body = Body(Copies(tmp_path, 100))
    body.add(bytes(200))
    assert body.finish() == (bytes(200), None, 0, "")


def test_all_bodies_together_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bodies, "KEEP_ALL", 150_000)
    copies = Copies(tmp_path, 2**20)
    first, second = Body(copies), Body(copies)
    first.add(bytes(100_000))
    second.add(bytes(100_000))
    assert second.finish().lost == 100_000 - 2**16
    copy = first.finish()
    assert (copy.lost, copies.size) == (0, 0)
    assert copy.spool
    copy.spool.close()


def test_who_sends_most_takes_no_other_the_place_of_its_body(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One enrolled agent whose bodies never end, and one whose master sends more than is stored of any body."""
    monkeypatch.setattr(bodies, "KEEP_ALL", 1_000_000)
    copies = Copies(tmp_path, 300_000)
    endless = [Body(copies, "greedy.example") for _ in range(20)]
    for body in endless:
        body.add(bytes(90_000))
    large = Body(copies, "large.example")
    for _ in range(100):
        large.add(bytes(100_000))
    for number in range(5):
        body = Body(copies, f"agent{number}.example")
        for _ in range(3):
            body.add(bytes(90_000))
        copy = body.finish()
        assert (copy.lost, copy.spool is None) == (0, False)
        assert copy.spool
        copy.spool.close()
    finished = [body.finish() for body in endless]
    assert [copy.lost for copy in finished] == 8 * [0] + 12 * [90_000 - 2**16], "the oldest stay"
    for copy in finished:
        if copy.spool:
            copy.spool.close()
    large.close()
    assert copies.size == 0
    assert copies._sizes == {}
    assert copies._large == {}


def test_a_body_that_is_not_recorded_is_forgotten(tmp_path: Path) -> None:
    copies = Copies(tmp_path, 2**20)
    body = Body(copies)
    body.add(bytes(100_000))
    spool = body._spool
    assert spool
    body.close()
    body.close()
    assert copies.size == 0
    assert spool._file is None, "nothing stays on the disk"

"""Blocks of a pcapng file: what was written is read again, and damage ends the file."""

from __future__ import annotations

import io

import pytest

from inspector.formats import pcapng

FILE = (
    pcapng.section("a comment")
    + pcapng.interface("agents")
    + pcapng.secrets(b"CLIENT_RANDOM 00 11\n", "connection a")
    + pcapng.packet(0, 2**40 + 7, b"abcde", 3, "connection \x1b[2J a")
    + pcapng.packet(0, 9, b"", 0)
)


def read(data: bytes) -> list[pcapng.Block]:
    return list(pcapng.blocks(io.BytesIO(data)))


def test_what_was_written_is_read() -> None:
    section, interface, secrets, packet, empty = read(FILE)
    assert [block.kind for block in (section, interface)] == [pcapng.SECTION, pcapng.INTERFACE]
    assert (secrets.data, secrets.comment) == (b"CLIENT_RANDOM 00 11\n", "connection a")
    assert (packet.time, packet.data, packet.comment) == (2**40 + 7, b"abcde", "connection \\x1b[2J a")
    assert (empty.data, empty.comment) == (b"", "")
    assert b"".join(block.whole() for block in read(FILE)) == FILE


def test_a_comment_that_is_cut_is_utf_8() -> None:
    found = pcapng._text(1, "a" + "\u00e9" * 40_000)
    found[4 : 4 + int.from_bytes(found[2:4], "little")].decode()


def test_a_file_that_was_cut_off_has_what_is_whole() -> None:
    whole = read(FILE)
    for size in range(len(FILE)):
        found = read(FILE[:size])
        assert found == whole[: len(found)]
        assert len(found) < len(whole)


@pytest.mark.parametrize("size", [0, 4, 11, 13, 2**31, 2**32 - 4])
def test_a_size_that_is_none_ends_the_file(size: int) -> None:
    damaged = FILE + b"\x06\0\0\0" + size.to_bytes(4, "little") + bytes(64)
    assert read(damaged) == read(FILE)


def test_sizes_within_a_block_lead_to_nothing_outside() -> None:
    for at in range(12, len(FILE) - 4):
        for block in read(FILE[:at] + b"\xff" + FILE[at + 1 :]):
            assert len(block.data if block.kind in (pcapng.PACKET, pcapng.SECRETS) else b"") < len(FILE)
            assert len(block.comment if block.kind in (pcapng.PACKET, pcapng.SECRETS) else "") < len(FILE)

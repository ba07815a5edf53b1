"""TCP that is made up: sequence numbers and checksums add up, and times do not run backwards."""

from __future__ import annotations

import struct
from array import array

import pytest

from inspector.formats.packets import MISSING, SEGMENT, Packet, Peer, Stream

FOUR = (Peer("192.0.2.1", 40000), Peer("192.0.2.9", 8140))
SIX = (Peer("2001:db8::1%eth0", 40000), Peer("192.0.2.9", 8140))
UNKNOWN = (Peer("no address", None), Peer(None, 99_999))


def conversation(client: Peer, server: Peer) -> list[Packet]:
    stream = Stream("x", client, server)
    return [
        *stream.open(1, 2, "begin"), *stream.send(0, 5, 9, b"q" * (SEGMENT + 1)), *stream.send(1, 4, 3, b"a", 7),
        stream.note(1, 0, "why"), *stream.close(0, 10), *stream.close(0, 11), *stream.close(1, 12),
    ]  # fmt: skip


def folded(data: bytes) -> int:
    total = sum(array("H", data + bytes(len(data) % 2)))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


@pytest.mark.parametrize("peers", [FOUR, SIX, UNKNOWN], ids=["IPv4", "IPv6", "unknown"])
def test_it_adds_up(peers: tuple[Peer, Peer]) -> None:
    packets = conversation(*peers)
    assert [packet.time for packet in packets] == sorted(packet.time for packet in packets)
    following: dict[int, int] = {}
    for packet in packets:
        six = packet.data[0] >> 4 == 6
        head = 40 if six else 20
        tcp = packet.data[head:]
        source, _, sequence, _, _, flags = struct.unpack_from("!HHIIBB", tcp)
        length = len(tcp) - 20 + packet.missing
        if six:
            assert struct.unpack_from("!H", packet.data, 4)[0] == 20 + length
            pseudo = packet.data[8:40] + struct.pack("!IxxxB", 20 + length, 6)
        else:
            assert struct.unpack_from("!H", packet.data, 2)[0] == 40 + length
            assert folded(packet.data[:20]) == 0xFFFF
            pseudo = packet.data[12:20] + struct.pack("!xBH", 6, 20 + length)
        if not packet.missing:
            assert folded(pseudo + tcp) == 0xFFFF
        assert following.get(source, sequence) == sequence
        following[source] = (sequence + length + bool(flags & 3)) & 0xFFFFFFFF
    assert len(following) == 2
    assert [packet.comment for packet in packets if packet.comment] == ["begin", "why"]


def test_a_packet_fits_into_ip() -> None:
    assert all(len(packet.data) + packet.missing < 2**16 for packet in conversation(*SIX))


def test_what_is_missing_is_bounded() -> None:
    packets = list(Stream("x", *FOUR).send(1, 1, 2, b"", 2**60))
    assert len(packets) == MISSING + 2
    assert sum(len(packet.data) for packet in packets) < 100_000


def test_ports_that_are_not_known_differ() -> None:
    streams = (Stream(str(at), Peer(None, None), Peer(None, None)) for at in range(20))
    assert len({next(stream.open(1, 1)).data[20:22] for stream in streams}) > 10

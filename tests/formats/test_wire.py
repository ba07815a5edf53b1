"""Files of the wire beside a capture: chosen connections of all of them become one file, and damage costs the rest."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inspector.errors import InspectorError
from inspector.formats import pcapng, wire
from inspector.formats.packets import Peer, Stream

if TYPE_CHECKING:
    from pathlib import Path


def recorded(ident: str, port: int, at: int) -> bytes:
    """A connection as the proxy records it: beginning, secret, data, end."""
    stream = Stream(ident, Peer("192.0.2.1", port), Peer("::1" if port % 2 else "192.0.2.9", 8140))
    comment = f"{wire.CONNECTION}{ident}"
    packets = [*stream.open(at, at, comment), *stream.send(0, at + 1, at + 1, ident.encode()), *stream.close(0, at + 2)]
    blocks = [pcapng.packet(0, *packet) for packet in packets]
    return b"".join([*blocks[:3], pcapng.secrets(f"CLIENT_RANDOM {ident} 00\n".encode(), comment), *blocks[3:]])


BEGIN = pcapng.section("x") + pcapng.interface("agents") + pcapng.interface("masters")


def read(path: Path) -> tuple[bytes, list[pcapng.Block]]:
    """The secrets and the packets of a file."""
    with path.open("rb") as file:
        blocks = list(pcapng.blocks(file))
    secrets = [block for block in blocks if block.kind == pcapng.SECRETS]
    assert len(secrets) <= 1
    if secrets:
        assert blocks.index(secrets[0]) < min(blocks.index(b) for b in blocks if b.kind == pcapng.PACKET)
    return b"".join(block.data for block in secrets), [block for block in blocks if block.kind == pcapng.PACKET]


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    path = tmp_path / "c.sqlite"
    # A port is used again, and the files overlap in time.
    wire.name(path, 0).write_bytes(BEGIN + recorded("one", 4000, 10) + recorded("again", 4000, 50))
    wire.name(path, 1).write_bytes(BEGIN + recorded("two", 4001, 5))
    return path


def test_all_connections_in_the_order_of_time(capture: Path, tmp_path: Path) -> None:
    assert wire.write(capture, None, tmp_path / "x.pcapng") == 3
    assert (tmp_path / "x.pcapng").stat().st_mode & 0o777 == 0o600
    secrets, packets = read(tmp_path / "x.pcapng")
    assert secrets.count(b"CLIENT_RANDOM") == 3
    assert [packet.time for packet in packets] == sorted(packet.time for packet in packets)


@pytest.mark.parametrize(("chosen", "absent"), [("one", b"again"), ("again", b"one"), ("two", b"one")])
def test_a_chosen_connection_leaves_alone(capture: Path, tmp_path: Path, chosen: str, absent: bytes) -> None:
    assert wire.write(capture, {chosen, "none"}, tmp_path / "x.pcapng") == 1
    secrets, packets = read(tmp_path / "x.pcapng")
    assert secrets == f"CLIENT_RANDOM {chosen} 00\n".encode()
    data = b"".join(packet.data for packet in packets)
    assert chosen.encode() in data
    assert absent not in data


def test_of_a_damaged_file_what_comes_before_the_damage(capture: Path, tmp_path: Path) -> None:
    whole = wire.name(capture, 0).read_bytes()
    for at, size in enumerate(range(0, len(whole), 37)):
        wire.name(capture, 0).write_bytes(whole[:size] + b"\xff" * 40)
        assert 1 <= wire.write(capture, None, tmp_path / f"{at}.pcapng") <= 3


def test_without_the_wire_there_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(InspectorError, match=r"There is no file c\.sqlite\.wire\.pcapng beside"):
        wire.write(tmp_path / "c.sqlite", None, tmp_path / "x.pcapng")
    assert not (tmp_path / "x.pcapng").exists()

"""What records the wire: secrets come before what needs them, and nobody waits for it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from inspector.errors import InspectorError
from inspector.formats import pcapng, wire
from inspector.formats.packets import Peer, Stream
from inspector.proxy import wire as wire_module
from inspector.proxy.wire import Tap, Wire
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

PEER, OWN = ("192.0.2.1", 4000), ("192.0.2.9", 8140)


class Log:
    """A file of the wire, and what it reports."""

    def __init__(self, capture: Path, room: str | None = None) -> None:
        self.capture = capture
        self.reports: list[str] = []
        self.wire = Wire(capture, self.reports.append, lambda _: room)

    def blocks(self) -> list[pcapng.Block]:
        """What is in the file after the interfaces, once it is closed."""
        self.wire.close()
        with wire.name(self.capture, 0).open("rb") as file:
            return list(pcapng.blocks(file))[3:]


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path / "c.sqlite")


def test_secrets_come_before_what_needs_them(log: Log) -> None:
    tap = Tap(log.wire, "x", 1)
    tap.open(PEER, OWN, 1.0)
    tap.sent(b"client hello")
    tap.received(b"server hello")
    tap.secret(b"SERVER_HANDSHAKE_TRAFFIC_SECRET 00 11")
    tap.sent(b"finished")
    tap.received(b"data")
    tap.release()
    tap.closed(by_peer=True, reset=False)
    found = [block.data for block in log.blocks()]
    order = [next(at for at, data in enumerate(found) if text in data) for text in (
        b"client hello", b"SERVER_HANDSHAKE", b"server hello", b"finished", b"data")]  # fmt: skip
    assert order == sorted(order)
    assert found[order[1]] == b"SERVER_HANDSHAKE_TRAFFIC_SECRET 00 11\n"
    # To the master the proxy is the client.
    assert found[0][12:20] == bytes([192, 0, 2, 9, 192, 0, 2, 1])


@pytest.mark.parametrize("address", ["192.0.2.1", "2001:db8::1%eth0", "no address"])
def test_packets_with_data_are_those_of_any_stream(log: Log, address: str) -> None:
    tap = Tap(log.wire, "x", 0)
    tap.open((address, 40_000), OWN, 1.0)
    stream = Stream("x", Peer(address, 40_000), Peer(*OWN))
    list(stream.open(0, 0))
    data = [b"a", b"ab", bytes(7), b"\xff" * 9, os.urandom(8301), os.urandom(2**18 + 1)]
    expected = []
    for at, piece in enumerate(data * 3):
        (tap.received if at % 2 == 0 else tap.sent)(piece)
        expected += [packet.data for packet in stream.send(at % 2, 0, 0, piece)][:-1]  # the last one has no data
    tap.closed(by_peer=True, reset=False)
    expected += [packet.data for by in (0, 1) for packet in stream.close(by, 0)]
    head = 60 if ":" in address else 40
    blocks = log.blocks()
    found = [block.data for block in blocks[3:]]
    assert [packet for packet in found if len(packet) > head or packet[head - 7] & 1] == [
        packet for packet in expected if len(packet) > head or packet[head - 7] & 1
    ]
    assert [block.time for block in blocks] == sorted(block.time for block in blocks)


def test_whoever_sends_much_is_acknowledged(log: Log) -> None:
    """Else Wireshark would report a full window."""
    tap = Tap(log.wire, "x", 0)
    tap.open(PEER, OWN, 1.0)
    for size in (100, 8000, 100, *[8000] * 20, 2**16):
        tap.sent(bytes(size))
    outstanding, most = 0, 0
    for packet in (block.data for block in log.blocks()[3:]):
        if packet[12:16] == bytes([192, 0, 2, 9]):
            outstanding += len(packet) - 40
        else:
            outstanding = 0
        most = max(most, outstanding)
    assert 2**15 < most <= 2**15 + 2**16
    assert outstanding == 0


def test_every_process_has_a_file_of_its_own(tmp_path: Path) -> None:
    logs = [Log(tmp_path / "c.sqlite") for _ in range(3)]
    assert [path.name for path in wire.files(tmp_path / "c.sqlite")] == [
        "c.sqlite.wire.pcapng", "c.sqlite.wire-1.pcapng", "c.sqlite.wire-2.pcapng",
    ]  # fmt: skip
    for log in logs:
        log.wire.close()
    assert {path.stat().st_mode & 0o777 for path in wire.files(tmp_path / "c.sqlite")} == {0o600}


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    for number in range(wire.FILES):
        wire.name(tmp_path / "c.sqlite", number).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(InspectorError, match="too many files"):
        Log(tmp_path / "c.sqlite")
    assert not (tmp_path / "elsewhere").exists()


def test_more_than_can_be_written_ends_it_with_a_sentence(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wire_module, "QUEUE", 1000)
    tap = Tap(log.wire, "x", 0)
    tap.open(PEER, OWN, 1.0)
    for _ in range(2000):
        tap.sent(b"x" * 100)
    assert len(log.reports) == 1
    assert "the wire is not recorded any more (more comes in than can be written)" in log.reports[0]
    log.wire.close()


@pytest.mark.parametrize("full", [True, False], ids=["write", "room"])
def test_a_full_disk_ends_it_with_a_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, full: bool) -> None:
    log = Log(tmp_path / "c.sqlite", None if full else "only 1 MB free")
    tap = Tap(log.wire, "x", 0)

    def no_room(_descriptor: int, _data: bytes) -> int:
        raise OSError(28, os.strerror(28))

    if full:
        monkeypatch.setattr(log.wire, "_write", lambda data: no_room(0, data))
    tap.open(PEER, OWN, 1.0)
    tap.sent(b"x")
    assert eventually(lambda: bool(log.reports))
    (report,) = log.reports
    assert ("No space left on device" if full else "only 1 MB free") in report
    tap.sent(b"y")  # harmless from now on
    log.wire.close()
    assert len(log.reports) == 1


def test_what_comes_before_a_connection_is_known_is_nothing(log: Log) -> None:
    tap = Tap(log.wire, "x", 0)
    tap.sent(b"x")
    tap.closed(by_peer=False, reset=True)
    assert log.blocks() == []

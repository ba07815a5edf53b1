"""What the proxy and its masking process send to each other arrives whole, or not at all."""

from __future__ import annotations

import os
import socket
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from inspector.model import Exchange
from inspector.proxy import masking_channel
from inspector.proxy.masking_channel import Channel
from inspector.runs.examples import catalog, content, report, talk

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def ends() -> Iterator[tuple[Channel, Channel]]:
    one, other = masking_channel.pair(masking_channel.ready)
    two = Channel(other, masking_channel.ready)
    yield one, two
    one.close()
    two.close()


def descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_frames_of_all_sizes_arrive_with_their_descriptors(ends: tuple[Channel, Channel]) -> None:
    contents = [b"", b"x", os.urandom(3_000_000), b"last"]
    with tempfile.TemporaryFile() as file:
        file.write(b"content")
        file.flush()
        numbers = [0, masking_channel.DESCRIPTORS, 3, 0]
        before = descriptors()

        def send() -> None:
            for content, number in zip(contents, numbers, strict=True):
                ends[0].send(content, [file.fileno()] * number)

        thread = threading.Thread(target=send)
        thread.start()
        for content, number in zip(contents, numbers, strict=True):
            frame = ends[1].receive()
            assert frame
            assert frame.content == content
            assert len(frame.descriptors) == number
            assert all(os.pread(descriptor, 100, 0) == b"content" for descriptor in frame.descriptors)
            frame.close()
        thread.join()
        assert descriptors() == before
    ends[0].close()
    assert ends[1].receive() is None


@pytest.mark.parametrize("size", [3, 20])
def test_a_frame_that_is_cut_off_is_none(size: int) -> None:
    before = descriptors()
    ours, theirs = socket.socketpair()
    channel = Channel(theirs, masking_channel.ready)
    with tempfile.TemporaryFile() as file:
        socket.send_fds(ours, [(b"\x64\0\0\0\1\0" + b"x" * 100)[:size]], [file.fileno()])
    ours.close()
    with pytest.raises(ConnectionError):
        channel.receive()
    channel.close()
    assert descriptors() == before, "the descriptor that came with it is closed"


def test_records_are_the_same_afterwards() -> None:
    for record in talk(catalog(), content("a", os.urandom(100)), report()):
        assert masking_channel.unpack(masking_channel.pack(record), Exchange) == record

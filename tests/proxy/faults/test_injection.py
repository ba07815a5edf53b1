"""A fault that happens to one exchange."""

from __future__ import annotations

import socket
import struct

import pytest

from inspector.proxy.faults import actions, answers
from inspector.proxy.faults.injection import Injection, end_with_reset, plain_answer


def _changed(name: str, value: str | None, *pieces: bytes) -> tuple[bytes, str, int, bool]:
    announced: list[int] = []
    injection = Injection(actions.make(name, value), None, lambda: announced.append(1))
    assert announced == []
    passed = b"".join(injection.change(piece) for piece in pieces)
    return passed, injection.note, len(announced), injection.cut_off


@pytest.mark.parametrize(
    ("size", "pieces", "passed", "cut"),
    [
        ("4", [b"abcdef"], b"abcd", True),
        ("4", [b"ab", b"cdef", b"gh"], b"abcd", True),
        ("4", [b"abcd"], b"abcd", False),
        ("4", [b"abcd", b"", b"e"], b"abcd", True),
        ("0", [b"a"], b"", True),
        ("0", [b""], b"", False),
    ],
)
def test_an_answer_is_cut_off(size: str, pieces: list[bytes], passed: bytes, cut: bool) -> None:
    note = f"answer cut off after {size} bytes" if cut else ""
    assert _changed("cut", size, *pieces) == (passed, note, int(cut), cut)


def test_the_first_byte_is_replaced() -> None:
    note = "first byte of the answer replaced"
    assert _changed("corrupt", None, b"", b'{"a"', b":1}") == (b'#"a":1}', note, 1, False)
    assert _changed("corrupt", None, b"") == (b"", "", 0, False)


def test_what_happens_at_once_is_announced_at_once() -> None:
    announced: list[int] = []
    injection = Injection(actions.make("500", None), answers.error(500), lambda: announced.append(1))
    assert announced == [1]
    assert injection.note == "answered 500"
    assert injection.in_place
    assert not injection.changes
    assert Injection(actions.make("reset", None), None, list).in_place  # type: ignore[arg-type]
    assert not Injection(actions.make("delay", "1s"), None, list).in_place  # type: ignore[arg-type]


def test_no_compressed_answer_is_asked_for() -> None:
    assert plain_answer(((b"Host", b"n"), (b"ACCEPT-encoding", b"gzip"))) == ((b"Host", b"n"),)


def test_a_connection_ends_with_a_reset() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_connection(server.getsockname()) as one:
        other, _ = server.accept()
        end_with_reset(other)
        assert struct.unpack("ii", other.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, 8)) == (1, 0)
        other.close()
        with pytest.raises(ConnectionResetError):
            one.recv(1)
        end_with_reset(other)  # it is closed already

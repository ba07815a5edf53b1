"""A fault that happens to one exchange."""

from __future__ import annotations

import asyncio
import socket
import struct

import pytest

from inspector import regex
from inspector.proxy.faults import actions, fault
from inspector.proxy.faults import injection as module
from inspector.proxy.faults.injection import BEAT, Injection, Injector, Pace, end_with_reset, plain_answer
from tests.support.rows import each_row


def _changed(name: str, value: str | None, *pieces: bytes) -> tuple[bytes, str, int, bool]:
    announced: list[int] = []
    injection = Injection(actions.make(name, value), None, lambda: announced.append(1))
    assert announced == []
    passed = b"".join(injection.change(piece) for piece in pieces)
    return passed, injection.note, len(announced), injection.cut_off


@each_row(
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
    injection = Injection(actions.make("500", None), actions.failure(500), lambda: announced.append(1))
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


WEB1 = "web1.example"
CATALOG = f"/puppet/v3/catalog/{WEB1}?environment=production"
HEADERS = ((b"X-Puppet-Version", b"7.23.0"),)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Scene:
    def __init__(self, *lines: str, only: str | None = None) -> None:
        self.lines: list[str] = []
        self.clock = Clock()
        pattern = regex.compile(only) if only else None
        self.injector = Injector([fault.parse(line) for line in lines], pattern, self.lines.append, self.clock)

    def ask(
        self, certname: str = WEB1, address: str = "192.0.2.7", method: str = "POST", target: str = CATALOG
    ) -> Injection | None:
        return self.injector.on_request(address, certname, method, target, HEADERS)


@each_row(
    ("terms", "chosen"),
    [
        (f"agent:{WEB1}", True),
        ("agent:web*", True),
        ("agent:192.0.2.7", True),
        ("agent:web2.example", False),
        (f"agent:{WEB1} phase:catalog endpoint:catalog method:post path:/catalog/ env:production version:7.23", True),
        (f"agent:{WEB1} version:8", False),
        (f"agent:{WEB1} -phase:catalog", False),
        (f"agent:{WEB1} env:test", False),
    ],
)
def test_what_a_fault_is_for(terms: str, chosen: bool) -> None:
    assert (Scene(f"500 {terms}").ask() is not None) is chosen


def test_a_name_that_is_only_claimed_does_not_count() -> None:
    """In the URL, without a certificate."""
    scene = Scene(f"500 agent:{WEB1}")
    assert scene.ask(certname="") is None
    assert scene.ask(certname="web2.example") is None
    assert scene.lines == []


def test_requests_are_counted_for_each_agent() -> None:
    scene = Scene("500 agent:web* nth:2")
    assert [scene.ask(name) is not None for name in (WEB1, "web2.example", WEB1, WEB1, "web2.example")] == [
        False, False, True, False, True,
    ]  # fmt: skip


def test_others_do_not_count() -> None:
    scene = Scene(f"500 agent:{WEB1} phase:catalog nth:2")
    scene.ask()
    for certname, method, target in (("", "POST", CATALOG), ("evil", "POST", CATALOG), (WEB1, "GET", "/status")):
        scene.ask(certname, method=method, target=target)
    assert scene.ask() is not None


def test_no_more_agents_are_counted_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "AGENTS", 3)
    scene = Scene("500 agent:web* nth:2")
    for number in range(100):
        scene.ask(f"web{number}")
    assert {len(counts) for counts in scene.injector._counts.values()} == {3}


def test_it_ends() -> None:
    scene = Scene(f"500 agent:{WEB1} for:10m")
    scene.clock.now += 600
    assert scene.ask()
    scene.clock.now += 1
    assert scene.ask() is None


def test_the_first_fault_that_fits_happens() -> None:
    scene = Scene("empty-catalog agent:web1*", "503=1 agent:web*", "500 agent:web*")
    first, second = scene.ask(), scene.ask(target="/puppet/v3/node/web1.example", method="GET")
    assert first
    assert second
    assert (first.note, second.note) == ("answered with an empty catalog", "answered 503 with Retry-After: 1")


def test_agents_that_are_not_recorded_are_left_alone() -> None:
    scene = Scene("500", only=WEB1)
    assert scene.ask()
    assert scene.ask("web2.example") is None
    assert scene.ask("") is None
    assert Scene("500 agent:192.0.2.7", only=WEB1).ask("") is not None
    assert Scene("500 agent:192.0.2.7", only=WEB1).ask("web2.example") is None


def test_handshakes() -> None:
    scene = Scene("refuse agent:192.0.2.7 nth:1", f"500 agent:{WEB1}")
    assert scene.injector.on_handshake("192.0.2.8") is None
    refused = scene.injector.on_handshake("192.0.2.7")
    assert refused
    assert refused.action.refuse
    assert scene.injector.on_handshake("192.0.2.7") is None
    assert scene.lines == ["-- fault: handshake refused: a connection from 192.0.2.7"]


def test_what_is_printed_is_harmless() -> None:
    scene = Scene("500 agent:192.0.2.7")
    scene.ask("", target="/a\x1b[2J" + "b" * 9999 + "?secret=1")
    (line,) = scene.lines
    assert "\x1b" not in line
    assert "secret" not in line
    assert len(line) < 400
    assert line.startswith("-- fault: answered 500: POST /a")


def test_without_faults_nothing_is_looked_at() -> None:
    scene = Scene()
    assert not scene.injector.waits
    assert scene.ask() is None
    assert scene.injector.on_handshake("192.0.2.7") is None


@pytest.mark.parametrize("rate", [1, 7, 15, 1000, 10_000_000])
def test_so_many_bytes_pass_in_a_second(rate: int) -> None:
    pace = Pace(rate)
    assert pace._size / pace._delay == pytest.approx(rate)
    assert pace._delay >= BEAT * 0.66


def test_it_passes_on_piece_by_piece() -> None:
    pace = Pace(20)
    assert not pace.pending
    assert pace.add(b"abc")
    assert not pace.add(b"de"), "somebody is at it already"
    assert [pace.piece(), pace.piece()] == [b"ab", b"cd"]
    assert pace.pending
    pace.clear()
    assert not pace.pending
    assert not pace.add(b"")


def test_the_next_piece_is_due_later() -> None:
    async def main() -> list[str]:
        done: list[str] = []
        Pace(1000).later(lambda: done.append("piece"))
        assert done == []
        await asyncio.sleep(BEAT * 3)
        return done

    assert asyncio.run(main()) == ["piece"]

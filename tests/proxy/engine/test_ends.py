"""An end of a link: what it reads, and when it gives up whoever takes nothing."""

from __future__ import annotations

import contextlib
import socket
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from OpenSSL import SSL

from inspector.host import pki
from inspector.proxy.engine import ends
from inspector.proxy.engine.ends import JAM, End
from inspector.proxy.identity import Credentials
from inspector.proxy.limits import FULL, PIECE, READ, RECORDS
from tests.support.ends import Tls, Transport

if TYPE_CHECKING:
    from collections.abc import Callable


class Quiet(End):
    """An end with which nothing is done."""

    rooms = 0

    def on_room(self) -> None:
        self.rooms += 1

    def on_secured(self) -> None:
        pass


@pytest.fixture
def end() -> Quiet:
    made = Quiet(Tls(), None)  # type: ignore[arg-type]
    made.connection_made(Transport())  # type: ignore[arg-type]
    made.secured = 1.0
    return made


def transport(end: End) -> Transport:
    found: Any = end.transport
    assert isinstance(found, Transport)
    return found


def test_whoever_takes_nothing_and_is_answered_by_tls_itself_is_not_read(end: Quiet) -> None:
    """As with KeyUpdate, each of which is answered."""
    end.send(bytes(FULL + 1))
    end.pause_writing()
    assert transport(end).reading, "what it sends may be what it waits for"
    end.send(bytes(JAM))
    assert not transport(end).reading
    transport(end).size = 0
    end.resume_writing()
    assert transport(end).reading


def test_what_is_sent_before_there_is_tls_is_held_and_counts(end: Quiet) -> None:
    end.secured = None
    end.send(bytes(FULL))
    assert not end.blocked
    end.send(b"a")
    assert end.blocked
    assert transport(end).size == 0
    end.shake_hands()
    assert transport(end).size == FULL + 1
    assert not end.blocked
    assert end.rooms == 1, "who was not read is read again"


def test_what_cannot_be_sent_while_the_peer_renegotiates_is_held(end: Quiet) -> None:
    tls: Any = end.tls
    tls.waits = True
    end.send(b"abc")
    end.send(bytes(FULL))
    assert (transport(end).size, end.blocked) == (0, True)
    tls.waits = False
    end.take(b"something")
    assert (transport(end).size, end.blocked) == (FULL + 3, False)


def test_for_how_long_nothing_was_taken(end: Quiet) -> None:
    assert end.stuck(10.0) == 0
    end.send(bytes(1000))
    assert end.stuck(20.0) == 0
    assert end.stuck(50.0) == 30
    end.send(bytes(1000))
    assert end.stuck(60.0) == 40, "more is unsent, nothing was taken"
    transport(end).size = 1999
    assert end.stuck(70.0) == 0
    transport(end).size = 0
    assert end.stuck(200.0) == 0
    end.send(bytes(10))
    assert end.stuck(300.0) == 0


def test_a_connection_that_is_to_close_does_not_wait_for_ever(end: Quiet, monkeypatch: pytest.MonkeyPatch) -> None:
    later: list[tuple[Any, ...]] = []
    clock = [100.0]

    class Loop:
        def call_later(self, *call: Any) -> None:
            later.append(call)

    monkeypatch.setattr("asyncio.get_running_loop", Loop)
    monkeypatch.setattr("time.monotonic", lambda: clock[0])
    end.send(bytes(1000))
    end.break_off()
    while later and not transport(end).ended:
        delay, call, *arguments = later.pop()
        clock[0] += delay
        call(*arguments)
    assert transport(end).ended == "aborted"
    assert ends.STUCK < clock[0] - 100 < ends.STUCK + 2 * ends.CLOSING + 1


class Attentive(Quiet):
    """Notes what it takes, and how it ends."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.heard: list[object] = []

    def take(self, data: bytes | memoryview) -> None:
        self.heard.append(bytes(data))

    def on_end(self, error: str | None) -> None:
        self.heard.append(error)

    def on_lost(self) -> None:
        self.heard.append("lost")


def test_what_arrived_before_a_reset_is_taken_first(monkeypatch: pytest.MonkeyPatch) -> None:
    """Something was sent meanwhile, which failed: then asyncio does not read any more."""
    near, far = socket.socketpair()
    with near, far:
        far.send(b"last words")
        end = Attentive(Tls(), None)
        end.connection_made(Transport())  # type: ignore[arg-type]
        end.secured = 1.0
        monkeypatch.setattr(Transport, "fileno", lambda _: near.fileno())
        end.connection_lost(ConnectionResetError())
    assert end.heard == [b"last words", "the connection was reset", "lost"]


class Turned(SimpleNamespace):
    """What a ticket counts of a connection."""

    def await_turn(self) -> None:
        self.due += 1

    def take_turn(self) -> None:
        self.due -= 1


def test_what_waits_for_its_turn_is_taken_before_the_end() -> None:
    turns: list[Callable[[], None]] = []
    limits = SimpleNamespace(turns=SimpleNamespace(add=turns.append))
    ticket: Any = Turned(due=0, verified=False, limits=limits)
    end = Attentive(Tls(), ticket)
    end.connection_made(Transport())  # type: ignore[arg-type]
    end.secured = 1.0
    end.arrived(memoryview(b"before"))
    end.connection_lost(None)
    assert not end.heard
    turns.pop()()
    assert end.heard == [b"before", None, "lost"]


class Records(Tls):
    """TLS of which each byte that arrives is a record."""

    def __init__(self) -> None:
        super().__init__()
        self.records = b""
        self.largest = 0
        self.farewell = False

    def bio_write(self, data: bytes) -> int:
        self.records += data
        self.largest = max(self.largest, len(data))
        return len(data)

    def recv(self, _size: int) -> bytes:
        if not self.records:
            raise SSL.ZeroReturnError if self.farewell and self.largest else SSL.WantReadError
        record, self.records = self.records[:1], self.records[1:]
        return record


class Work:
    """Turns of one agent, each when the test wants."""

    def __init__(self, *, at_once: bool) -> None:
        self._at_once = at_once
        self.due: list[Callable[[], None]] = []
        self.seconds = 0.0

    def add(self, work: Callable[[], None], payer: str = "") -> None:
        assert payer == "a.example"
        self.due.append(work)

    def allows(self, payer: str) -> bool:
        return self._at_once and payer == "a.example"

    def spend(self, payer: str, seconds: float) -> None:
        assert payer == "a.example"
        self.seconds += seconds


def verified(work: Work, *, many: bool = False) -> Any:
    """What a connection of a verified agent is counted by."""
    return Turned(
        due=0, verified=True, payer="a.example", limits=SimpleNamespace(turns=work, bytes=SimpleNamespace(many=many))
    )


class Reading(End):
    """Notes the sizes of what it read, and how it ended."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.heard: list[object] = []
        self.connection_made(Transport())  # type: ignore[arg-type]
        self.secured = 1.0

    def on_data(self, data: bytes) -> None:
        self.heard.append(len(data))

    def on_end(self, error: str | None) -> None:
        self.heard.append(error)

    def on_lost(self) -> None:
        self.heard.append("lost")


def test_of_many_small_records_some_are_read_in_a_turn() -> None:
    """A record costs the same, however small it is: of what is read at once they could take a second."""
    work, tls = Work(at_once=True), Records()
    tls.farewell = True
    ticket = verified(work)
    end = Reading(tls, ticket)
    end.arrived(memoryview(bytes(RECORDS * 2 + 1)))
    assert end.heard == [RECORDS]
    assert (ticket.due, transport(end).reading) == (1, False)
    end.eof_received()
    end.connection_lost(None)
    for left in (RECORDS, 1):
        work.due.pop()()
        assert end.heard[-1 if left > 1 else -3] == left
    assert end.heard == [RECORDS, RECORDS, 1, None, "lost"], "the end comes last"
    assert (ticket.due, work.due) == (0, [])


def test_what_comes_last_is_read_whole() -> None:
    near, far = socket.socketpair()
    with near, far:
        far.send(bytes(RECORDS + 1))
        work = Work(at_once=True)
        end = Reading(Records(), verified(work))
        vars(transport(end))["fileno"] = near.fileno
        end.connection_lost(ConnectionResetError())
    assert end.heard == [RECORDS, 1, "the connection was reset", "lost"]
    for turn in work.due:
        turn()
    assert end.heard[-1] == "lost"


def test_work_for_an_agent_is_counted_and_waits_if_it_is_much(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter(range(100))
    monkeypatch.setattr(ends, "time", SimpleNamespace(thread_time=lambda: next(clock), time=time.time))
    work = Work(at_once=True)
    end = Reading(Records(), verified(work))
    end.arrived(memoryview(b"abc"))
    assert (end.heard, work.seconds, work.due) == ([3], 1, [])
    assert len(end.get_buffer(0)) == READ
    work = Work(at_once=False)
    end = Reading(Records(), verified(work))
    assert len(end.get_buffer(0)) == PIECE
    end.arrived(memoryview(b"abc"))
    assert (end.heard, transport(end).reading) == ([], False)
    work.due.pop()()
    assert (end.heard, transport(end).reading) == ([3], True)


def test_while_much_waits_less_is_read() -> None:
    assert len(Reading(Records(), verified(Work(at_once=True), many=True)).get_buffer(0)) == PIECE
    slow = Reading(Records(), verified(Work(at_once=True)))
    slow.slow = True
    assert len(slow.get_buffer(0)) == PIECE


def test_openssl_gets_and_gives_small_pieces() -> None:
    """Its buffers stay as large as the largest, and what is partly sent stays whole."""
    tls = Records()
    end = Reading(tls, verified(Work(at_once=True)))
    written: list[int] = []
    vars(transport(end))["write"] = lambda data: written.append(len(data))
    end.arrived(memoryview(bytes(READ)))
    assert tls.largest == ends.SEALED
    end.send(bytes(READ))
    assert sum(written) == READ
    assert max(written) <= ends.WRITTEN * ends.SEALED


def test_a_bug_in_the_end_does_not_keep_the_link() -> None:
    class Broken(Attentive):
        def on_end(self, error: str | None) -> None:
            raise RuntimeError(error)

        def on_bug(self, error: Exception) -> None:
            self.heard.append(type(error))

    end = Broken(Tls(), None)
    end.connection_made(Transport())  # type: ignore[arg-type]
    end.secured = 1.0
    end.connection_lost(None)
    assert end.heard == [RuntimeError, "lost"]


# -- real TLS ---------------------------------------------------------------------------------------------


class Asked(SSL.Connection):
    """A connection that counts how often OpenSSL was asked for something that it did not have."""

    vain = 0

    def recv(self, *arguments: Any) -> bytes:
        return self._count(super().recv, *arguments)

    def bio_read(self, *arguments: Any) -> bytes:
        return self._count(super().bio_read, *arguments)

    def _count(self, ask: Callable[..., bytes], *arguments: Any) -> bytes:
        try:
            return ask(*arguments)
        except SSL.WantReadError:
            self.vain += 1
            raise


class Heard(Reading):
    """Notes what it read."""

    data = b""

    def on_data(self, data: bytes) -> None:
        self.data += data


@pytest.fixture(scope="module")
def shown() -> Credentials:
    """What the ends show."""
    key = pki.new_key()
    return Credentials((pki.sign(pki.make_ca("a CA"), key.public_key(), "a.example", ()),), key)


def joined(shown: Credentials, version: int) -> tuple[SSL.Connection, Heard]:
    """A client, and an end that has finished the handshake with it."""
    contexts = SSL.Context(SSL.TLS_CLIENT_METHOD), SSL.Context(SSL.TLS_SERVER_METHOD)
    contexts[1].use_certificate(shown.chain[0])
    contexts[1].use_privatekey(shown.key)
    contexts[1].set_options(SSL.OP_NO_TICKET)
    for context in contexts:
        context.set_max_proto_version(version)
    client, server = SSL.Connection(contexts[0]), Asked(contexts[1])
    client.set_connect_state()
    server.set_accept_state()
    end = Heard(server, None)
    end.secured = None
    vars(end)["on_secured"] = lambda: None
    while end.secured is None:
        with contextlib.suppress(SSL.WantReadError):
            client.do_handshake()
        end.take(client.bio_read(2**16))
        transport(end).data, data = b"", transport(end).data
        if data:
            client.bio_write(data)
    with contextlib.suppress(SSL.WantReadError):
        client.do_handshake()
    server.vain = 0
    return client, end


@pytest.mark.parametrize("version", [SSL.TLS1_2_VERSION, SSL.TLS1_3_VERSION], ids=["1.2", "1.3"])
def test_of_whole_records_with_data_openssl_is_asked_for_nothing_more(shown: Credentials, version: int) -> None:
    client, end = joined(shown, version)
    end.take(sealed(client, b"first"))  # what came with the handshake was asked for
    tls: Any = end.tls
    tls.vain = 0
    for number in (1, 1, 3):
        end.take(b"".join(sealed(client, b"x" * 5000) for _ in range(number)))
    end.send(b"answer")
    assert (end.data, tls.vain) == (b"first" + b"x" * 25_000, 0)
    assert client.bio_write(transport(end).data)
    assert client.recv(100) == b"answer"


@pytest.mark.parametrize("version", [SSL.TLS1_2_VERSION, SSL.TLS1_3_VERSION], ids=["1.2", "1.3"])
def test_records_in_any_pieces_are_read_as_they_come(shown: Credentials, version: int) -> None:
    """Also those whose head comes in two pieces, after which it is not known any more where the next one begins."""
    client, end = joined(shown, version)
    sent = b""
    for size in (1, 2, 3, 4, 5, 6, 7, 40, 90, 100, 10**6):
        data = b"".join(sealed(client, bytes([at]) * 50) for at in range(9))
        sent += b"".join(bytes([at]) * 50 for at in range(9))
        for at in range(0, len(data), size):
            end.take(data[at : at + size])
        assert end.data == sent, size
    client.shutdown()
    end.take(client.bio_read(2**16))
    assert (end.heard, end.farewell) == ([None], True)


def test_what_tls_itself_answers_is_sent(shown: Credentials) -> None:
    """Here the alert for a record that is none, behind one with data."""
    client, end = joined(shown, SSL.TLS1_3_VERSION)
    end.take(sealed(client, b"data"))
    end.take(sealed(client, b"more") + b"\x17\x03\x03\x00\x20" + bytes(32))
    assert end.data == b"datamore"
    assert isinstance(end.heard[0], str)
    client.bio_write(transport(end).data)
    with pytest.raises(SSL.Error, match="bad record mac"):
        client.recv(100)


def sealed(client: SSL.Connection, data: bytes) -> bytes:
    """A record with some data."""
    client.send(data)
    return client.bio_read(2**16)

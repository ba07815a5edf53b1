"""Spans on their way to a collector: whatever that does, nobody waits, and what is dropped is counted."""

from __future__ import annotations

import socket
import threading
import time
from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from inspector.proxy.telemetry import sender as sender_module
from inspector.proxy.telemetry.sender import Sender
from tests.support.otlp import collecting
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator


class Outcome:
    """What became of spans, over all reports."""

    def __init__(self, sender: Sender) -> None:
        self._sender = sender
        self.sent = 0
        self.dropped: Counter[str] = Counter()
        self.lines: list[str] = []

    def look(self) -> Outcome:
        samples, lines = self._sender.report()
        self.lines += lines
        for sample in samples:
            self.sent += sample.sent
            if sample.dropped:
                self.dropped[sample.reason] += sample.dropped
        return self


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender_module, "PAUSES", (0.01, 0.01))


@contextmanager
def answering(data: bytes | None) -> Iterator[str]:
    """A collector that answers this, whatever it is asked; None: nothing, ever."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        connections: list[socket.socket] = []

        def serve() -> None:
            while True:
                try:
                    connection, _ = server.accept()
                except OSError:
                    return
                connections.append(connection)
                if data is not None:
                    connection.recv(2**16)
                    connection.sendall(data)
                    connection.close()

        threading.Thread(target=serve, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}/v1/traces"
        server.shutdown(socket.SHUT_RDWR)
        for connection in connections:
            connection.close()


def test_what_a_collector_takes_is_sent() -> None:
    with collecting() as collector:
        sender = Sender(collector.url)
        outcome = Outcome(sender)
        sender.put(b"{}", 3)
        sender.put(b'{"resourceSpans":[]}', 4)
        assert eventually(lambda: outcome.look().sent == 7)
        sender.close()
    assert collector.bodies == ["{}", '{"resourceSpans":[]}']
    assert outcome.look().dropped == {}
    assert outcome.lines == []


def test_what_is_rejected_is_counted() -> None:
    with collecting() as collector:
        collector.answers += [
            (200, b'{"partialSuccess":{"rejectedSpans":"2","errorMessage":"\\u001b"}}'),
            (200, b'{"partialSuccess":{"rejectedSpans":99999}}'), (200, b"[1,"), (200, b'{"partialSuccess":7}'),
            (200, b"[" * 60_000), (204, b""),
        ]  # fmt: skip
        sender = Sender(collector.url)
        outcome = Outcome(sender)
        for _ in range(6):
            sender.put(b"{}", 3)
        assert eventually(lambda: outcome.look().sent == 1 + 4 * 3)
        assert outcome.dropped == {"rejected": 2 + 3}
        sender.close()


def test_what_may_be_sent_again_is_and_what_may_not_is_not() -> None:
    with collecting() as collector:
        collector.answers += [(503, b""), (429, b"")]
        sender = Sender(collector.url)
        outcome = Outcome(sender)
        sender.put(b"{}", 1)
        assert eventually(lambda: outcome.look().sent == 1)
        assert outcome.lines == [
            f"-- spans cannot be sent to {collector.url} (status 503)", "-- spans are being sent again",
        ]  # fmt: skip
        collector.answers += [(400, b""), (302, b"")]
        sender.put(b"{}", 5)
        sender.put(b"{}", 5)
        assert eventually(lambda: outcome.look().dropped == {"refused": 10})
        sender.close()


def test_nobody_listens() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        sender = Sender(f"http://127.0.0.1:{unused.getsockname()[1]}/v1/traces")
        outcome = Outcome(sender)
        sender.put(b"{}", 7)
        assert eventually(lambda: outcome.look().dropped == {"unreachable": 7})
        (line,) = outcome.lines
        assert line.endswith("(Connection refused)")
        sender.close()


@pytest.mark.parametrize("data", [b"", b"\x00" * 9, b"SSH-2.0-x\r\n", b"HTTP/1.1 999 x\r\n\r\n"])
def test_garbage_is_no_answer(data: bytes) -> None:
    with answering(data) as url:
        sender = Sender(url)
        outcome = Outcome(sender)
        sender.put(b"{}", 7)
        assert eventually(lambda: sum(outcome.look().dropped.values()) == 7)
        sender.close()
    assert outcome.sent == 0


def test_a_collector_that_hangs_delays_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender_module, "QUEUE", 100)
    monkeypatch.setattr(sender_module, "END", 0.1)
    with answering(None) as url:
        sender = Sender(url)
        for _ in range(1000):
            sender.put(b"x" * 10, 1)
        sender.close()
        outcome = Outcome(sender).look()
        assert outcome.sent == 0
        assert outcome.dropped == {"queue full": 990, "the proxy ended": 10}


def test_a_collector_that_trickles_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sender_module, "DEADLINE", 0.2)
    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            while not stop.is_set():
                connection, _ = server.accept()
                with connection:
                    try:
                        while not stop.is_set():
                            connection.sendall(b"H")
                            time.sleep(0.02)
                    except OSError:
                        continue

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        sender = Sender(f"http://127.0.0.1:{server.getsockname()[1]}/v1/traces")
        outcome = Outcome(sender)
        sender.put(b"{}", 7)
        assert eventually(lambda: outcome.look().dropped == {"unreachable": 7})
        stop.set()
        sender.close()


def test_the_end_sends_the_rest() -> None:
    with collecting() as collector:
        sender = Sender(collector.url)
        for _ in range(20):
            sender.put(b"{}", 1)
        sender.close()
        sender.put(b"{}", 1)
        outcome = Outcome(sender).look()
    assert outcome.sent == len(collector.bodies) == 20
    assert outcome.dropped == {"queue full": 1}

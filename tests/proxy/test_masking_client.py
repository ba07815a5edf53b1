"""What is recorded is masked by another process, or not recorded."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import time
from typing import TYPE_CHECKING

import pytest

from inspector.capture import spool
from inspector.capture.spool import Spool
from inspector.capture.store import Capture
from inspector.model import Connection, Exchange, Gap, Handshake, Leg
from inspector.privacy import names, patterns, redact
from inspector.proxy import masking_channel, masking_client, recorder
from inspector.proxy.analysis_client import AnalysisResult
from inspector.proxy.backlog import Item
from inspector.proxy.masking_client import MaskingClient
from inspector.proxy.recorder import Recorder
from inspector.runs.examples import ca, catalog, report, talk
from tests.support import side_processes
from tests.support.planted import everything, found
from tests.support.secrets import WORD, hiding
from tests.support.waiting import eventually
from tests.support.written import RECORDED

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from inspector.model import Record
    from inspector.proxy.masking_channel import Channel

POISONED = """
import os, sys, time
from inspector.privacy import redact
from inspector.proxy import masking_worker
redacted = redact.redacted
def poisoned(record):
    while getattr(record, "time", 0) == {poison!r}:
        {deed}
    return redacted(record)
redact.redacted = poisoned
masking_worker.CPU = 0.5
sys.exit(masking_worker.main(sys.argv[1:]))
"""


class Masked:
    """A masking client, and what it delivers."""

    def __init__(self, folder: Path, *, closed: bool = False) -> None:
        self.items: list[Item | None] = []
        self.lines: list[str] = []
        self.client = MaskingClient(folder, self.items.append, self.lines.append, closed=closed)

    def put(self, *records: Record | Connection) -> None:
        for record in records:
            self.client.put(Item(record, weight=1000))

    @property
    def records(self) -> list[Record | Connection]:
        return [item.record for item in self.items if item]

    @property
    def process(self) -> int:
        assert eventually(lambda: self.client._process is not None)
        assert self.client._process
        return self.client._process.pid


@pytest.fixture
def masked(tmp_path: Path) -> Iterator[Masked]:
    made = Masked(tmp_path)
    yield made
    if made.client._thread.is_alive():
        made.client.finish(0)
        made.client.close()
        assert not made.client._thread.is_alive()


def secret() -> Exchange:
    (record,) = hiding()
    assert isinstance(record, Exchange)
    return record


def test_this_process_masks_nothing(masked: Masked, monkeypatch: pytest.MonkeyPatch) -> None:
    def called(*_: object, **__: object) -> object:
        raise AssertionError("masking in the proxy's own process")

    for module, functions in (
        (redact, ("redacted", "text", "leg", "exchange")),
        (patterns, ("text", "signs")),
        (names, ("named",)),
    ):
        for function in functions:
            monkeypatch.setattr(module, function, called)
    masked.client.start()
    leg = Leg("x", "agent")
    masked.put(secret(), Connection(leg), Handshake(leg, 1.0, f"password: {WORD}"), Gap(1.0, f"password={WORD}", 3))
    masked.client.put(None)
    assert eventually(lambda: None in masked.items)
    exchange, connection, handshake, gap = masked.records
    assert isinstance(exchange, Exchange)
    assert exchange.response
    assert exchange.request == secret().request
    assert b"MASKED" in exchange.response.body
    assert connection == Connection(leg)
    assert isinstance(handshake, Handshake)
    assert isinstance(gap, Gap)
    assert (gap.lost, handshake.time) == (3, 1.0)
    assert WORD not in repr(masked.records)


def test_what_holds_no_secret_comes_back_as_it_was(masked: Masked) -> None:
    masked.client.start()
    sent = talk(ca(), catalog(), report())
    masked.put(*sent)
    assert eventually(lambda: len(masked.items) == 3)
    assert all(record is one for record, one in zip(masked.records, sent, strict=True))


@pytest.mark.slow
def test_large_bodies_come_and_go_on_the_disk(masked: Masked, tmp_path: Path) -> None:
    """A body that becomes small on the way is in its record again."""
    harmless, large, shrinks = Spool(tmp_path), Spool(tmp_path), Spool(tmp_path)
    harmless.add(b'{"a": "' + b"x" * spool.MEMORY + b'"}')
    large.add(b'{"password": "' + WORD.encode() + b'", "x": "' + b"y" * spool.MEMORY + b'"}')
    # A mask of a large value is as large as the value.
    shrinks.add(b'{"password": [' + b", ".join([b'"' + b"z" * 1000 + b'"'] * (spool.MEMORY // 500)) + b"]}")
    masked.client.start()
    (record,) = talk(catalog())
    assert isinstance(record, Exchange)
    assert record.response
    bare = dataclasses.replace(record, response=dataclasses.replace(record.response, body=b""))
    for body in (harmless, large, shrinks):
        masked.client.put(Item(bare, None, {"response": body}, 1000))
    assert eventually(lambda: len(masked.items) == 3)
    one, two, three = (item for item in masked.items if item)
    assert not masked.lines
    for item in (one, two):
        assert isinstance(item.record, Exchange)
        assert item.record.response
        assert item.record.response.body == b""
    assert one.spools == {"response": harmless}
    content = b"".join(two.spools["response"].chunks())
    assert content == b'{"password": "MASKED", "x": "' + b"y" * spool.MEMORY + b'"}'
    assert two.spools["response"].size == len(content)
    assert not three.spools
    assert isinstance(three.record, Exchange)
    assert three.record.response
    assert three.record.response.body.startswith(b'{"password": ')
    assert b"zz" not in three.record.response.body
    for body in (large, shrinks):
        with pytest.raises(AssertionError):
            next(body.chunks())
    for item in (one, two):
        item.close()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
def test_a_process_that_was_killed_is_started_again(masked: Masked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inspector.proxy.side_process.PAUSES", (0.0,))
    masked.client.start()
    first = masked.process
    os.kill(first, signal.SIGKILL)
    assert eventually(lambda: masked.process != first)
    masked.put(secret())
    assert eventually(lambda: len(masked.items) == 1)
    assert WORD not in repr(masked.records)
    assert masked.lines == ["-- masking has stopped (exit status -9); records wait, and it is started again"]


@pytest.mark.slow
def test_a_stop_of_the_whole_service_ends_it_after_the_proxy_only(masked: Masked) -> None:
    """systemd sends SIGTERM to all processes at once, and what is under way is still to be masked."""
    masked.client.start()
    masked.put(secret())
    assert eventually(lambda: len(masked.items) == 1), "it has begun its work"
    for number in (signal.SIGTERM, signal.SIGINT):
        os.kill(masked.process, number)
    masked.put(secret())
    assert eventually(lambda: len(masked.items) == 2)
    assert masked.lines == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("deed", "reason", "ends"),
    [
        pytest.param("pass", "masking it ended the process (a record took too long)", 1, marks=pytest.mark.slow),
        ("os._exit(3)", "masking it ended the process (exit status 3)", 2),
        pytest.param(
            "os.write(int(sys.argv[3]), bytes(100)); os._exit(3)",
            "masking it ended the process",
            2,
            marks=pytest.mark.slow,
        ),
        ("raise RuntimeError('hunter2-horse')", "masking it failed (RuntimeError)", 0),
        pytest.param("time.sleep(600)", "masking it ended the process (exit status -9)", 2, marks=pytest.mark.slow),
    ],
    ids=["endless", "crash", "nonsense", "error", "hang"],
)
def test_a_poisonous_record_becomes_a_gap_and_the_others_are_masked(
    deed: str, reason: str, ends: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(masking_client, "PATIENCE", 10.0 if "sleep" in deed else 180.0)
    side_processes.replace_code(monkeypatch, POISONED.format(poison=7.5, deed=deed))
    lines: list[str] = []
    recording = Recorder(tmp_path / "c.sqlite", lines.append, analyzes=False, redact="write")
    recording.start()
    recording.put(secret())
    recording.put(Handshake(Leg("x", "agent"), 7.5, f"password={WORD}"))
    recording.put(secret())
    with Capture.open(tmp_path / "c.sqlite") as capture:
        assert eventually(lambda: capture.last == 3)
    recording.finish()
    with Capture.open(tmp_path / "c.sqlite") as capture:
        one, gap, two = capture.records()
    assert isinstance(one, Exchange)
    assert isinstance(two, Exchange)
    assert isinstance(gap, Gap)
    assert gap.lost == 1
    assert gap.reason.startswith(f"a record was not recorded: {reason}")
    assert sum("masking has stopped" in line for line in lines) == ends
    assert f"-- {gap.reason}" in lines
    assert WORD not in " ".join(lines)
    assert_nowhere(tmp_path)


def assert_nowhere(folder: Path) -> None:
    """No file below a directory holds the secret; bodies in a capture are packed, so these are read as well."""
    for path in folder.rglob("*"):
        assert WORD.encode() not in path.read_bytes()
        if path.suffix == ".sqlite":
            with Capture.open(path) as capture:
                assert WORD not in repr([list(capture.records()), capture.connections()])


@pytest.mark.slow
@pytest.mark.parametrize("code", ["import os; os._exit(1)", "import time; time.sleep(600)"], ids=["down", "stuck"])
def test_while_nothing_is_masked_nothing_is_written_and_the_end_comes_in_time(
    code: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    side_processes.replace_code(monkeypatch, code)
    monkeypatch.setattr(recorder, "MASKING", 0.0)  # so short that no record is given up for another reason
    monkeypatch.setattr(recorder, "MASKED_QUEUE", 20_000)
    recording = Recorder(tmp_path / "c.sqlite", lambda _: None, analyzes=False, redact="write")
    recording.start()
    for _ in range(100):
        recording.put(secret())
        recording.put(Gap(1.0, f"password={WORD}"))
    with Capture.open(tmp_path / "c.sqlite") as capture:
        assert eventually(lambda: capture.last > 0), "what is dropped is recorded at once"
    recording._on_result(AnalysisResult("", 7, [], [f"password={WORD}"]))
    began = time.monotonic()
    recording.finish()
    assert not recording.is_alive()
    assert time.monotonic() - began < 20
    with Capture.open(tmp_path / "c.sqlite") as capture:
        records = list(capture.records())
    gaps = [record for record in records if isinstance(record, Gap)]
    assert gaps == records
    assert sum(gap.lost for gap in gaps) >= 200
    reasons = " ".join(gap.reason for gap in gaps)
    assert "came in faster than it could be masked" in reasons
    assert "the proxy ended before" in reasons
    assert_nowhere(tmp_path)


def test_what_cannot_be_packed_is_a_gap_at_its_place(masked: Masked) -> None:
    masked.client.start()
    lone = "\udc80"
    masked.put(Gap(1.0, "one", 2**70), Gap(2.0, f"two {lone}"), Gap(3.0, f"password={WORD} {lone}"))
    assert eventually(lambda: len(masked.items) == 3)
    one, two, three = (record for record in masked.records if isinstance(record, Gap))
    assert (one.reason, one.lost) == ("a record was not recorded: it could not be packed (OverflowError)", 1)
    assert two.reason == f"two {lone}"
    assert three.reason == "password=MASKED \\udc80"


@pytest.mark.slow
def test_it_waits_when_no_process_can_be_started(masked: Masked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inspector.proxy.side_process.PAUSES", (0.0,))
    errors = iter([OSError(11, "Resource temporarily unavailable"), OSError(24, "Too many open files")])
    pair = masking_channel.pair

    def failing(wait: Callable[[int, int], None]) -> tuple[Channel, socket.socket]:
        with contextlib.suppress(StopIteration):
            raise next(errors)
        return pair(wait)

    monkeypatch.setattr(masking_channel, "pair", failing)
    masked.put(secret())
    masked.client.start()
    assert eventually(lambda: len(masked.items) == 1)
    assert masked.lines == [
        "-- masking cannot be started (Resource temporarily unavailable); records wait",
        "-- masking cannot be started (Too many open files); records wait",
    ]


def test_closed_records_nothing_that_is_not_known_to_be_harmless(tmp_path: Path) -> None:
    masked = Masked(tmp_path, closed=True)
    masked.client.start()
    unknown = "Zq7R2mXw9KtLp4Vb"
    records = [record for make in RECORDED.values() for record in make(f"nobody knows {unknown}")]
    masked.put(*records, Connection(Leg("x", "agent", cipher=unknown)))
    masked.client.put(None)
    assert eventually(lambda: None in masked.items)
    assert len(masked.records) == len(records) + 1
    *left, connection = masked.records
    assert not found([unknown], everything([record for record in left if not isinstance(record, Connection)]))
    assert unknown not in str(connection)
    masked.client.finish(0)
    masked.client.close()

"""The recorder keeps what it can, says what it can't, and never makes anybody wait."""

from __future__ import annotations

import dataclasses
import sqlite3
import threading
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509 as lib
from cryptography.hazmat.primitives.serialization import Encoding

from inspector.capture.rotation import Rotation
from inspector.capture.spool import Spool
from inspector.capture.store import Capture
from inspector.errors import CaptureError
from inspector.host import pki
from inspector.model import Connection, Exchange, Gap, Handshake, Leg
from inspector.proxy import recorder as module
from inspector.proxy.open_connections import OpenConnections
from inspector.proxy.recorder import Recorder
from inspector.runs.examples import ca, catalog, crl, csr, not_issued, report, talk
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.model import Present, Record


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "c.sqlite"


def stored_records(path: Path) -> list[Record]:
    with Capture.open(path) as capture:
        return list(capture.records())


def play(path: Path, *records: Record) -> list[str]:
    lines: list[str] = []
    recorder = Recorder(path, lines.append)
    recorder.start()
    for record in records:
        recorder.put(record)
    recorder.finish()
    return lines


def test_a_line_an_exchange_and_one_when_the_run_ends(path: Path) -> None:
    lines = play(path, *talk(catalog(), report()))
    assert len(lines) == 3
    assert "catalog      POST catalog/~" in lines[0]
    assert lines[2].startswith("== run 1 of node1.example (7.23.0): complete in")


def test_a_run_without_an_end_is_summed_up_at_the_end(path: Path) -> None:
    lines = play(path, *talk(ca(), crl()))
    (summed,) = [line for line in lines if line.startswith("==")]
    assert "(7.23.0): under way when the recording ended, after " in summed
    assert not any(line.startswith("run 1: ") for line in lines)  # nobody knows how it ended


@pytest.mark.slow
def test_who_waits_for_a_signature_at_the_end_is_known_to_wait(path: Path) -> None:
    lines = play(path, *talk(ca(), crl(), csr(), not_issued()))
    (summed,) = [line for line in lines if line.startswith("==")]
    assert "node1.example (7.23.0): waiting in " in summed
    assert any(line.startswith("run 1: node1.example has no certificate yet: ") for line in lines)


@pytest.mark.slow
@pytest.mark.parametrize(("analyzes", "spread"), [(True, module.SPREAD), (False, 0.0)])
def test_a_commit_is_spread_unless_others_wait(
    analyzes: bool, spread: float, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """For the capture, which workers share; or more records for their turn."""
    within: list[float] = []
    flush = Capture.flush

    def noted(capture: Capture, seconds: float = 0.0) -> list[Record]:
        within.extend([seconds] * bool(capture.pending))
        return flush(capture, seconds)

    monkeypatch.setattr(Capture, "flush", noted)
    recorder = Recorder(path, lambda _: None, analyzes=analyzes)
    for _ in range(module.BATCH + 1):
        recorder.put(Gap(1.0, "x"))
    recorder.start()
    assert eventually(lambda: len(within) == 2)
    recorder.finish()
    assert within == [0.0, spread]
    assert len(stored_records(path)) == module.BATCH + 1


def test_a_failed_handshake_is_a_line(path: Path) -> None:
    handshake = Handshake(
        Leg("x", "agent", "192.0.2.1", 1), 1.0, "Certificate 'CN=a' is revoked", "certificate_revoked", "proxy"
    )
    lines = play(path, handshake)
    assert "TLS refused: Certificate 'CN=a' is revoked (alert certificate_revoked from the proxy)" in lines[0]


@pytest.mark.slow
def test_secrets_in_a_large_body_are_taken_out_as_well(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("inspector.capture.spool.MEMORY", 10)
    (asked,) = talk(catalog())
    assert isinstance(asked, Exchange)
    assert asked.response
    key = b"-----BEGIN PRIVATE KEY-----\\nMC4CAQAwBQYDK2VwBCIEIGVlZWVlZWVl\\n-----END PRIVATE KEY-----"
    spool = Spool(path.parent)
    for part in (b'{"resources": [], "x": "', key, b'"}'):
        spool.add(part)
    assert spool.body is None
    recorder = Recorder(path, lambda _: None, redact="write", analyzes=False)
    recorder.start()
    bare = dataclasses.replace(asked, response=dataclasses.replace(asked.response, body=b""))
    recorder.put(bare, None, {"response": spool})
    recorder.finish()
    (exchange,) = stored_records(path)
    assert isinstance(exchange, Exchange)
    assert exchange.response
    assert exchange.response.body.startswith(b'{"resources": []')
    assert b"MC4CAQAw" not in exchange.response.body


@pytest.mark.slow
def test_an_existing_capture_is_continued(path: Path) -> None:
    play(path, *talk(ca(), crl(), csr(), not_issued()))
    lines = play(path, *talk(catalog(), report()))
    assert [record.seq for record in stored_records(path)] == [1, 2, 3, 4, 5, 6]
    assert sum(line.startswith("==") for line in lines) == 1


@pytest.mark.slow
def test_secrets_in_a_connections_certificates_are_taken_out_as_well(path: Path) -> None:
    issuer = pki.make_ca("CA")
    key = lib.UnrecognizedExtension(lib.ObjectIdentifier("1.3.6.1.4.1.34380.1.1.4"), b"\x0c\x06hunter")
    made = pki.sign(issuer, pki.new_key().public_key(), "n.example", extensions=[lib.Extension(key.oid, False, key)])
    leg = Leg("a", "agent", peer_chain=(made.public_bytes(Encoding.DER),))
    recorder = Recorder(path, lambda _: None, redact="write", analyzes=False)
    recorder.start()
    recorder.put(Connection(leg))
    recorder.put(Handshake(leg, 1.0, "refused"))
    recorder.finish()
    with Capture.open(path) as capture:
        (noted,) = capture.connections()
    assert noted.leg.peer_chain
    assert b"hunter" not in noted.leg.peer_chain[0]


def test_without_room_on_the_disk_the_end_is_not_written_either(path: Path) -> None:
    lines: list[str] = []
    recorder = Recorder(path, lines.append, rotation=Rotation(free=10**18), analyzes=False)
    recorder.start()
    for record in talk(catalog(), catalog(), report()):
        recorder.put(record)
    time.sleep(0.5)
    recorder.finish()
    (gap,) = stored_records(path)
    assert isinstance(gap, Gap)
    assert (gap.seq, gap.lost) == (1, 3)
    assert "puppet_keep_free" in gap.reason
    assert any("3 records lost" in line for line in lines)


class FakeAnalysis:
    """An analysis process that has analyzed the records up to ``analyzed``."""

    analyzed = 0

    def __init__(self, *_: object) -> None:
        pass

    def wake(self) -> None:
        pass

    def close(self) -> bool:
        return True


@pytest.mark.slow
def test_a_capture_stays_until_the_analysis_has_continued_in_the_next(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "AnalysisClient", FakeAnalysis)
    first, second, third = (tmp_path / f"20260101T00000{number}Z.sqlite" for number in range(3))
    names = iter((second, third))
    monkeypatch.setattr(Rotation, "next", lambda *_: next(names))
    recorder = Recorder(first, lambda _: None, rotation=Rotation(age=0.6, keep=1))
    recorder.start()
    recorder.put(talk(catalog())[0])
    until = time.monotonic() + 300
    while not second.exists() and time.monotonic() < until:
        time.sleep(0.02)
    monkeypatch.setattr(FakeAnalysis, "analyzed", 1)
    time.sleep(0.5)
    assert first.exists()  # it says where it goes on
    monkeypatch.setattr(FakeAnalysis, "analyzed", 2)
    while first.exists() and time.monotonic() < until:
        time.sleep(0.02)
    assert not first.exists()
    assert second.exists()
    recorder.finish()


@pytest.fixture
def full_disk(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """While it is set, nothing can be written."""
    flush, full = Capture.flush, threading.Event()
    full.set()

    def failing(self: Capture, within: float = 0.0) -> list[Record]:
        if full.is_set():
            raise sqlite3.OperationalError("database or disk is full")
        return flush(self, within)

    monkeypatch.setattr(Capture, "flush", failing)
    monkeypatch.setattr(module, "RETRY", 0.05)
    return full


@pytest.mark.slow
def test_what_cannot_be_written_is_kept_and_the_gap_recorded(path: Path, full_disk: threading.Event) -> None:
    lines: list[str] = []
    recorder = Recorder(path, lines.append, analyzes=False)
    recorder.start()
    recorder.put(talk(catalog())[0])
    time.sleep(0.6)
    full_disk.clear()
    time.sleep(0.6)
    recorder.finish()
    exchange, gap = stored_records(path)
    assert isinstance(exchange, Exchange)
    assert isinstance(gap, Gap)
    assert gap.lost == 0
    assert "disk is full" in gap.reason
    assert sum("cannot write the capture" in line for line in lines) == 1


@pytest.mark.slow
def test_memory_is_bounded_and_what_is_lost_is_counted(
    path: Path, full_disk: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MEMORY", 15_000)
    recorder = Recorder(path, lambda _line: None, analyzes=False)
    recorder.start()
    records = talk(*[catalog()] * 6)
    recorder.put(records[0])
    time.sleep(0.5)
    for record in records[1:]:
        recorder.put(record)
    time.sleep(0.5)
    full_disk.clear()
    time.sleep(0.5)
    recorder.finish()
    written = stored_records(path)
    gap = next(record for record in written if isinstance(record, Gap))
    assert gap.lost > 0
    assert gap.lost + sum(isinstance(record, Exchange) for record in written) == 6


def test_putting_never_waits_for_the_disk(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    entered, release = threading.Event(), threading.Event()

    def hanging(_self: Capture, _within: float = 0.0) -> list[Record]:
        entered.set()
        release.wait(300)
        return []

    monkeypatch.setattr(Capture, "flush", hanging)
    recorder = Recorder(path, lambda _line: None, analyzes=False)
    recorder.start()
    recorder.put(talk(catalog())[0])
    assert entered.wait(300)
    for record in talk(*[catalog()] * 50):
        recorder.put(record)  # would hang here, and pytest-timeout would say so
    assert not release.is_set()
    release.set()
    recorder.finish()


# -- what is under way ------------------------------------------------------------------------------------


def busy_agent() -> OpenConnections:
    """A connection with a request."""
    made: Any = SimpleNamespace(verified_name="a8.test", claimed_name="a8.test")
    picture = OpenConnections()
    picture.connect("leg", made, "192.0.2.8", 90.0)
    picture.begin("leg", 95.0, b"POST", b"/puppet/v3/catalog/a8.test")
    return picture


def present_of(path: Path) -> tuple[str, int, int]:
    with Capture.open(path) as capture:
        present = capture.present(time.time())
    return present.recording, len(present.requests), len(present.connections)


def test_what_is_under_way_is_written_from_the_start_to_the_end(path: Path) -> None:
    picture = OpenConnections()
    recorder = Recorder(path, lambda _: None, connections=picture, analyzes=False)
    recorder.start()
    assert eventually(lambda: present_of(path) == ("open", 0, 0))
    recorder.finish()
    assert present_of(path) == ("ended", 0, 0)


def test_it_goes_with_the_next_records(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "CHANGED", 3600.0)
    picture = OpenConnections()
    recorder = Recorder(path, lambda _: None, connections=picture, analyzes=False)
    recorder.start()
    assert eventually(lambda: present_of(path) == ("open", 0, 0))
    picture.connect("leg", busy_agent()._connections["leg"].agent, "192.0.2.8", 90.0)
    picture.begin("leg", 95.0, b"GET", b"/")
    recorder.put(Gap(1.0, "x"))
    assert eventually(lambda: present_of(path) == ("open", 1, 1))
    picture.end("leg", 96.0)
    recorder.put(Gap(2.0, "y"))
    assert eventually(lambda: len(stored_records(path)) == 2)
    assert present_of(path) == ("open", 0, 1)
    recorder.finish()
    assert present_of(path) == ("ended", 0, 1)


def test_while_nothing_changes_only_signs_of_life_are_written(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FLUSH", 0.001)
    written: list[Present] = []
    set_present = Capture.set_present

    def noted(capture: Capture, present: Present) -> None:
        written.append(present)
        set_present(capture, present)

    monkeypatch.setattr(Capture, "set_present", noted)
    for picture in (OpenConnections(), busy_agent()):
        recorder = Recorder(path, lambda _: None, connections=picture, analyzes=False)
        recorder.start()
        assert eventually(lambda: bool(written))
        time.sleep(0.2)
        recorder.finish()
        assert sum(present.recording == "open" for present in written) == 1
        written.clear()
    monkeypatch.setattr(module, "SIGN_OF_LIFE", 0.0)
    recorder = Recorder(path, lambda _: None, connections=busy_agent(), analyzes=False)
    recorder.start()
    assert eventually(lambda: len(written) > 10)
    recorder.finish()
    with Capture.open(path) as capture:
        assert list(capture.records()) == []


def test_the_next_part_has_it_and_this_one_has_ended(path: Path) -> None:
    recorder = Recorder(
        path, lambda _: None, connections=busy_agent(), analyzes=False, rotation=Rotation(size=1, free=0)
    )
    recorder.start()
    recorder.put(Gap(1.0, "x"))
    assert eventually(lambda: recorder.path != path)
    assert eventually(lambda: present_of(recorder.path) == ("open", 1, 1))
    assert present_of(path) == ("ended", 1, 1)
    recorder.finish()
    assert present_of(recorder.path) == ("ended", 1, 1)


def test_a_capture_that_is_created_again_has_it_too(path: Path) -> None:
    recorder = Recorder(path, lambda _: None, connections=busy_agent(), analyzes=False)
    recorder.start()
    assert eventually(lambda: present_of(path) == ("open", 1, 1))
    path.unlink()
    assert eventually(lambda: any(isinstance(record, Gap) for record in stored_or_nothing(path)))
    assert present_of(path) == ("open", 1, 1)
    recorder.finish()


def stored_or_nothing(path: Path) -> list[Record]:
    """What a capture holds that may be in creation."""
    try:
        return stored_records(path)
    except CaptureError:
        return []

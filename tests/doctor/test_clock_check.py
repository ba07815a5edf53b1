"""Before a date is called wrong the master's clock is asked for, by `doctor` and by whoever asks for a directory."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from inspector.doctor import clock_check, findings, ssldir
from inspector.host import puppetconf
from inspector.lab.ca import LabCA
from inspector.lab.master import LabMaster
from inspector.model import Response, Severity
from inspector.rules.fixes import on_node

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from inspector.doctor.findings import Diagnosis
    from inspector.host.pki import SslDirPaths
    from tests.conftest import Run

NAME = "node1.example"
LATER = (5 * 365 + 1) * 86400.0
"""Seconds until everything has expired."""
HARM = ("ca clean", "ssl clean", "-delete")


@pytest.fixture
def ca() -> LabCA:
    return LabCA("ca.example")


@pytest.fixture
def place(ca: LabCA, tmp_path: Path) -> SslDirPaths:
    return ca.enrol(tmp_path / "ssl", NAME)


@pytest.fixture
def master(ca: LabCA, tmp_path: Path) -> Iterator[LabMaster]:
    with LabMaster(ca, ca.enrol(tmp_path / "master", "127.0.0.1")) as running:
        yield running


def examined(place: SslDirPaths, here: float, there: float | None) -> list[Diagnosis]:
    return clock_check.judged(lambda now: ssldir.examine(ssldir.read(place.path), now), here, lambda: there)


def test_what_only_a_wrong_clock_shows_is_one_diagnosis(place: SslDirPaths) -> None:
    now = time.time()
    for here, title in ((now + LATER, "certificate expired"), (now - LATER, "certificate not yet valid")):
        (clock,) = examined(place, here, now)
        assert (clock.title, clock.rule, clock.severity) == ("the clocks differ", "T10", Severity.ERROR)
        assert f"only by this host's clock: {title}" in clock.detail or f", {title}" in clock.detail
        assert "timedatectl" in clock.fix
        assert "chronyc" in clock.fix
        assert not any(words in clock.fix for words in HARM)
        assert not any(step.destroys for step in clock.steps)


def test_soon_by_a_wrong_clock_is_the_clock_too(place: SslDirPaths) -> None:
    now = time.time()
    assert [each.title for each in examined(place, now + LATER - 10 * 86400, now)] == ["the clocks differ"]


def test_what_has_expired_by_both_clocks_has_expired(place: SslDirPaths) -> None:
    now = time.time()
    found = {each.title: each for each in examined(place, now + LATER + 3600, now + LATER)}
    assert found["the clocks differ"].severity is Severity.WARNING
    expired = {each.title: each for each in examined(place, now + LATER, now + LATER)}["certificate expired"]
    assert expired == found["certificate expired"]
    assert expired.rule == "B33"
    assert expired.steps[0].command.startswith("puppetserver ca clean")
    assert expired.steps[0].only_if == ""


def test_one_clock_alone_deletes_nothing_at_once(place: SslDirPaths) -> None:
    for diagnosis in examined(place, time.time() + LATER, None):
        if any(step.destroys for step in diagnosis.steps):
            assert [step.command for step in diagnosis.steps[:2]] == ["date -u", "date -u"]
            assert all(step.only_if.startswith(findings.CLOCKS_RIGHT) for step in diagnosis.steps[2:])


def test_the_master_is_asked_only_where_a_date_is_in_question(place: SslDirPaths) -> None:
    place.key.unlink()

    def asked() -> float:
        raise AssertionError

    found = clock_check.judged(lambda now: ssldir.examine(ssldir.read(place.path), now), time.time(), asked)
    assert [each.title for each in found] == ["certificate without its private key"]


def test_a_fix_without_a_date_needs_no_clock() -> None:
    other = findings.error("a", "b", (on_node("c", "rm d", destroys="d"),), "B22")
    assert findings.doubted(other) is other


@pytest.mark.parametrize("status", [200, 403, 404, 500])
def test_any_answer_says_what_time_it_is(master: LabMaster, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another host's: this one's own clock says nothing about itself, unless it is another one."""
    master.instead["GET", "/puppet-ca/v1/certificate/ca"] = Response(status=status, body=b"no")
    assert clock_check.master_time(*master.address) is None
    monkeypatch.setattr(clock_check, "_is_here", lambda _: False)
    there = clock_check.master_time(*master.address)
    assert there is not None
    assert not findings.clocks_differ(time.time(), there)
    monkeypatch.undo()
    monkeypatch.setattr("inspector.clocks.http_date", lambda _: 1000.0)
    assert clock_check.master_time(*master.address) == 1000


def test_nobody_answers() -> None:
    assert clock_check.master_time("127.0.0.1", 1) is None
    assert not clock_check._is_here("192.0.2.1")


def test_doctor_asks_the_master_of_puppet_conf(
    master: LabMaster, place: SslDirPaths, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    conf = tmp_path / "puppet.conf"
    conf.write_text("[main]\nserver = {}\nserverport = {}\n".format(*master.address))
    read = puppetconf.read
    monkeypatch.setattr(puppetconf, "read", lambda ssl: read(ssl, tmp_path))
    now, later = time.time(), time.time() + LATER
    monkeypatch.setattr("time.time", lambda: later)
    monkeypatch.setattr("inspector.clocks.http_date", lambda _: now)  # the master runs in this process
    status, out, _ = run("doctor", "--ssldir", place.path)
    assert status == 1
    assert [line.partition(":")[0] for line in out.splitlines() if line.startswith("ERROR")] == [
        "ERROR the clocks differ"
    ]
    assert not any(words in out for words in HARM)
    conf.write_text("[main]\nserver = 127.0.0.1\nserverport = 1\n")
    _, out, _ = run("doctor", "--ssldir", place.path)
    assert out.index("date -u") < out.index("If the clocks are right:") < out.index("puppetserver ca clean")

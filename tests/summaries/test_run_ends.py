"""Runs that are over while a capture is followed: each is reported once, also one that ends without a report."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from inspector.capture.store import Capture
from inspector.summaries import filters, run_ends
from inspector.summaries.follow import Follower
from tests.support.captures import keep, save
from tests.support.conversations import Agent

if TYPE_CHECKING:
    from pathlib import Path

    import pytest

    from inspector.runs.run import Run


def test_a_run_is_over_with_its_report_and_is_reported_once(tmp_path: Path) -> None:
    over: list[Run] = []
    path = save(tmp_path / "c.sqlite", *Agent(leg="1").run().records)
    follower = Follower(path, filters.parse(""), end_run=over.append)
    list(follower.look())
    assert [(run.certname, run.outcome) for run in over] == [("a.example", "complete")]
    list(follower.sum_up(ended=True))
    assert len(over) == 1


def test_what_was_there_before_is_not_reported(tmp_path: Path) -> None:
    over: list[Run] = []
    records = Agent(leg="1").run().records
    path = save(tmp_path / "c.sqlite", *records)
    list(Follower(path, filters.parse(""), after=len(records), end_run=over.append).look())
    assert over == []


def test_a_run_without_a_report_is_over_when_it_is_silent_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    over: list[Run] = []
    agent = Agent(leg="1").catalog(status=500)
    path = save(tmp_path / "c.sqlite", *agent.records)
    follower = Follower(path, filters.parse(""), end_run=over.append)
    list(follower.look())
    assert over == []
    monkeypatch.setattr(run_ends, "LAPSE", -1.0)
    list(follower.look())
    assert [run.outcome for run in over] == ["failed"]
    # It goes on nevertheless: it was counted.
    before = len(agent.records)
    agent.report()
    with Capture.create(path) as capture:
        keep(capture, *agent.records[before:])
    list(follower.look())
    list(follower.sum_up(ended=True))
    assert len(over) == 1


def test_a_bootstrap_is_over_sooner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    over: list[Run] = []
    records = [*Agent(leg="1").catalog().records, *Agent("b.example", leg="2").ca().crl().csr().records]
    path = save(tmp_path / "c.sqlite", *records)
    follower = Follower(path, filters.parse(""), end_run=over.append)
    list(follower.look())
    later = time.monotonic() + run_ends.BOOTSTRAP
    monkeypatch.setattr(time, "monotonic", lambda: later)
    list(follower.look())
    assert [run.outcome for run in over] == ["waiting"]


def test_the_end_of_a_proxy_is_the_end_of_all_runs(tmp_path: Path) -> None:
    over: list[Run] = []
    follower = Follower(
        save(tmp_path / "c.sqlite", *Agent().ca().crl().records), filters.parse(""), end_run=over.append
    )
    list(follower.look())
    assert over == []
    list(follower.sum_up(ended=True))
    assert len(over) == 1
    assert not over[0].closed  # more may come when the capture is continued

"""The capture of a replay, and what was missing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inspector.capture.store import Capture
from inspector.errors import CaptureError
from inspector.model import Exchange
from inspector.replay.journal import OTHER, Journal
from inspector.replay.master import Missing, Served
from inspector.replay.questions import Question
from inspector.runs.examples import plugins, talk
from tests.support.conversations import Agent

if TYPE_CHECKING:
    from pathlib import Path

QUESTION = Question("catalog", "POST", "a", "production", frozenset())


def test_what_happened_is_recorded(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "new.sqlite", "a.sqlite run 1")
    for record in (*talk(plugins()), *Agent().refused().records):
        assert not hasattr(record, "reason") or not isinstance(record, Exchange)
        journal.take(Served(record))  # type: ignore[arg-type]
    journal.close()
    with Capture.open(journal.target) as capture:
        assert [type(record).__name__ for record in capture.records()] == ["Exchange", "Handshake"]
        assert len(capture.connections()) == 2
    assert (journal.requests, journal.missing, journal.endpoints) == (1, {}, {})


def test_what_was_missing_is_counted(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "new.sqlite", "a.sqlite run 1")
    (record,) = talk(plugins())
    assert isinstance(record, Exchange)
    for missing in (Missing(QUESTION, "one"), Missing(QUESTION, "one"), Missing(None, "two")):
        journal.take(Served(record, missing))
    journal.close()
    assert journal.missing == {"one": 2, "two": 1}
    assert journal.endpoints == {"catalog": 2, OTHER: 1}


def test_without_a_request_nothing_remains(tmp_path: Path) -> None:
    Journal(tmp_path / "new.sqlite", "a.sqlite run 1").close()
    assert [*tmp_path.iterdir()] == []


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "new.sqlite").write_text("mine")
    with pytest.raises(CaptureError, match="already exists"):
        Journal(tmp_path / "new.sqlite", "a.sqlite run 1")
    assert (tmp_path / "new.sqlite").read_text() == "mine"

"""Recorded answers that can be given, and those that cannot."""

from __future__ import annotations

import math

import pytest

from inspector.model import Exchange, Leg, Request, Response
from inspector.replay import answers

LEG = Leg("1", "agent")


def exchange(response: Response | None, ended: float = 1.0) -> Exchange:
    return Exchange(LEG, Request(ended=ended), response, seq=7)


def test_an_answer_with_its_delay() -> None:
    found = answers.of(exchange(Response(status=200, body=b"x", started=1.5)))
    assert (found.seq, found.delay, found.trouble) == (7, 0.5, "")
    assert found.response is not None


@pytest.mark.parametrize("started", [0.5, None, -math.inf, math.nan])
def test_a_delay_is_never_negative(started: float | None) -> None:
    assert answers.of(exchange(Response(status=200, started=started))).delay == 0


def test_a_delay_is_never_longer_than_an_agent_waits() -> None:
    assert answers.of(exchange(Response(status=200, started=1e12))).delay == answers.LONGEST


def test_no_answer_is_an_answer_too() -> None:
    found = answers.of(exchange(None))
    assert (found.response, found.trouble) == (None, "")


def test_a_body_that_was_not_recorded() -> None:
    found = answers.of(exchange(Response(status=200, body=b"xy", lost=5)))
    assert found.response is None
    assert found.trouble == "only 2 of its 7 bytes were recorded (puppet_keep_body)"


@pytest.mark.parametrize("status", answers.REDIRECTS)
def test_nobody_is_sent_elsewhere(status: int) -> None:
    found = answers.of(exchange(Response((("Location", "https://other.example/"),), status=status)))
    assert (found.response, found.trouble) == (None, "it leads to another server")

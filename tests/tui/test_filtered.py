"""Filters are saved under a name, chosen and removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inspector.tui import filtered, user_state
from inspector.tui.runs import RunRows
from tests.tui.screens import look, screen_text, shared_sample

if TYPE_CHECKING:
    from textual.pilot import Pilot

    from inspector.tui.app import Inspector


def test_what_is_saved_is_there_again() -> None:
    filtered.save("slow", "ms:>500")
    filtered.save("failed", "outcome:failed")
    filtered.save("slow", "ms:>5000")
    assert filtered.all_saved() == {"failed": "outcome:failed", "slow": "ms:>5000"}
    filtered.remove("failed")
    filtered.remove("nothing")
    assert filtered.all_saved() == {"slow": "ms:>5000"}


@pytest.mark.parametrize(
    "content", ["", "{", "[]", '{"a": 1, "b": "x"}', '{"\\u001b[2J": "x", "b": "x", "c": "\\u0007"}']
)
def test_a_file_that_somebody_changed_does_no_harm(content: str) -> None:
    user_state.write("filters.json", content)
    assert filtered.all_saved() in ({}, {"b": "x"})
    filtered.save("new", "y")
    assert filtered.all_saved()["new"] == "y"


def test_there_is_an_end_to_them() -> None:
    for number in range(filtered.MOST + 5):
        filtered.save(f"n{number}" + "x" * 100, "y")
    names = list(filtered.all_saved())
    assert len(names) == filtered.MOST
    assert {len(name) for name in names} == {filtered.LONGEST}


@pytest.mark.slow
def test_a_filter_is_saved_applied_and_removed_with_keys() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press("P")
        await pilot.pause()
        assert "No filter is saved yet" in screen_text(app)
        await pilot.press("f", "r", "u", "n", "colon", "1", "enter")
        await pilot.press("P", "enter", *"bad", "enter")
        await pilot.pause()
        assert filtered.all_saved() == {"bad": "run:1"}
        await pilot.press("escape")
        await pilot.pause()
        assert len(app.screen.query_one(RunRows).items) == 2
        await pilot.press("P", "enter")
        await pilot.pause()
        assert "1 shown: run:1" in screen_text(app)
        await pilot.press("escape", "P", "delete")
        await pilot.pause()
        assert filtered.all_saved() == {}
        assert len(app.screen.query_one(RunRows).items) == 2

    look(shared_sample("out-of-sync"), act)

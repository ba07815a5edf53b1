"""The keys of all screens together: what each letter means, that the line at the bottom and the page of all keys agree,
and whose run or line it is that they act on."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections import defaultdict
from typing import TYPE_CHECKING

import pytest
from textual.binding import Binding
from textual.geometry import Size

import inspector.tui
from inspector.tui.keys import Help, Keys
from inspector.tui.view import View
from tests.tui.screens import look, screen_text, settled, shared_sample

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from textual.pilot import Pilot

    from inspector.tui.app import Inspector

MOVES = "hjkl"
"""Letters that stand for arrow keys."""


def bindings() -> Iterator[Binding]:
    """The keys of all screens, lists, boxes and of the application itself, as their classes name them."""
    for module in pkgutil.iter_modules(inspector.tui.__path__, "inspector.tui."):
        for _, found in inspect.getmembers(importlib.import_module(module.name), inspect.isclass):
            if found.__module__ == module.name:
                yield from Binding.make_bindings(vars(found).get("BINDINGS", ()))


def meanings() -> dict[str, set[str]]:
    """What each letter means, over all screens."""
    found = defaultdict(set)
    for binding in bindings():
        if len(binding.key) == 1 and binding.key.isalpha():
            found[binding.key].add(binding.description)
    return found


def test_a_capital_letter_means_one_thing_on_all_screens() -> None:
    found = {key: words for key, words in meanings().items() if key.isupper()}
    assert {key: words for key, words in found.items() if len(words) > 1} == {}
    assert found["F"] == {"Findings"}
    assert len({min(words) for words in found.values()}) == len(found), "and no two mean the same"


def test_a_small_letter_means_at_most_two_things_over_all_screens() -> None:
    found = {key: words for key, words in meanings().items() if key.islower()}
    assert {key: words for key, words in found.items() if len(words) > 2} == {}
    assert set(MOVES) < set(found)


SCREENS: dict[str, tuple[str, ...]] = {
    "Causes": (),
    "Runs": ("r",),
    "RunView": ("r", "enter"),
    "ExchangeView": ("r", "enter", "enter"),
    "Findings": ("F",),
    "Findings of a run": ("r", "enter", "F"),
    "Catalog": ("r", "enter", "C"),
    "its tree": ("r", "enter", "C", "w"),
    "Relations": ("r", "enter", "C", "r"),
    "Files": ("r", "enter", "L"),
    "Connections": ("r", "enter", "O"),
    "DifferencesView": ("r", "d"),
    "Bootstrap": ("B",),
    "SearchView": ("b", *"role", "enter"),
}
"""How to get to each screen. The capture has three runs of one agent."""


def on(name: str, act: Callable[[Inspector], None], size: tuple[int, int] = (80, 24)) -> None:
    """Go to a screen of the capture and look at it."""

    async def go(pilot: Pilot[None], app: Inspector) -> None:
        for key in SCREENS[name]:
            await pilot.press(key)
            await settled(pilot, app)
        assert type(app.screen).__name__ in name or " " in name
        for _ in range(100):  # what is read in a thread may take a moment longer
            if "node1.example" in screen_text(app).splitlines()[0]:
                break
            await pilot.pause(0.05)
        act(app)

    look(shared_sample("out-of-sync"), go, size, start="")


@pytest.mark.slow
@pytest.mark.parametrize("name", SCREENS)
def test_the_line_at_the_bottom_and_the_page_of_all_keys_have_the_same_keys(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def act(app: Inspector) -> None:
        line = app.screen.query_one(Keys)
        fit = [what for _, what, _ in line._shown()]
        monkeypatch.setattr(Keys, "size", Size(10_000, 1))
        shown = {what: key for key, what, _ in line._shown()}
        page = Help(app.screen, View.BINDINGS, app.get_key_display)
        listed = {what: keys for group in page._groups.values() for what, keys in group.items()}
        assert set(shown) == set(listed)
        assert {what for what, key in shown.items() if key not in listed[what]} == set()
        assert fit[:3] == [*shown][:3]
        assert fit[-1] == [*shown][-1] == "All keys"

    on(name, act)


@pytest.mark.slow
@pytest.mark.parametrize("name", SCREENS)
def test_the_name_of_the_agent_is_in_every_title(name: str) -> None:
    def act(app: Inspector) -> None:
        assert "node1.example" in screen_text(app).splitlines()[0]

    on(name, act)

"""One line of names, one of them selected: tabs, and the parts of a tab."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual.message import Message
from textual.widget import Widget

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events


class Bar(Widget):
    """Names on one line, one of them selected."""

    DEFAULT_CSS = """
    Bar { height: 1; color: $text-muted; }
    Bar > .bar--chosen { color: $text-accent; text-style: bold underline; }
    """
    COMPONENT_CLASSES = {"bar--chosen"}

    class Picked(Message):
        """A name was clicked."""

        def __init__(self, bar: Bar, place: int) -> None:
            super().__init__()
            self.bar = bar
            self.place = place

        @property
        def control(self) -> Bar:
            return self.bar

    def __init__(self, id: str) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self.names: tuple[str, ...] = ()
        self.chosen = 0

    def show(self, names: Sequence[str], chosen: int) -> None:
        """Show these names."""
        self.names, self.chosen = tuple(names), chosen
        self.refresh()

    def _cells(self) -> list[tuple[int, str]]:
        """The texts on the line with their places. Where not all fit, those next to the selected one: names are whole,
        and an arrow leads to the others."""
        wide = [len(name) + 2 for name in self.names]
        first, last = 0, len(wide)
        # The width is unknown before the first layout; do not cut anything then.
        while (
            last - first > 1 and sum(wide[first:last]) + 2 * (first > 0) + 2 * (last < len(wide)) > self.size.width > 0
        ):
            if last - 1 - self.chosen >= self.chosen - first:
                last -= 1
            else:
                first += 1
        names = [(place, f" {self.names[place]} ") for place in range(first, last)]
        before = [(first - 1, "◂ ")] if first else []
        after = [(last, " ▸")] if last < len(wide) else []
        return [*before, *names, *after]

    def on_resize(self) -> None:
        self.refresh()

    def render(self) -> Text:
        """Draw the names; the selected one is in brackets, which are visible without colour."""
        chosen = self.get_component_rich_style("bar--chosen")
        text = Text(no_wrap=True, overflow="crop")
        for place, cell in self._cells():
            here = place == self.chosen
            text.append(f"[{cell[1:-1]}]" if here else cell, chosen if here else "")
        return text

    def on_click(self, event: events.Click) -> None:
        event.stop()
        at = event.x
        for place, cell in self._cells():
            if at < len(cell):
                self.post_message(self.Picked(self, place))
                return
            at -= len(cell)

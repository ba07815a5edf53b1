"""The keys of a view on one line at the bottom: as many as fit, the most important first, each can be clicked.

Textual's own footer creates a widget for every key whenever the focus moves; this is one line of text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.segment import Segment
from rich.style import Style
from textual.binding import Binding
from textual.strip import Strip
from textual.widget import Widget

if TYPE_CHECKING:
    from textual import events
    from textual.binding import ActiveBinding


LAST = {"back": "Back", "quit": "Quit", "help": "more keys"}
"""The actions whose keys are always at the end, and what they are called there."""


class Keys(Widget):
    """The active keys: Enter, those that only this view has, and others; at the end the way out, and where the rest
    is."""

    COMPONENT_CLASSES = {"keys--key"}
    DEFAULT_CSS = """
    Keys { height: 1; background: $panel; color: $foreground; dock: bottom; }
    Keys > .keys--key { color: $text-accent; text-style: bold; }
    """

    def on_mount(self) -> None:
        """Draw again when the focus moves."""
        self.screen.bindings_updated_signal.subscribe(self, lambda _: self.refresh())

    def _shown(self) -> list[tuple[str, str, str]]:
        """The keys that fit: name, description, and Textual's name of the key."""
        active = [key for key in self.screen.active_bindings.values() if key.binding.show and key.enabled]
        last = {key.binding.action: self._named(key.binding, LAST[key.binding.action])
                for key in active if key.binding.action in LAST}  # fmt: skip
        end = [last[action] for action in LAST if action in last]
        found: list[tuple[str, str, str]] = []
        room = self.size.width - 1 - sum(map(_width, end))
        for shown in sorted(active, key=self._rank):
            named = self._named(shown.binding, shown.binding.description)
            if shown.binding.action in LAST or named[1] in [what for _, what, _ in found]:
                continue
            room -= _width(named)
            if room < 0:
                break
            found.append(named)
        return found + end

    def _named(self, binding: Binding, what: str) -> tuple[str, str, str]:
        return self.app.get_key_display(binding), what, binding.key

    def _rank(self, shown: ActiveBinding) -> tuple[int, int]:
        if shown.binding.key == "enter":
            return 0, 0
        if shown.node is self.app:
            return 0, 1
        own = [binding.key for binding in vars(type(self.screen)).get("BINDINGS", ()) if isinstance(binding, Binding)]
        if shown.node is self.screen and shown.binding.key in own:
            return 1, own.index(shown.binding.key)
        return (2 if shown.node is self.screen else 3), 0

    def render_line(self, y: int) -> Strip:
        """Draw the line."""
        base = self.rich_style
        style = base + self.get_component_rich_style("keys--key", partial=True)
        segments = [Segment(" ", base)]
        for key, what, _ in self._shown():
            segments += [Segment(key, style), Segment(f" {what}  ", base + Style(bold=False))]
        return Strip(segments).adjust_cell_length(self.size.width, base)

    def on_click(self, event: events.Click) -> None:
        """Run the action of the clicked key."""
        x = event.x - 1
        for key, what, name in self._shown():
            if x < _width((key, what, name)):
                if x >= 0:
                    self.app.simulate_key(name)
                return
            x -= _width((key, what, name))


def _width(named: tuple[str, str, str]) -> int:
    key, what, _ = named
    return len(key) + len(what) + 3

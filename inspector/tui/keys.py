"""The keys of a view on one line at the bottom: as many as fit, each can be clicked.

Textual's own footer creates a widget for every key whenever the focus moves; this is one line of text.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip
from textual.widget import Widget

if TYPE_CHECKING:
    from textual import events


class Keys(Widget):
    """The active keys, those of the view first; ``?`` shows all."""

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
        found = []
        room = self.size.width - 1
        active = [key for key in self.screen.active_bindings.values() if key.binding.show and key.enabled]
        # The keys of the view are more important than those of the focused widget.
        for shown in sorted(active, key=lambda shown: shown.node is not self.screen):
            binding = shown.binding
            key = self.app.get_key_display(binding)
            room -= len(key) + len(binding.description) + 3
            if room >= 0:
                found.append((key, binding.description, binding.key))
        return found

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
            if x < len(key) + len(what) + 3:
                if x >= 0:
                    self.app.simulate_key(name)
                return
            x -= len(key) + len(what) + 3

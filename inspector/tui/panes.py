"""Panes with frames, and the tabs that replace them on a narrow terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.segment import Segment
from rich.style import Style
from textual.containers import Vertical
from textual.markup import escape
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

if TYPE_CHECKING:
    from collections.abc import Mapping

    from textual import events

NARROW = 100
"""Width below which panes are tabs."""
BROAD = 160
"""Width from which there is room for one more pane beside the others."""


class Pane(Vertical):
    """A part of a screen in a frame with a title; the one that has the focus is marked.

    Its left or upper edge can be dragged if the class ``side`` or ``below`` says so. Where one pane takes the whole
    screen it has no frame: the tabs above it name it (``View``).
    """

    DEFAULT_CSS = """
    Pane { border: round $border-blurred; border-title-color: $text-muted; border-subtitle-color: $text-muted; }
    Pane:focus-within {
        border: round $border; border-title-color: $text-accent; border-title-style: bold;
    }
    """

    class Moved(Message):
        """An edge was dragged by this many cells: right, or up."""

        def __init__(self, which: str, by: int) -> None:
            super().__init__()
            self.which = which
            self.by = by

    def __init__(
        self,
        *children: Widget,
        title: str = "",
        id: str | None = None,  # noqa: A002 - Textual's own name
        classes: str | None = None,
    ) -> None:
        super().__init__(*children, id=id, classes=classes)
        self.name_it(title)
        self._from: int | None = None

    def name_it(self, title: str, subtitle: str = "") -> None:
        """Change the title of the frame, and the text at its lower edge."""
        self.border_title, self.border_subtitle = escape(title), escape(subtitle)

    @property
    def _edge(self) -> str | None:
        return next((which for which in ("side", "below") if self.has_class(which)), None)

    def _place(self, event: events.MouseEvent) -> int:
        return event.screen_x if self._edge == "side" else -event.screen_y

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Start dragging, if it is on the edge."""
        on_edge = {"side": event.screen_x == self.region.x, "below": event.screen_y == self.region.y}
        if self._edge and on_edge[self._edge]:
            event.stop()
            self._from = self._place(event)
            self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Drag."""
        if self._from is not None and (by := self._place(event) - self._from):
            event.stop()
            self._from += by
            self.post_message(self.Moved(self._edge or "", by))

    def on_mouse_up(self) -> None:
        """Stop dragging."""
        if self._from is not None:
            self._from = None
            self.release_mouse()


class PaneTabs(Widget):
    """One line with the names of the panes, of which one is shown."""

    DEFAULT_CSS = "PaneTabs { height: 1; background: $panel; }"

    class Picked(Message):
        """A name was clicked."""

        def __init__(self, pane: str) -> None:
            super().__init__()
            self.pane = pane

    def __init__(self, panes: Mapping[str, str]) -> None:
        super().__init__()
        self._panes = panes
        self._shown = next(iter(panes))

    def show(self, pane: str) -> None:
        """Mark the pane that is shown."""
        self._shown = pane
        self.refresh()

    def render_line(self, y: int) -> Strip:
        """Draw the names; the selected one is reversed."""
        segments = [
            Segment(f" {title} ", self.rich_style + self._style(shown=pane == self._shown))
            for pane, title in self._panes.items()
        ]
        return Strip(segments).adjust_cell_length(self.size.width, self.rich_style)

    def _style(self, *, shown: bool) -> Style:
        return Style(reverse=shown, bold=shown)

    def on_click(self, event: events.Click) -> None:
        """Show the pane whose name was clicked."""
        x = event.x
        for pane, title in self._panes.items():
            if x < len(title) + 2:
                self.post_message(self.Picked(pane))
                return
            x -= len(title) + 2

"""Dividers between panes, and the tabs that replace panes on a narrow terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.segment import Segment
from rich.style import Style
from rich.text import Text
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from inspector import regex
from inspector.text import clean, counts

if TYPE_CHECKING:
    from textual import events

    from inspector.summaries.summary import RunBrief


NARROW = 100
"""Width below which panes are tabs, and a verdict takes twice as many lines."""


def verdict_text(run: RunBrief, width: int) -> Text:
    """The verdict of a run and its fix, shortened to fit; the findings contain the full text."""
    if run.verdict is None:
        found = counts(run.findings)
        return Text(f"complete{f'; {found}' if found else ', no deviations'}")
    room = max(20, (width - 4) * lines(width))
    message, fix = clean(run.verdict.message), clean(run.verdict.fix)
    return Text.assemble((_without_middle(message, room), "bold"), "\nfix: ", _begun(fix, room))


def lines(width: int) -> int:
    """Maximum number of lines of a verdict; its fix may take as many again."""
    return 4 if width < NARROW else 2


def _without_middle(text: str, room: int) -> str:
    """Leave out the middle: errors of Puppet begin with the failure and end with its place.

    The time is shown elsewhere.
    """
    text = text if len(text) <= room else regex.sub(r", (?:since|at) [0-9-]{10} [0-9:]{8} UTC", "", text)
    if len(text) <= room:
        return text
    before = text[: room * 2 // 3].rpartition(" ")[0]
    after = text[-(room // 3 - 3) :].partition(" ")[2]
    return f"{before} … {after}"


def _begun(fix: str, room: int) -> str:
    """The beginning of a fix that fits; commands are never cut."""
    if len(fix) <= room:
        return fix
    begun = ""
    for piece in regex.findall(r"\s*(?:\S*`[^`]*`\S*|\S+)", fix):
        if len(begun) + len(piece) > room - 2:
            break
        begun += piece
    return f"{begun} …"


class Divider(Widget):
    """A line between two panes that can be dragged."""

    DEFAULT_CSS = """
    Divider { background: $panel; color: $foreground 60%; }
    Divider.side { width: 1; height: 1fr; }
    Divider.below { height: 1; width: 1fr; }
    Divider:hover { background: $primary; }
    """

    class Moved(Message):
        """The divider was dragged by this many cells: right, or up."""

        def __init__(self, which: str, by: int) -> None:
            super().__init__()
            self.which = which
            self.by = by

    def __init__(self, which: str) -> None:
        """``side``: between left and right; ``below``: between upper and lower."""
        super().__init__(classes=which)
        self.which = which
        self._from: int | None = None

    def render_line(self, y: int) -> Strip:
        """Draw the line."""
        char = "│" if self.which == "side" else "─"
        return Strip([Segment(char * self.size.width, self.rich_style)])

    def _place(self, event: events.MouseEvent) -> int:
        return event.screen_x if self.which == "side" else -event.screen_y

    def on_mouse_down(self, event: events.MouseDown) -> None:
        """Start dragging."""
        self._from = self._place(event)
        self.capture_mouse()

    def on_mouse_move(self, event: events.MouseMove) -> None:
        """Drag."""
        if self._from is not None and (by := self._place(event) - self._from):
            self._from += by
            self.post_message(self.Moved(self.which, by))

    def on_mouse_up(self) -> None:
        """Stop dragging."""
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

    def __init__(self, panes: dict[str, str]) -> None:
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

"""Screens with panes, of which one at a time is shown on a narrow terminal; and one with three, to zoom and resize."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.binding import Binding

from inspector.tui.panes import NARROW, Pane, PaneTabs
from inspector.tui.view import View

if TYPE_CHECKING:
    from collections.abc import Mapping

    from textual.widget import Widget

LOW = 20
"""Lines for the two panes below, before the one above them has more than half of the screen."""
LEAST = 6
"""Lines of the pane above, at least."""


class Tabbed(View):
    """A screen with panes. Where the terminal is narrow, one at a time is shown, and the names of all are tabs."""

    PANES: Mapping[str, str]
    """The ids of the panes, and their names."""
    DEFAULT_CSS = """
    Tabbed PaneTabs { display: none; }
    Tabbed.narrow PaneTabs { display: block; }
    """

    def __init__(self) -> None:
        super().__init__()
        self.current = next(iter(self.PANES))
        """The pane that has the focus, or is shown alone."""

    def target(self, pane: str) -> Widget:
        """The widget that gets the focus in a pane."""
        raise NotImplementedError

    @property
    def narrow(self) -> bool:
        """Whether one pane is shown at a time."""
        return self.app.size.width < NARROW

    def lay_out(self) -> None:
        """Show the panes that fit."""
        self.set_class(self.narrow, "narrow")
        for pane in self.PANES:
            self.query_one(f"#{pane}").set_class(self.narrow and pane != self.current, "gone")
        self.query_one(PaneTabs).show(self.current)

    def enter(self, pane: str) -> None:
        """Go to a pane; if only one is shown, show this one."""
        self.current = pane
        self.lay_out()
        self.target(pane).focus()

    def action_enter(self, pane: str) -> None:
        self.enter(pane)

    def on_pane_tabs_picked(self, event: PaneTabs.Picked) -> None:
        """Go to the pane whose name was clicked."""
        self.enter(event.pane)


class Paned(Tabbed):
    """A screen with three panes: ``top``, and below it ``left`` and ``right`` in the container ``lower``.

    Tab goes to the next pane, ``z`` zooms one, Shift and arrows or the mouse resize them.
    """

    BINDINGS = [
        Binding("tab", "next_pane(1)", "Next pane", key_display="Tab", priority=True),
        Binding("shift+tab", "next_pane(-1)", "Previous pane", show=False, priority=True),
        Binding("z", "zoom", "Zoom pane", show=False),
        Binding("shift+left", "resize('side', -4)", "Narrower", show=False),
        Binding("shift+right", "resize('side', 4)", "Wider", show=False),
        Binding("shift+up", "resize('below', 2)", "Lower panes taller", show=False),
        Binding("shift+down", "resize('below', -2)", "Lower panes shorter", show=False),
    ]
    DEFAULT_CSS = """
    Paned #lower { height: 1fr; }
    Paned #left { width: 1fr; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._zoomed = False
        self._height: int | None = None
        """The lines that the user gave the pane above; None: as many as it needs."""
        self._width: int | None = None
        """The columns that the user gave the right pane; None: as many as are usual."""

    def wanted(self) -> tuple[int, int]:
        """The lines that the pane above needs with its frame, and those that all panes have."""
        raise NotImplementedError

    @property
    def narrow(self) -> bool:
        """Whether one pane is shown at a time: the terminal is narrow, or the pane is zoomed."""
        return super().narrow or self._zoomed

    def lay_out(self) -> None:
        """Show the panes that fit."""
        super().lay_out()
        self.query_one("#lower").set_class(self.narrow and self.current == "top", "gone")
        self.divide()

    def divide(self) -> None:
        """Give the pane above the lines that it needs, and the others what is left."""
        top, right = self.query_one("#top"), self.query_one("#right")
        usual = "36%" if self.broad else "48%"  # of three panes, or of two
        right.styles.width = "1fr" if self.has_class("narrow") else self._width or usual
        if self.has_class("narrow"):
            top.styles.height = "1fr"
            return
        needed, room = self.wanted()
        most = max(room // 2, room - LOW) if self._height is None else room - LEAST
        top.styles.height = max(LEAST, min(self._height or needed, most))

    def focused_pane(self) -> str:
        """The pane that has the focus."""
        focused = self.focused
        holds = [pane for pane in self.PANES if focused and self.query_one(f"#{pane}") in focused.ancestors_with_self]
        return next(iter(holds), self.current)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Go to the next pane, or complete the text in the prompt."""
        if action == "next_pane" and self.has_class("asking"):
            return False
        return super().check_action(action, parameters)

    def action_next_pane(self, by: int) -> None:
        self.let_message_pass()
        panes = list(self.PANES)
        self.enter(panes[(panes.index(self.current) + by) % len(panes)])

    def on_descendant_focus(self) -> None:
        """Follow the focus, which a click moves as well."""
        self.current = self.focused_pane()

    def action_zoom(self) -> None:
        """Zoom the focused pane, or show all panes again."""
        if super().narrow:
            self.show_message("The terminal is narrow: one pane is shown at a time; Tab shows the next.")
            return
        self._zoomed = not self._zoomed
        self.lay_out()

    def on_pane_moved(self, event: Pane.Moved) -> None:
        self.action_resize(event.which, event.by)

    def action_resize(self, which: str, by: int) -> None:
        if which == "side":
            self._width = max(20, min(self.size.width - 20, self.query_one("#right").outer_size.width - by))
        else:
            self._height = max(LEAST, self.query_one("#top").outer_size.height - by)
        self.divide()

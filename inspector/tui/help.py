"""All keys of a view, on one page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from inspector.pages.styles import DOUBT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from textual.app import ComposeResult
    from textual.dom import DOMNode
    from textual.screen import Screen

ABOUT = """\
Mouse: click to select, double-click to open, click a column title to sort, drag the line between panes to resize.
The command palette (ctrl+p) lists every action on this page.

filter   phase:catalog status:>=400 agent:web* rule:B23 ms:>500 text:"Could not find"   or plain words;
         !term or -term excludes; the same syntax as `puppet-inspector runs --filter`
search   / searches the lines of this view; b on the list of runs searches all bodies of the capture
phases   C certificates  n node  P plugins  K catalog  F files  R report  o other  . no traffic
times    ─ connect  ┼ TLS  ▸ request  ░ waiting for the master  ◂ answer  % in the proxy  . silence  ≈ shortened
findings E error  W warning  N notice, followed by the rules
"""


OTHERS = ("Scroll ", "Page Left", "Page Right", "Focus Next", "Focus Previous", "Copy selected", "Maximize", "Minimize")
"""Keys of Textual itself that are not listed."""


def keys(screen: Screen[Any]) -> Iterable[tuple[DOMNode, Binding]]:
    """The active keys of a screen and its focused widget, with the node that handles them."""
    # The keys of the view come first: those of a list are the same everywhere.
    for active in sorted(screen.active_bindings.values(), key=lambda active: active.node is not screen):
        what = active.binding.description
        if what and not what.startswith(OTHERS):
            yield active.node, active.binding


class Help(ModalScreen[None]):
    """The keys of a screen and of its focused widget, and a legend."""

    BINDINGS = [Binding("escape,question_mark,q", "dismiss", "Close")]
    DEFAULT_CSS = """
    Help { align: center middle; }
    Help VerticalScroll { width: 90%; max-width: 110; height: 90%; padding: 0 1; }
    Help VerticalScroll { background: $surface; border: solid $primary; }
    """

    def __init__(self, screen: Screen[Any], display: Callable[[Binding], str]) -> None:
        """Show the keys of ``screen``; ``display`` returns the name of a key."""
        super().__init__()
        self._title = (type(screen).__doc__ or "").partition("\n")[0]
        self._keys: dict[str, list[str]] = {}
        for _, binding in keys(screen):
            self._keys.setdefault(binding.description, []).append(display(binding))

    def compose(self) -> ComposeResult:
        text = Text(f"{self._title}\n\n", style="bold")
        for what, keys in self._keys.items():
            text.append(f"{' '.join(dict.fromkeys(keys)):>14}  ", style=f"bold {DOUBT}")
            text.append(f"{what}\n", style="not bold")
        text.append(f"\n{ABOUT}", style="not bold")
        with VerticalScroll():
            yield Static(text, markup=False)

    def on_mount(self) -> None:
        """Focus the text, so that keys scroll it."""
        self.query_one(VerticalScroll).focus()

    async def action_dismiss(self, result: None = None) -> None:
        """Close."""
        self.dismiss(result)

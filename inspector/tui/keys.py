"""The keys of a view: on one line at the bottom, and all of them on one page."""

from __future__ import annotations

from dataclasses import replace
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from rich.segment import Segment
from rich.style import Style
from rich.table import Table
from rich.text import Text
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.strip import Strip
from textual.widget import Widget
from textual.widgets import Static

from inspector.pages.styles import DOUBT
from inspector.tui.arranged import Arranged
from inspector.tui.prompt import Prompt

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from textual import events
    from textual.app import ComposeResult
    from textual.dom import DOMNode
    from textual.screen import Screen

LAST = ("back", "quit", "help")
"""The actions whose keys are always at the end."""


class Keys(Widget):
    """The active keys: Enter, those that only this view has, and others, as many as fit; at the end the way out, and
    where the rest is."""

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
        if self.screen.has_class("asking"):
            return [*self.screen.query_one(Prompt).keys()]
        named: dict[str, tuple[str, str, str]] = {}
        end: dict[str, tuple[str, str, str]] = {}
        for _, binding in sorted(keys(self.screen), key=lambda key: self._rank(*key)):
            if binding.description not in end:
                part = end if binding.action in LAST and binding.show else named
                name = self.app.get_key_display(binding), binding.description, binding.key
                part.setdefault(binding.description, name)
        widths = accumulate(map(_width, (*end.values(), *named.values())))
        number = sum(width < self.size.width for width in widths)
        return [*islice(named.values(), max(0, number - len(end))), *end.values()]

    def _rank(self, node: DOMNode, binding: Binding) -> tuple[bool, int, int]:
        """The keys that are always shown come first, then as many of the others as fit."""
        later = not binding.show
        if binding.key == "enter":
            return later, 0, 0
        if binding.action in LAST:
            return later, 0, LAST.index(binding.action)
        if node is self.app:
            return later, 4 if later else 0, 1
        own = [binding.key for binding in vars(type(self.screen)).get("BINDINGS", ()) if isinstance(binding, Binding)]
        if node is self.screen and binding.key in own:
            return later, 1, own.index(binding.key)
        return later, 2 if node is self.screen else 3, 0

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


ABOUT = """\
Mouse: click to select, double-click to open, click a column title to sort, drag the line between panes to resize.
The command palette (ctrl+p) lists every action on this page.

filter   phase:catalog status:>=400 agent:web* rule:B23 ms:>500 text:"Could not find"   or plain words;
         !term or -term excludes; the same syntax as `puppet-inspector runs --filter`
search   / searches the lines of this view; b on the list of runs searches all bodies of the capture
phases   C certificates  n node  P plugins  K catalog  F files  R report  o other  . no traffic
sequence agent ↔ proxy: the certificates that both ends of a connection showed, before its first exchange
bars     ─ connect  ┼ TLS  ▸ request  ▆ waiting for the master  ◂ answer  % in the proxy  . silence  ≈ shortened
times    a record: first byte of its request to last byte of its answer; a phase: the sum of its records;
         a run: first request to last answer; the axis begins when the agent connected
findings E error  W warning  N notice, followed by the rules
"""


HERE, MOVING, EVERYWHERE = "This screen", "Lists, trees and texts", "Everywhere"
OTHERS = ("Scroll ", "Page Left", "Page Right", "Focus Next", "Focus Previous", "Copy selected", "Maximize", "Minimize")
"""Keys of Textual itself that are not listed."""


@runtime_checkable
class Renaming(Protocol):
    """A screen on which a key does something else than its binding says, as long as something is shown."""

    def renamed(self, action: str, /) -> str:
        """What the key of an action does now; empty: what its binding says."""


def keys(screen: Screen[Any]) -> Iterable[tuple[DOMNode, Binding]]:
    """The active keys of a screen and its focused widget, with the node that handles them."""
    # The keys of the view come first: those of a list are the same everywhere.
    for active in sorted(screen.active_bindings.values(), key=lambda active: active.node is not screen):
        what = active.binding.description
        impossible = isinstance(active.node, Arranged) and not active.node.offers(active.binding.action)
        if what and not what.startswith(OTHERS) and not impossible:
            now = active.node.renamed(active.binding.action) if isinstance(active.node, Renaming) else ""
            yield active.node, replace(active.binding, description=now) if now else active.binding


class Help(ModalScreen[None]):
    """The keys of a screen and of its focused widget by purpose, and a legend."""

    BINDINGS = [Binding("escape,question_mark,q", "dismiss", "Close")]
    DEFAULT_CSS = """
    Help { align: center middle; }
    Help VerticalScroll { width: 94%; max-width: 120; height: 94%; padding: 0 1; }
    Help VerticalScroll { background: $surface; border: round $border; }
    """

    def __init__(self, screen: Screen[Any], common: Iterable[object], display: Callable[[Binding], str]) -> None:
        """Show the keys of ``screen``, of which ``common`` are those of all screens; ``display`` returns the name of a
        key."""
        super().__init__()
        self._title = (type(screen).__doc__ or "").partition("\n")[0]
        self._groups: dict[str, dict[str, list[str]]] = {HERE: {}, MOVING: {}, EVERYWHERE: {}}
        everywhere = {binding.action for binding in common if isinstance(binding, Binding)}
        for node, binding in keys(screen):
            if node is screen.app or binding.action in everywhere:
                group = EVERYWHERE
            else:
                group = HERE if node is screen else MOVING
            self._groups[group].setdefault(binding.description, []).append(display(binding))

    def compose(self) -> ComposeResult:
        with VerticalScroll() as box:
            box.border_title = "Keys"
            yield Static(Text(self._title, style="bold"), markup=False)
            yield Static(self._columns())
            yield Static(Text(f"\n{ABOUT}"), markup=False)

    def _columns(self) -> Table:
        """The keys of this screen on the left, those of lists and of all screens on the right."""
        table = Table.grid(expand=True, padding=(0, 1))
        table.add_column(ratio=1)
        table.add_column(ratio=1)
        right = Text("\n", no_wrap=True, overflow="ellipsis").join(
            self._group(name) for name in (MOVING, EVERYWHERE) if self._groups[name]
        )
        table.add_row(self._group(HERE), right)
        return table

    def _group(self, name: str) -> Text:
        text = Text(no_wrap=True, overflow="ellipsis").append(f"\n{name}\n", style="bold underline")
        for what, names in self._groups[name].items():
            text.append(f"{' '.join(dict.fromkeys(names)):>12}  ", style=f"bold {DOUBT}")
            text.append(f"{what}\n")
        return text

    def on_mount(self) -> None:
        """Focus the text, so that keys scroll it."""
        self.query_one(VerticalScroll).focus()

    async def action_dismiss(self, result: None = None) -> None:
        """Close."""
        self.dismiss(result)

"""The widgets that draw a document: a line of names, a tree whose branches are made when they are opened, a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, override

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static, Tree

from inspector.pages import highlight, languages
from inspector.pages.model import Item, Table, TreePath, find
from inspector.pages.styles import KEY
from inspector.text import clean, ends
from inspector.tui.columns import Column
from inspector.tui.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events
    from textual.app import ComposeResult
    from textual.widgets.tree import TreeNode


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


FULL = 20_000
"""Maximum number of characters of a line shown in full below a table or a tree."""


class Leaves(Tree[Item]):
    """A tree of items."""

    BINDINGS = [
        Binding("k", "cursor_up", "Up", show=False),
        Binding("j", "cursor_down", "Down", show=False),
        Binding("right,l", "open", "Unfold", show=False),
        Binding("left,h", "close", "Fold", show=False),
    ]
    DEFAULT_CSS = """
    Leaves { height: 1fr; background: $surface; scrollbar-size-vertical: 1; scrollbar-size-horizontal: 1; }
    Leaves:focus { background-tint: $foreground 0%; }
    Leaves > .tree--guides, Leaves:focus > .tree--guides, Leaves:light > .tree--guides { color: $border-blurred; }
    Leaves:focus > .tree--guides-selected, Leaves:light > .tree--guides-selected { color: $border-blurred; }
    Leaves:focus > .tree--guides-hover, Leaves:light > .tree--guides-hover { color: $border-blurred; }
    """

    def __init__(self, item: Item) -> None:
        super().__init__(Text(""), item)
        self.show_root = False
        self.guide_depth = 3

    def on_mount(self) -> None:
        self.open_up(self.root)
        if self.root.children:
            self.call_after_refresh(self._first)

    def _first(self) -> None:
        if self.cursor_line < 0:
            self.cursor_line = 0

    def open_up(self, node: TreeNode[Item]) -> None:
        """Open a branch, and the branches in it that are open by default."""
        self.fill(node)
        node.expand()
        for child in node.children:
            if child.data and child.data.opened:
                self.open_up(child)

    def fill(self, node: TreeNode[Item]) -> None:
        """Create the nodes below a node, once."""
        if node.children or node.data is None:
            return
        for item in node.data.items:
            node.add(item.label, item, allow_expand=item.branch)

    def render_label(self, node: TreeNode[Item], base_style: Style, style: Style) -> Text:
        """Draw a label; on the selected line its colours stay, and the line is marked to its end."""
        if style.bgcolor is None:
            return super().render_label(node, base_style, style)
        mark = Style(bgcolor=style.bgcolor, bold=style.bold)
        label = super().render_label(node, base_style + mark, mark)
        return label.append(" " * max(0, self.size.width - label.cell_len), base_style + mark)

    def on_tree_node_expanded(self, event: Tree.NodeExpanded[Item]) -> None:
        event.stop()
        self.fill(event.node)

    def on_tree_node_selected(self, event: Tree.NodeSelected[Item]) -> None:
        event.stop()
        self.reveal()

    def action_open(self) -> None:
        node = self.cursor_node
        if node is None:
            return
        if node.allow_expand and not node.is_expanded:
            node.expand()
        else:
            self.action_cursor_down()

    def action_close(self) -> None:
        node = self.cursor_node
        if node is None:
            return
        if node.allow_expand and node.is_expanded:
            node.collapse()
        elif node.parent is not None and node.parent is not self.root:
            self.move_cursor(node.parent)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Open or close a branch with Enter only; Space plays the run."""
        return action != "toggle_node" and super().check_action(action, parameters)

    # -- for the pane -----------------------------------------------------------------------------------

    @property
    def hides(self) -> bool:
        """Whether the selected value is hidden."""
        return self._hiding() is not None

    def _hiding(self) -> TreeNode[Item] | None:
        """The selected value, if it is hidden, or the hidden text of which a line is selected."""
        node = self.cursor_node
        while node and node.data and not node.data.secret and (node.data.group or node.data.bare):
            node = node.parent
        return node if node and node.data and node.data.secret else None

    def cut(self) -> str:
        """The full text of the selected line if it is cut; otherwise an empty text."""
        node = self.cursor_node
        if node is None or node.data is None:
            return ""
        depth, above = 0, node.parent
        while above is not None:
            depth, above = depth + 1, above.parent
        full = node.data.full
        room = self.scrollable_content_region.width - self.guide_depth * depth - 2
        return full[:FULL] if cell_len(full) > room else ""

    def reveal(self) -> bool:
        """Show the selected value, if it is hidden."""
        node = self._hiding()
        if node is None or node.data is None:
            return False
        node.data.reveal()
        node.remove_children()
        node.set_label(node.data.label)
        node.allow_expand = node.data.branch
        if node.allow_expand:
            self.open_up(node)
        return True

    def copy_value(self) -> str | None:
        """The selected value."""
        node = self.cursor_node
        return node.data.copied if node and node.data else None

    def search(self, text: str, *, forward: bool = True, again: bool = False) -> bool:
        """Go to the next line that contains a text, also in branches that were never opened."""
        if not text or self.root.data is None:
            return False
        found = find(self.root.data, text, self._way(), forward=forward, again=again)
        if found is None:
            return False
        node = self.root
        for place in found:
            self.fill(node)
            node.expand()
            node = node.children[place]
        _ = self._tree_lines  # updates the line numbers
        self.move_cursor(node)
        return True

    def center(self) -> None:
        """Scroll the selected line to the middle."""
        self.scroll_to(y=self.cursor_line - self.size.height // 2, animate=False)

    def _way(self) -> TreePath:
        way: list[int] = []
        node = self.cursor_node
        while node is not None and node.parent is not None:
            way.insert(0, [child.id for child in node.parent.children].index(node.id))
            node = node.parent
        return tuple(way)


class Sheet(Vertical):
    """A table; below it the full text of the selected line if it is cut."""

    DEFAULT_CSS = """
    Sheet { height: 1fr; }
    Sheet .full { height: auto; max-height: 50%; padding: 0 1; background: $panel; display: none; }
    """

    def __init__(self, table: Table) -> None:
        super().__init__()
        self.table = table
        self._at = 0
        # They exist before they are mounted: a table may be removed again at once.
        self.rows: Rows[int] = Rows([_column(table, place) for place in range(len(table.fields))], lambda row: row)
        self._full = Static("", markup=False)
        self._below = VerticalScroll(self._full, classes="full", can_focus=False)

    def compose(self) -> ComposeResult:
        yield self.rows
        yield self._below

    def on_mount(self) -> None:
        self.rows.show(range(len(self.table.rows)))
        if not self.table.rows:
            self._show_full(self.table.empty)

    @override
    def focus(self, scroll_visible: bool = True) -> Any:
        self.rows.focus(scroll_visible)
        return self

    def on_rows_moved(self, event: Rows.Moved[int]) -> None:
        self._at = event.item
        self._detail()

    def on_rows_chosen(self, event: Rows.Chosen[int]) -> None:
        event.stop()
        self.reveal()

    def on_resize(self) -> None:
        self._detail()

    def _detail(self) -> None:
        long: list[Text] = []
        width = self.rows.scrollable_content_region.width or self.size.width
        shown = [field for field in self.table.fields if width >= field.least]
        spare = max(0, width + 1 - sum(width.width + 1 for width in shown))
        shares = sum(width.grows for width in shown) or 1
        for place, field in enumerate(self.table.fields):
            text = self.table.plain(self._at, place) if self.table.rows else ""
            room = field.width + spare * field.grows // shares if field in shown else 0
            if "\n" in text or cell_len(clean(text)) > room:
                begin = text[:FULL].strip("\n")
                lines = highlight.lines(begin, languages.of_content(begin.encode("utf-8", "replace")))
                long.append(Text.assemble((f"{field.title}: ", KEY), Text("\n").join(lines)))
        if self.table.rows:
            self._show_full(Text("\n").join(long))

    def _show_full(self, text: str | Text) -> None:
        self._full.update(text)
        self._below.styles.display = "block" if text else "none"

    # -- for the pane -----------------------------------------------------------------------------------

    @property
    def hides(self) -> bool:
        """Whether the selected line contains hidden values."""
        row = self.rows.item if self.is_mounted else None
        return row is not None and bool(self.table.hidden(row))

    def reveal(self) -> bool:
        """Show the hidden values of the selected line."""
        row = self.rows.item
        if row is None or not self.table.reveal(row):
            return False
        self.rows.refresh()
        self._detail()
        return True

    def copy_value(self) -> str | None:
        """The value of the selected line."""
        row = self.rows.item
        return None if row is None else self.table.plain(row, self.table.value)

    def search(self, text: str, *, forward: bool = True, again: bool = False) -> bool:
        """Go to the next line that contains a text."""
        return self.rows.search(text, forward=forward, again=again)

    def center(self) -> None:
        """Scroll the selected line to the middle."""
        self.rows.scroll_to(y=self.rows.at - self.rows.size.height // 2, animate=False)


def _column(table: Table, place: int) -> Column[int]:
    field = table.fields[place]

    def cell(row: int, width: int) -> Text:
        text = table.cell(row, place)
        return Text(ends(text.plain, width, width // 3), text.style) if field.ends and len(text) > width else text

    return Column(
        field.title,
        cell,
        field.width,
        field.grows,
        sort=lambda row: table.order(row, place),
        least=field.least,
        right=field.right,
    )

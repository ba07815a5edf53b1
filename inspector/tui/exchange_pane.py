"""One record in tabs: what it means, its request and response, TLS, timing, and what its endpoint is for.

A thread prepares each part of a tab when it is first shown.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Self, override

from rich.text import Text
from textual.binding import Binding
from textual.containers import Vertical, VerticalScroll
from textual.message import Message
from textual.widgets import Static

from inspector.errors import CaptureError
from inspector.pages import palette
from inspector.pages import tabs as pages
from inspector.pages.content import Content
from inspector.pages.message import MODES, Body
from inspector.pages.model import WRONG, Item, Table
from inspector.pages.tabs import unshown
from inspector.privacy import redact
from inspector.text import clean
from inspector.tui.bytes import Bytes
from inspector.tui.doc_widgets import Bar, Leaves, Sheet
from inspector.tui.view import View, later, unread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult
    from textual.widget import Widget

    from inspector.model import Finding, Place
    from inspector.pages.tabs import Model, Tab
    from inspector.summaries.summary import RunBrief
    from inspector.tui.rows import Rows

NAMES = ("Meaning", "Request", "Response", "TLS", "Timing", "Explain")


class ExchangePane(Vertical):
    """One record in tabs, and the actions on them; part of a ``View``."""

    class Loaded(Message):
        """A record was loaded."""

    BINDINGS = [
        Binding("right_square_bracket", "part(1)", "Next part", key_display="]"),
        Binding("left_square_bracket", "part(-1)", "Previous part", key_display="[", show=False),
        Binding("v", "mode", "Pretty/raw/hex"),
        Binding("x", "reveal", "Show secret"),
    ]
    DEFAULT_CSS = """
    ExchangePane { height: 1fr; width: 1fr; }
    ExchangePane #finding { height: auto; max-height: 8; padding: 0 1; display: none; }
    ExchangePane #reading { padding: 0 1; color: $text-muted; display: none; }
    ExchangePane #content { height: 1fr; }
    ExchangePane #full { height: auto; max-height: 9; padding: 0 1; background: $panel; display: none; }
    """

    def __init__(self, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self.seq: int | None = None
        """The record that is shown or being read."""
        self.tabs: list[Tab] = []
        self.tab = ""
        """The tab that is shown."""
        self._shows, self._led = False, False
        """Whether there are findings to show, and whether one of them led here."""
        self._part: dict[str, int] = {}
        self._made: dict[tuple[str, int], tuple[Model, Widget]] = {}
        self._wanted: tuple[tuple[str, int], Sequence[str]] | None = None
        self._hides = False
        """Whether there is a secret under the cursor."""
        self._token = 0
        """Increased for each record: results for another record are dropped."""

    def compose(self) -> ComposeResult:
        yield Bar("tabs")
        with VerticalScroll(id="finding"):
            yield Static("", markup=False)
        yield Bar("parts")
        yield Static("reading …", id="reading", markup=False)
        yield Vertical(id="content")
        with VerticalScroll(id="full", can_focus=False):
            yield Static("", markup=False)

    @property
    def view(self) -> View:
        """The screen with this pane."""
        assert isinstance(self.screen, View)  # noqa: S101 - it is only used in views
        return self.screen

    # -- the record -------------------------------------------------------------------------------------

    def show(self, seq: int | None, finding: Finding | None = None, place: Place | None = None) -> None:
        """Show a record, at a place or where the evidence of a finding is."""
        if seq is not None and seq == self.seq and finding is None and place is None:
            return
        self._token += 1
        self.seq = seq
        owner = self.view.source.owner(seq) if seq is not None else None
        self._show_findings(finding, [found for found in owner.ordered if seq in found.seqs] if owner else [])
        if seq is None:
            self._clear()
            return
        self._reading(now=True)
        briefs = self.view.source.briefs(owner.number) if owner else []
        related = [brief.seq for brief in briefs if brief.request_kind in pages.RELATED and brief.seq < seq]
        load = partial(self._load, self._token, seq, finding, place, related[-pages.MOST_RELATED :], owner)
        self.run_worker(load, thread=True, exclusive=True, group="record")

    def _load(
        self, token: int, seq: int, finding: Finding | None, place: Place | None, related: list[int],
        owner: RunBrief | None,
    ) -> None:  # fmt: skip
        source = self.view.source
        tabs: list[Tab] = []
        trouble = ""
        try:
            step = source.step(seq)
            if step is not None:
                others = [found for step in related if (found := source.step(step))]
                tabs = pages.tabs(step, pages.known(step, others), owner)
                place = pages.locate(finding.places, tabs) if finding and not place else place
            else:
                trouble = f"There is no record {seq}."
        except CaptureError as error:
            trouble = f"Record {seq} {unread(error)}"
        except WRONG as error:
            trouble = f"This record cannot be displayed: {error}"
        later(self, self._take, token, tabs, place, trouble)

    def _take(self, token: int, tabs: list[Tab], place: Place | None, trouble: str) -> None:
        if token != self._token or not self.is_attached:
            return
        self._clear()
        if trouble:
            self._show_notice(clean(trouble))
            return
        self.tabs = tabs
        names = [tab.name for tab in tabs]
        name = self.tab if self.tab in names else names[0]
        if place:
            name = next((name for name in names if name.lower() == place.tab), names[0])
            titles = [part.title.lower() for part in self._tab(name).parts]
            self._part[name] = titles.index(place.part) if place.part in titles else 0
            if place.needle:
                # One line of the message may be two cells in a table.
                needles = (place.needle, place.needle.partition(" ")[2], place.fallback)
                self._wanted = (name, self._part[name]), needles
        self._open(name)
        if self.seq is not None:
            self.post_message(self.Loaded())

    def _show_findings(self, finding: Finding | None, findings: Sequence[Finding]) -> None:
        """Show the finding that led here, on each tab; or all that the record shows, above its meaning."""
        self._led = finding is not None
        lines = [
            Text.assemble((f"{each.severity} {each.rule} ", palette.SEVERITIES[each.severity]), clean(each.message))
            for each in ([finding] if finding else findings)
        ]
        self.query_one("#finding Static", Static).update(Text("\n").join(lines))
        self._shows = bool(lines)
        self.query_one("#finding").display = self._shows and (self._led or self.tab == "Meaning")

    def _clear(self) -> None:
        self._hold()
        for _, widget in self._made.values():
            widget.remove()
        self._made.clear()
        self._part.clear()
        self._wanted, self.tabs = None, []
        self._reading(now=False)
        self.query_one("#tabs", Bar).show((), 0)
        self.query_one("#parts", Bar).styles.display = "none"

    def _reading(self, *, now: bool) -> None:
        self._show_notice("reading …" if now else "")

    def _show_notice(self, text: str) -> None:
        line = self.query_one("#reading", Static)
        line.update(text)
        line.styles.display = "block" if text else "none"

    # -- tabs and parts ---------------------------------------------------------------------------------

    def _tab(self, name: str) -> Tab:
        return next(tab for tab in self.tabs if tab.name == name)

    @property
    def _now(self) -> tuple[str, int]:
        return self.tab, self._part.get(self.tab, 0)

    def _open(self, name: str, part: int | None = None) -> None:
        """Show a tab, or a part of it."""
        focused = self._hold()
        self.tab = name
        self.query_one("#finding").display = self._shows and (self._led or name == "Meaning")
        if part is not None:
            self._part[name] = part
        tab, at = self._tab(name), self._part.get(name, 0)
        self.query_one("#tabs", Bar).show(
            [f"{NAMES.index(tab.name) + 1} {tab.name}" for tab in self.tabs], self.tabs.index(tab)
        )
        parts = self.query_one("#parts", Bar)
        parts.show([part.title for part in tab.parts], at)
        parts.styles.display = "block" if len(tab.parts) > 1 else "none"
        for key, (_, widget) in self._made.items():
            widget.display = key == (name, at)
        if (name, at) in self._made:
            self._reading(now=False)
            if focused:
                self.focus()
            self._seek()
            self._moved()
            self.refresh_bindings()
            return
        self._reading(now=True)
        token, made = self._token, tab.parts[at].made

        def prepare() -> None:
            model = made()
            content = _content(model) if isinstance(model, Body) else None
            later(self, self._mount, token, (name, at), model, content)

        self.run_worker(prepare, thread=True, exclusive=True, group="part")

    def _mount(self, token: int, key: tuple[str, int], model: Model, content: Content | None) -> None:
        if token != self._token or key in self._made or not self.is_attached:
            return
        widget = _widget(model, content)
        self._made[key] = model, widget
        widget.display = key == self._now
        self.query_one("#content").mount(widget)
        self._reading(now=False)
        self.refresh_bindings()
        self.call_after_refresh(self._hand_on)
        self.call_after_refresh(self._seek)
        self.call_after_refresh(self._moved)

    def _seek(self) -> None:
        """Go to the text that was requested, once its part is shown."""
        if self._wanted and self._wanted[0] == self._now and self._now in self._made:
            if self.shown and not self.shown.is_mounted:
                self.call_after_refresh(self._seek)
                return
            needles, self._wanted = self._wanted[1], None
            if self.shown and any(needle and self.search(needle) for needle in needles):
                self.call_after_refresh(self.shown.center)

    @property
    def shown(self) -> Leaves | Sheet | Bytes | None:
        """The widget of the part that is shown; None while it is being read."""
        found = self._made.get(self._now)
        widget = found[1] if found else None
        return widget if isinstance(widget, Leaves | Sheet | Bytes) else None

    @override
    def focus(self, scroll_visible: bool = True) -> Self:
        """Focus the widget that is shown; while it is being read, the pane itself."""
        if self.shown is not None and self.shown.is_attached:
            self.shown.focus(scroll_visible)
            self.can_focus = False
        else:
            self.can_focus = True
            super().focus(scroll_visible)
        return self

    def _hold(self) -> bool:
        """Keep the focus in the pane while widgets are replaced; False if it is elsewhere."""
        if not self.has_focus_within:
            return False
        self.can_focus = True
        super().focus()
        return True

    def on_focus(self) -> None:
        """Focus the widget if it appeared while the focus was elsewhere."""
        self.call_after_refresh(self._hand_on)

    def _hand_on(self) -> None:
        """Pass the focus of the pane on to the widget that is shown."""
        if self.has_focus and self.shown is not None:
            if self.shown.is_mounted:
                self.focus()
            else:
                self.call_after_refresh(self._hand_on)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Hide keys that have no effect here."""
        model = self._made[self._now][0] if self._now in self._made else None
        if action == "mode":
            return isinstance(model, Body)
        if action == "reveal":
            if isinstance(model, Content):
                return model.unmasked is not None
            return (
                model.masks if isinstance(model, Body) else isinstance(self.shown, Leaves | Sheet) and self.shown.hides
            )
        if action == "part":
            return bool(self.tabs) and len(self._tab(self.tab).parts) > 1
        return True

    def on_bar_picked(self, event: Bar.Picked) -> None:
        event.stop()
        if event.bar.id == "tabs":
            self._open(self.tabs[event.place].name)
        else:
            self._open(self.tab, event.place)

    def on_tree_node_highlighted(self, event: Leaves.NodeHighlighted[Item]) -> None:
        event.stop()
        self._moved()

    def on_rows_moved(self, event: Rows.Moved[int]) -> None:
        event.stop()
        self._moved()

    def on_resize(self) -> None:
        self._moved()

    def _moved(self) -> None:
        """Offer to show the secret under the cursor; show the full text of a line that is cut."""
        if not self.is_attached or not self.children:
            return  # it is being removed
        shown = self.shown
        full = self.query_one("#full")
        cut = shown.cut() if isinstance(shown, Leaves) else ""
        full.styles.display = "block" if cut else "none"
        if cut:
            self.query_one("#full Static", Static).update(cut)
        hides = isinstance(shown, Leaves | Sheet) and shown.hides
        if hides != self._hides:
            self._hides = hides
            self.refresh_bindings()

    def go_to(self, name: str) -> bool:
        """Show a tab; False if this record has none of that name."""
        if not any(tab.name == name for tab in self.tabs):
            return False
        self._open(name)
        return True

    def action_part(self, by: int) -> None:
        if self.tabs:
            number = len(self._tab(self.tab).parts)
            self._open(self.tab, (self._part.get(self.tab, 0) + by) % number)

    # -- bodies and secrets -----------------------------------------------------------------------------

    def action_mode(self) -> None:
        """Show the body in the next format."""
        found = self._made.get(self._now)
        if found and isinstance(found[0], Body):
            body = found[0]
            body.mode = MODES[(MODES.index(body.mode) + 1) % len(MODES)]
            self._again(body)

    def action_reveal(self) -> None:
        """Show the secret under the cursor; in a body, all of its secrets."""
        found = self._made.get(self._now)
        if found is None:
            return
        model, widget = found
        if isinstance(model, Body):
            model.shown = True
            self._again(model)
        elif isinstance(model, Content) and isinstance(widget, Bytes) and model.unmasked:
            self._made[self._now] = model.unmasked, widget
            widget.open(model.unmasked, widget.part)
            self.refresh_bindings()
        elif isinstance(widget, Leaves | Sheet):
            if not widget.reveal():
                self.view.show_message("No masked value here.")
            self._moved()

    def _again(self, body: Body) -> None:
        """Show a body again, at the same position."""
        token, key = self._token, self._now
        self._reading(now=True)

        def prepare() -> None:
            later(self, self._reopen, token, key, _content(body))

        self.run_worker(prepare, thread=True, exclusive=True, group="part")

    def _reopen(self, token: int, key: tuple[str, int], content: Content) -> None:
        found = self._made.get(key)
        self._reading(now=False)
        if token == self._token and found and isinstance(found[1], Bytes):
            found[1].open(content, found[1].part)
            self.refresh_bindings()

    # -- for whoever copies, saves and searches ------------------------------------------------------------

    def copy_value(self) -> str | None:
        """The selected value as shown."""
        return self.shown.copy_value() if self.shown is not None else None

    def body(self) -> tuple[str, bytes] | None:
        """File name and body of the tab that is shown (from other tabs: of the response, or else of the request),
        decoded and with secrets masked."""
        names = [self.tab] if self.tab in ("Request", "Response") else ["Response", "Request"]
        for name in names:
            for tab in self.tabs:
                for at, part in enumerate(tab.parts):
                    if tab.name == name and part.title == "Body":
                        found = self._made.get((name, at))
                        model = found[0] if found else part.make()
                        if isinstance(model, Body):
                            return model.name, redact.body(model.message)
        return None

    def search(self, text: str, *, forward: bool = True, again: bool = False) -> bool:
        """Go to the next place in this tab that contains a text (ignoring case); False if there is none."""
        return self.shown is not None and self.shown.search(text, forward=forward, again=again)


def _content(body: Body) -> Content:
    """The content of a body; if it cannot be shown, the reason."""
    try:
        return body.content(body.mode)
    except WRONG as error:
        return unshown(error)


def _widget(model: Model, content: Content | None) -> Leaves | Sheet | Bytes:
    match model:
        case Item():
            return Leaves(model)
        case Table():
            return Sheet(model)
        case Content():
            return Bytes(model)
    return Bytes(content)

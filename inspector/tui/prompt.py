"""The prompt at the bottom of a view: for a search, a filter, a note.

It completes the input and has a history. The caller of ``open`` provides the completions.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.message import Message
from textual.suggester import Suggester
from textual.widgets import Input, Label, Static

from inspector.text import clean
from inspector.tui import user_state

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from textual import events
    from textual.app import ComposeResult
    from textual.timer import Timer
    from textual.widget import Widget

    type Complete = Callable[[str], list[str]]

PAUSE = 0.15
"""Seconds without a key until the preview is made."""
SHOWN = 6
"""Completions that are shown at once."""
MOST = 200
"""Maximum number of lines in a history."""
_FILE = "history.json"


class History:
    """The lines typed before, the latest last. One file per user, for all captures."""

    def __init__(self, name: str) -> None:
        self._name = name
        self.lines = self._read().get(name, [])

    @staticmethod
    def _read() -> dict[str, list[str]]:
        return {
            name: [line for line in lines if isinstance(line, str) and clean(line) == line]
            for name, lines in user_state.read_object(_FILE).items()
            if isinstance(lines, list)
        }

    def add(self, line: str) -> None:
        """Add a line as the latest."""
        if not line.strip():
            return
        histories = self._read()  # another process may have written since
        self.lines = [*(earlier for earlier in histories.get(self._name, self.lines) if earlier != line), line][-MOST:]
        histories[self._name] = self.lines
        user_state.write(_FILE, json.dumps(histories, indent=1))


class _Ghost(Suggester):
    """Suggests the first completion behind the cursor."""

    def __init__(self, complete: Complete) -> None:
        super().__init__(use_cache=False, case_sensitive=True)
        self._complete = complete

    async def get_suggestion(self, value: str) -> str | None:
        if not value or value[-1].isspace():
            return None
        return next((completion for completion in self._complete(value) if completion.startswith(value)), None)


class _PromptInput(Input):
    """The input line; its keys are handled by the prompt."""

    BINDINGS: ClassVar = [
        Binding("up", "older", "Older line", show=False),
        Binding("down", "newer", "Newer line", show=False),
        Binding("tab", "complete(1)", "Complete", show=False),
        Binding("shift+tab", "complete(-1)", "Previous completion", show=False),
    ]

    class Pressed(Message):
        """A key that replaces the whole line was pressed."""

        def __init__(self, what: str, direction: int) -> None:
            super().__init__()
            self.what = what
            self.direction = direction

    def action_older(self) -> None:
        self.post_message(self.Pressed("history", -1))

    def action_newer(self) -> None:
        self.post_message(self.Pressed("history", 1))

    def action_complete(self, direction: int) -> None:
        self.post_message(self.Pressed("complete", direction))


class _Choices(Static):
    """The completions, one per line; a click accepts one."""

    class Clicked(Message):
        """A completion was clicked."""

        def __init__(self, place: int) -> None:
            super().__init__()
            self.place = place

    def __init__(self) -> None:
        super().__init__("", id="choices", markup=False)
        self._first = 0

    def offer(self, words: list[str], at: int | None) -> None:
        """Show these completions, with one of them selected."""
        self._first = max(0, min((at or 0) - SHOWN // 2, len(words) - SHOWN))
        text = Text()
        for place in range(self._first, min(self._first + SHOWN, len(words))):
            more = place == self._first + SHOWN - 1 and len(words) - place - 1
            text.append("> " if place == at else "  ")
            text.append(words[place], style="bold reverse" if place == at else "")
            text.append(f"   and {more} more\n" if more else "\n", style="dim")
        text.right_crop(1)
        self.update(text)
        self.display = bool(words)

    def on_click(self, event: events.Click) -> None:
        event.stop()
        self.post_message(self.Clicked(self._first + event.y))


class Prompt(Vertical):
    """The prompt. It is hidden until it is opened; Enter accepts the input, Escape cancels."""

    class Closed(Message):
        """The prompt was closed, with or without a line."""

    BINDINGS: ClassVar = [Binding("escape", "cancel", "Cancel", show=False)]
    DEFAULT_CSS = """
    Prompt { height: auto; display: none; background: $panel; }
    Prompt.open { display: block; }
    Prompt #choices { height: auto; padding: 0 1; display: none; }
    Prompt Horizontal { height: 1; }
    Prompt Label { width: auto; padding: 0 1; text-style: bold; }
    Prompt Input { width: 1fr; height: 1; border: none; padding: 0; background: $panel; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._then: Callable[[str], object] | None = None
        self._complete: Complete | None = None
        self._preview: Callable[[str], str] | None = None
        self._pause: Timer | None = None
        self._history: History | None = None
        self._accepting = ""
        """What Enter does."""
        self._before: Widget | None = None
        self._back = 0
        """How many lines back in the history."""
        self._typed = ""
        """What was typed before going back in the history."""
        self._offered: list[str] = []
        self._at: int | None = None
        """The index of the completion that is in the line; None: the line is as typed."""
        self._head = self._tail = ""
        """The text before and after the cursor while completions are tried."""

    def compose(self) -> ComposeResult:
        yield _Choices()
        with Horizontal():
            yield Label("", markup=False)
            yield _PromptInput(compact=True, select_on_focus=False)
            yield Label("", id="preview", markup=False)

    def open(
        self,
        label: str,
        then: Callable[[str], object],
        value: str = "",
        *,
        complete: Complete | None = None,
        history: str | None = None,
        preview: Callable[[str], str] | None = None,
        accept: str = "Accept",
    ) -> None:
        """Ask the user for one line; ``accept`` says in a word what Enter does with it.

        ``complete`` returns the completions of the text before the cursor (each replaces all of that text); ``history``
        is the name of the history that Up and Down go through; ``preview`` says shortly, behind the line, what it would
        do while it is typed.
        """
        if not self.has_class("open"):
            self._before = self.screen.focused
        self._then, self._complete, self._preview = then, complete, preview
        self._history = History(history) if history else None
        self._accepting = accept
        self._back, self._typed = 0, value
        self.query_one(Label).update(label)
        self._show_line(shown=True)
        line = self._line
        line.suggester = _Ghost(complete) if complete else None
        self._write(value)
        line.focus()
        self._offer()
        self._show_preview()

    def keys(self) -> Iterator[tuple[str, str, str]]:
        """The keys of the prompt for the line at the bottom: name, what it does, and Textual's name of the key."""
        yield "Enter", self._accepting, "enter"
        yield "Esc", "Cancel", "escape"
        if self._complete:
            yield "Tab", "Complete", "tab"
        if self._history:
            yield "↑", "Older line", "up"
            yield "↓", "Newer line", "down"

    @property
    def _line(self) -> _PromptInput:
        return self.query_one(_PromptInput)

    def _write(self, value: str, cursor: int | None = None) -> None:
        line = self._line
        # This change was not typed: it must not end the walk through the completions or the history.
        with line.prevent(Input.Changed):
            line.value = value
        line.cursor_position = len(value) if cursor is None else cursor

    # -- the end ----------------------------------------------------------------------------------------

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        then = self._then
        if self._history:
            self._history.add(event.value)
        self.action_cancel()
        if then:
            then(event.value)

    def action_cancel(self) -> None:
        before, self._before, self._then = self._before, None, None
        if before is not None and before.is_attached and before.focusable:
            # Remove it at once: the callback may remove the focused widget.
            self.screen.set_focus(before)
        else:
            self.screen.set_focus(None)
        self._show_line(shown=False)

    def _show_line(self, *, shown: bool) -> None:
        self.set_class(shown, "open")
        if not shown:
            self.post_message(self.Closed())
        self.screen.set_class(shown, "asking")  # the widgets around it make room, and do not handle its keys
        self.screen.refresh_bindings()

    def on_descendant_blur(self) -> None:
        # A click elsewhere cancels the prompt; that the terminal loses the focus does not.
        self.call_after_refresh(self._leave)

    def _leave(self) -> None:
        if not self.is_attached:
            return  # the screen was left meanwhile
        focused = self.screen.focused
        if self.has_class("open") and focused is not None and self not in focused.ancestors_with_self:
            self._then = self._before = None
            self._show_line(shown=False)

    # -- completion -------------------------------------------------------------------------------------

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._back, self._typed = 0, event.value
        self._offer()
        if self._preview:
            if self._pause:
                self._pause.stop()
            self._pause = self.set_timer(PAUSE, self._show_preview)

    def _show_preview(self) -> None:
        shown = self._preview(self._line.value) if self._preview and self.has_class("open") else ""
        self.query_one("#preview", Label).update(shown)

    def _offer(self) -> None:
        line = self._line
        self._head, self._tail = line.value[: line.cursor_position], line.value[line.cursor_position :]
        self._offered, self._at = (self._complete(self._head) if self._complete else []), None
        self._show()

    def _show(self) -> None:
        # Only the last word: the text before it is the same in all completions.
        lines = [self._head, *self._offered]
        low, high = min(lines), max(lines)
        same = next((at for at, (one, other) in enumerate(zip(low, high, strict=False)) if one != other), len(low))
        cut = low.rfind(" ", 0, same) + 1
        self.query_one(_Choices).offer([clean(completion[cut:]) for completion in self._offered], self._at)

    def _take(self, place: int) -> None:
        line = self._offered[place]
        self._write(line + self._tail, len(line))
        if len(self._offered) == 1:
            self._offer()
        else:
            self._at = place
            self._show()

    def on__prompt_input_pressed(self, event: _PromptInput.Pressed) -> None:
        event.stop()
        if event.what == "history":
            self._walk(event.direction)
            return
        if self._at is None:
            self._offer()  # the cursor may have moved
        number = len(self._offered)
        if number:
            first = 0 if event.direction > 0 else number - 1
            self._take(first if self._at is None else (self._at + event.direction) % number)

    def on__choices_clicked(self, event: _Choices.Clicked) -> None:
        event.stop()
        if 0 <= event.place < len(self._offered):
            self._take(event.place)
            self._offer()

    # -- what was typed before --------------------------------------------------------------------------

    def _walk(self, direction: int) -> None:
        lines = self._history.lines if self._history else []
        back = max(0, min(self._back - direction, len(lines)))
        if back != self._back:
            self._back = back
            self._write(lines[-back] if back else self._typed)
            self._offered, self._at = [], None
            self._show()

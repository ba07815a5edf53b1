"""Reading a long capture shows on a terminal how far it is, and nothing elsewhere."""

from __future__ import annotations

import io

from rich.console import Console

from inspector.cli.reading import STRIDE, shown
from inspector.text import clean

ITEMS = range(3 * STRIDE)


def console(*, terminal: bool) -> tuple[Console, io.StringIO]:
    file = io.StringIO()
    return Console(file=file, force_terminal=terminal, width=100), file


def test_a_bar_is_shown_and_taken_away_again() -> None:
    on, file = console(terminal=True)
    assert list(shown(ITEMS, len(ITEMS), on, after=0)) == list(ITEMS)
    text = file.getvalue()
    assert "reading record 200 of 300" in clean(text)
    assert "━" in text
    assert text.endswith("\x1b[2K"), "the line is erased"


def test_nothing_is_shown_of_what_is_quick_or_in_a_pipe() -> None:
    for terminal, after in ((True, 60.0), (False, 0.0)):
        on, file = console(terminal=terminal)
        assert list(shown(ITEMS, len(ITEMS), on, after=after)) == list(ITEMS)
        assert file.getvalue() == ""


def test_it_ends_with_what_it_reads() -> None:
    on, file = console(terminal=True)
    for item in shown(ITEMS, len(ITEMS), on, after=0):
        if item == STRIDE:
            break
    assert "\x1b[?25h" in file.getvalue(), "the cursor is visible again"

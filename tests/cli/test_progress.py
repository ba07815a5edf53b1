"""Long work shows on a terminal how far it is, and nothing elsewhere."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from inspector.cli import progress
from inspector.cli.progress import shown
from inspector.errors import InspectorError
from inspector.text import clean, size

ERASED = "\x1b[2K"
CURSOR = "\x1b[?25h"


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "INTERVAL", 0.0)


def console(*, terminal: bool, width: int = 100) -> tuple[Console, io.StringIO]:
    file = io.StringIO()
    return Console(file=file, force_terminal=terminal, width=width), file


def test_a_bar_is_shown_and_taken_away_again() -> None:
    on, file = console(terminal=True)
    with shown(on, after=0) as watch:
        for done in range(300):
            watch(done, 300)
    text = file.getvalue()
    assert "reading record 200 of 300" in clean(text)
    assert "━" in text
    assert " left" in text
    assert text.endswith(ERASED)


def test_nothing_is_shown_of_what_is_quick_or_in_a_pipe() -> None:
    for terminal, after in ((True, 60.0), (False, 0.0)):
        on, file = console(terminal=terminal)
        with shown(on, after=after) as watch:
            watch(1, 2)
        assert file.getvalue() == ""


def test_a_colour_that_somebody_wants_in_a_pipe_is_no_bar(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    with shown(after=0) as watch:
        watch(1, 2)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("error", [InspectorError("no"), KeyboardInterrupt()])
def test_it_ends_with_the_work(error: BaseException) -> None:
    on, file = console(terminal=True)

    def work() -> None:
        with shown(on, after=0) as watch:
            watch(1, 2)
            raise error

    with pytest.raises(type(error)):
        work()
    assert CURSOR in file.getvalue()
    assert file.getvalue().endswith(ERASED)


def test_what_is_done_is_not_shown_any_more() -> None:
    """So that what is printed next has the line to itself."""
    on, file = console(terminal=True)
    with shown(on, after=0) as watch:
        watch(1, 2)
        watch(2, 2)
        assert file.getvalue().endswith(ERASED)
        watch(3, 9, "merging record")
        assert "merging record 3 of 9" in clean(file.getvalue())


def test_each_step_has_its_own_words() -> None:
    on, file = console(terminal=True)
    with shown(on, after=0) as watch:
        watch(100, 300)
        watch(1_000_000, 3_000_000, "copying", size)
    lines = re.split(r"[\r\n]", file.getvalue())
    assert any("reading record 100 of 300" in line for line in lines)
    assert any("copying 1.0 MB of 3.0 MB" in line for line in lines)
    assert not any("reading" in line and "copying" in line for line in lines)


@pytest.mark.parametrize("width", [40, 80])
def test_it_fits_on_one_line(width: int) -> None:
    on, file = console(terminal=True, width=width)
    with shown(on, after=0) as watch:
        watch(123_456, 300_000)
        watch(123_457, 300_000)
    drawn = [re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", line) for line in re.split(r"[\r\n]", file.getvalue())]
    assert max(map(len, drawn)) <= width
    assert any("record 123,457 of 300,000" in line for line in drawn)

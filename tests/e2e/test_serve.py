"""``demo --serve``: a lab to try things in, with the inspector on it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.tui.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DOWN, ENTER = "\x1b[B", "\r"


@pytest.mark.slow
def test_it_shows_what_is_broken_and_breaks_something_else(tmp_path: Path) -> None:
    command = ("-m", "inspector.cli", "demo", "--serve", "--fault", "catalog-error", "-o", "lab.sqlite")
    with Terminal(*command, size=(120, 40), cwd=tmp_path) as terminal:
        terminal.wait_for("1 node failing, 2 nodes completed")
        terminal.wait_for("lab: catalog-error")
        at = len(terminal.drawn)
        terminal.press("D")
        terminal.wait_for("Break something in the lab", at)
        terminal.press(DOWN)  # the fault after it
        terminal.press(ENTER)
        terminal.wait_for("lab: missing-file", at)
        terminal.wait_for("F02", at)
        terminal.press("q")
        assert terminal.exit_status() == 0
        assert "The capture is" in terminal.text(at)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["lab.sqlite", "lab.sqlite.index"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--serve",), "not a terminal"),
        (("--serve", "--fault", "nothing"), "There is no fault 'nothing'"),
    ],
)
def test_what_it_cannot_do_is_one_sentence(
    run: Callable[..., tuple[int, str, str]], arguments: tuple[str, ...], words: str
) -> None:
    status, out, err = run("demo", *arguments)
    assert (status, out) == (2, "")
    assert words in err
    assert err.count("\n") <= 2

"""The proxy records and the terminal inspector shows it, at the same time, on one capture."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.proxies import ONE_PROXY
from tests.tui.terminal import Terminal

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.lab import Lab
    from tests.support.proxies import Proxied

ENTER, LAST = "\r", "\x1b[F"


@ONE_PROXY
def test_a_run_appears_while_it_happens(lab: Lab, proxied: Proxied, capture: Path) -> None:
    with proxied(lab):
        first = lab.agent("first.example").run()
        assert first.status in (0, 2), first.log
        with Terminal("-m", "inspector.cli", "open", str(capture), size=(160, 48)) as terminal:
            terminal.wait_for("All runs")
            terminal.press("r")
            terminal.wait_for("first.example")
            at = len(terminal.drawn)
            second = lab.agent("second.example").run()
            assert second.status in (0, 2), second.log
            terminal.wait_for("second.example", at)
            terminal.press(LAST)
            at = len(terminal.drawn)
            terminal.press(ENTER)
            terminal.wait_for("of second.example", at)
            terminal.wait_for("complete in", at)
            # It is opened once more while the proxy lives: nothing that reads keeps it from writing.
            third = lab.agent("third.example").run()
            assert third.status in (0, 2), third.log
            terminal.press("\x1b")
            terminal.wait_for("third.example", at)
            terminal.press("q")
            assert terminal.exit_status() == 0

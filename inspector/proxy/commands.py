"""Commands for mitmproxy's and mitmweb's command bar: ``puppet.runs`` and ``puppet.check`` say what the capture that is
being recorded comes to so far.

What ``puppet-inspector runs`` and ``check`` print appears in the event log. A process of its own reads the capture:
agents never wait for the analysis.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Any

from mitmproxy import command, exceptions
from mitmproxy import ctx as _untyped
from mitmproxy.log import ALERT

from inspector import installation
from inspector.text import clean

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ctx: Any = _untyped
"""mitmproxy's context; its options carry no types."""

MOST = 500
"""Lines of an answer that are logged; the last one always is."""


class PuppetCommands:
    """The addon with the commands."""

    def __init__(self, capture: Callable[[], Path | None]) -> None:
        """``capture`` tells what is being recorded; None: nothing yet."""
        self._capture = capture
        self._tasks: set[asyncio.Task[None]] = set()

    @command.command("puppet.runs")  # type: ignore[untyped-decorator]
    def runs(self) -> None:
        """The agents' runs so far, and how they ended, in the event log."""
        self._ask("runs")

    @command.command("puppet.check")  # type: ignore[untyped-decorator]
    def check(self) -> None:
        """What deviates from the protocol so far, why, and what to do, in the event log."""
        rules = ctx.options.puppet_rules if "puppet_rules" in ctx.options else ""
        self._ask("check", "--fail-on", "never", *(["--rules", rules] if rules else []))

    def done(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _ask(self, *words: str) -> None:
        capture = self._capture()
        if capture is None:
            raise exceptions.CommandError("Nothing is being recorded.")
        task = asyncio.get_running_loop().create_task(_tell([*words, "--", str(capture)]))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


async def _tell(words: list[str]) -> None:
    # Not from the directory that we are in (-P): anybody may have put something there.
    process = await asyncio.create_subprocess_exec(
        *installation.command("inspector.cli.main", *words),
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        said, _ = await process.communicate()
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    *lines, last = said.decode(errors="replace").rstrip("\n").split("\n")
    for line in lines[:MOST]:
        logging.info(clean(line.replace("\t", "  ")))
    if len(lines) > MOST:
        logging.info(f"... {len(lines) - MOST} lines more: puppet-inspector {' '.join(words)}")
    # The status line shows this one, for a moment.
    logging.log(ALERT, clean(last.replace("\t", "  ")))

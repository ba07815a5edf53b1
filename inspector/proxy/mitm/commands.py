"""Commands for mitmproxy's and mitmweb's command bar: ``puppet.runs`` and ``puppet.check`` print the output of
``puppet-inspector runs`` and ``check`` for the current capture, or for the flows that were read, into the event log.

A separate process reads the capture, so that agents never wait for the analysis.
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
from inspector.errors import InspectorError
from inspector.proxy import options
from inspector.text import clean

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

ctx: Any = _untyped
"""mitmproxy's context; its options have no type annotations."""

MAX_LINES = 500
"""Lines of output that are logged, besides the last one, which always is."""


class PuppetCommands:
    """The addon with the commands."""

    def __init__(self, capture: Callable[[], Awaitable[Path] | None]) -> None:
        """``capture`` returns the current capture; None if there is none yet."""
        self._capture = capture
        self._tasks: set[asyncio.Task[None]] = set()

    @command.command("puppet.runs")  # type: ignore[untyped-decorator]
    def runs(self) -> None:
        """Print the agents' runs so far, and how they ended, into the event log."""
        self._start("runs", *options.rules_options(ctx.options))

    @command.command("puppet.check")  # type: ignore[untyped-decorator]
    def check(self) -> None:
        """Print what deviates from the protocol so far, why, and how to fix it, into the event log."""
        self._start("check", *check_options())

    def done(self) -> None:
        for task in self._tasks:
            task.cancel()

    def _start(self, *arguments: str) -> None:
        capture = self._capture()
        if capture is None:
            raise exceptions.CommandError("Nothing has been recorded or read yet.")
        task = asyncio.get_running_loop().create_task(_log_output([*arguments], capture))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def check_options() -> tuple[str, ...]:
    """Return the options with which ``check`` applies the rules of this mitmproxy."""
    return "--fail-on", "never", *options.rules_options(ctx.options)


async def run(arguments: list[str], errors: int = asyncio.subprocess.PIPE) -> tuple[int, bytes, bytes]:
    """Run a command of puppet-inspector; return its exit status, output and errors."""
    # Not from the current directory (-P): it may contain modules of anybody.
    process = await asyncio.create_subprocess_exec(
        *installation.command("inspector.cli.main", *arguments),
        stdin=asyncio.subprocess.DEVNULL, stdout=asyncio.subprocess.PIPE, stderr=errors,
    )  # fmt: skip
    try:
        output, messages = await process.communicate()
    finally:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
    return process.returncode or 0, output, messages or b""


async def lines_of(arguments: list[str]) -> list[str]:
    """Return what a command of puppet-inspector prints."""
    _, output, _ = await run(arguments, asyncio.subprocess.STDOUT)
    return [clean(line) for line in output.decode(errors="replace").rstrip("\n").split("\n")]


async def _log_output(arguments: list[str], capture: Awaitable[Path]) -> None:
    try:
        arguments = [*arguments, "--", str(await capture)]
    except InspectorError as error:
        logging.warning(error)
        return
    *lines, last = await lines_of(arguments)
    for line in lines[:MAX_LINES]:
        logging.info(line)
    if len(lines) > MAX_LINES:
        logging.info(f"... {len(lines) - MAX_LINES} more lines: puppet-inspector {' '.join(arguments)}")
    # The status line shows the last line for a moment.
    logging.log(ALERT, last)

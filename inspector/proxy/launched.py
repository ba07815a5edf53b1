"""What ``launcher`` and `run` start: a process that ends when the one that started it is gone, however that ended.

Without it a closed terminal or a killed process would leave a proxy behind that listens and has keys, or an agent that
waits for its certificate and goes on to ask a proxy that is gone, and whoever listens there next.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys

from inspector import processes

CANNOT_RUN = 126
"""The exit status of a shell for a file that is no program."""


def main(argv: list[str]) -> int | None:
    """Run with ``PARENT MODULE:FUNCTION ARGUMENTS...``: the number of the process that started this one, and what is
    called with the arguments."""
    processes.end_with(int(argv[0]), signal.SIGTERM)
    module, _, function = argv[1].partition(":")
    status: int | None = getattr(importlib.import_module(module), function)(argv[2:])
    return status


def execute(command: list[str]) -> int:
    """Become the command, an agent's."""
    try:
        os.execvp(command[0], command)  # noqa: S606 - no shell is wanted
    except OSError as error:
        print(f"puppet-inspector: {command[0]} cannot be run: {error.strerror}.", file=sys.stderr)
        return CANNOT_RUN

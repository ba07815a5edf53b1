"""What `run` starts: an agent that ends with `run`, however that ends.

Else an agent that waits for its certificate would go on to ask a proxy that is gone, and whoever listens there next.
"""

from __future__ import annotations

import os
import signal
import sys

from inspector import processes

CANNOT_RUN = 126
"""The exit status of a shell for a file that is no program."""


def main(argv: list[str]) -> int:
    """Become the command: ``PARENT COMMAND...``, with the number of the process that started this one."""
    processes.end_with(int(argv[0]), signal.SIGTERM)
    try:
        os.execvp(argv[1], argv[1:])  # noqa: S606 - no shell is wanted
    except OSError as error:
        print(f"puppet-inspector: {argv[1]} cannot be run: {error.strerror}.", file=sys.stderr)
        return CANNOT_RUN

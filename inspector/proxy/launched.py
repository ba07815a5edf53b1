"""What ``launcher`` starts: a proxy that ends, in order, when the process that started it is gone, however that ended.

Without it a closed terminal or a killed process would leave a proxy behind that listens and has keys.
"""

from __future__ import annotations

import importlib
import signal

from inspector import processes


def main(argv: list[str]) -> int | None:
    """Run with ``PARENT MODULE:FUNCTION ARGUMENTS...``: the number of the process that started this one, and what is
    called with the arguments."""
    processes.end_with(int(argv[0]), signal.SIGTERM)
    module, _, function = argv[1].partition(":")
    status: int | None = getattr(importlib.import_module(module), function)(argv[2:])
    return status

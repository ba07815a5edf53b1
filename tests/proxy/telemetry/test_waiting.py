"""What waits in each worker, in memory that processes share."""

from __future__ import annotations

import subprocess
import sys

from inspector.proxy.telemetry.waiting import Waiting, reporter

CODE = """
import sys
from inspector.proxy.telemetry.waiting import reporter
reporter(int(sys.argv[1]), 1)(4)
"""


def test_the_numbers_of_all_processes_are_added() -> None:
    waiting = Waiting(2)
    report = reporter(waiting.descriptor, 0)
    report(3)
    assert waiting.total() == 3
    subprocess.run([sys.executable, "-c", CODE, str(waiting.descriptor)], pass_fds=[waiting.descriptor], check=True)
    assert waiting.total() == 7
    report(0)
    assert waiting.total() == 4
    waiting.close()

"""A process beside the proxy: when it is started again, what it leaves out, and how long a record may take it."""

from __future__ import annotations

import signal
import subprocess
import sys

from inspector import installation
from inspector.proxy import side_process
from inspector.proxy.side_process import Restarts


def test_the_pauses_grow_and_begin_again_after_a_process_that_lived_long() -> None:
    restarts = Restarts()
    pauses = []
    for _ in range(9):
        restarts.note(1.0)
        pauses.append(restarts.pause)
    assert pauses == [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0, 60.0]
    restarts.note(side_process.LONG + 1)
    assert (restarts.pause, restarts.deaths) == (1.0, 1)


def test_a_record_is_left_out_when_it_takes_too_long_or_at_the_second_death() -> None:
    restarts = Restarts()
    assert restarts.gives_up(7, -signal.SIGPROF)
    assert not restarts.gives_up(8, -signal.SIGKILL)
    assert not restarts.gives_up(9, 1)
    assert restarts.gives_up(9, 1)
    assert not restarts.gives_up(0, 1)
    assert not restarts.gives_up(0, -signal.SIGPROF), "it was at no record"


def test_a_record_that_takes_too_long_ends_the_process() -> None:
    code = f"""
import sys; sys.path.insert(0, {str(installation.PACKAGE.parent)!r})
from inspector.proxy import side_process
side_process.limit(0.05)
sum(range(10**12))  # in one call of a library
"""
    status = subprocess.run([sys.executable, "-c", code], check=False).returncode
    assert side_process.took_too_long(status)

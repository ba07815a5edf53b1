"""How much Python does, counted: the same on each machine, where seconds are not.

A test of what may cost no more than its share compares the work for some input with that for twice as much.
What a library does in C is not counted: its times are in the benchmarks.
"""

import sys
from collections.abc import Callable

_EVENTS = sys.monitoring.events
_COUNTED = (_EVENTS.PY_START, _EVENTS.PY_RESUME, _EVENTS.CALL, _EVENTS.JUMP)
_ID = 4  # 0 to 2 belong to debuggers, coverage and profilers, 5 to optimizers


def work_of(work: Callable[[], object]) -> int:
    """The calls and the jumps (each round of a loop is one) that Python makes in `work`."""
    count = 0

    def one(*_: object) -> None:
        nonlocal count
        count += 1

    sys.monitoring.use_tool_id(_ID, "work")
    try:
        for event in _COUNTED:
            sys.monitoring.register_callback(_ID, event, one)
        sys.monitoring.set_events(_ID, sum(_COUNTED))
        work()
    finally:
        sys.monitoring.set_events(_ID, 0)
        sys.monitoring.free_tool_id(_ID)
    return count

"""What each test function costs in CPU seconds, on however busy a machine: what is slow is decided by that.

    pytest -n 0 -m "not slow" -p tests.support.cpu_seconds

Processes that a test starts and waits for count, and fixtures for the test that needs them first.
"""

from __future__ import annotations

import os
from collections import defaultdict
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Generator

LEAST = 0.5
"""Seconds of a function that is listed."""
_spent: defaultdict[str, float] = defaultdict(float)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, bool, bool]:
    began = sum(os.times()[:4])
    try:
        return (yield)
    finally:
        _spent[item.nodeid.partition("[")[0]] += sum(os.times()[:4]) - began


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    terminalreporter.section(f"{sum(_spent.values()):.0f} CPU seconds")
    for name, seconds in sorted(_spent.items(), key=lambda spent: -spent[1]):
        if seconds >= LEAST:
            terminalreporter.line(f"{seconds:8.1f} {name}")

"""Options and fixtures of the whole test suite."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, settings

if TYPE_CHECKING:
    from pathlib import Path

type Run = Callable[..., tuple[int, str, str]]

# On a busy machine every example is slow.
settings.register_profile("patient", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("patient")


# What a shell lets its background ignore, and nohup; what tests start would ignore it, too.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--update-golden", action="store_true", help="write tests/golden anew instead of comparing")


# -- what a worker of pytest-xdist takes at once ------------------------------------------------------------

REAL = "tests/real/"
OWN_MASTERS = {f"{REAL}test_{name}.py" for name in ("tap", "renewal", "readiness", "clean_debian", "library")}
"""Tests with real Puppet that do not need the master which the others share."""


FIRST = (REAL, "tests/test_packages.py", "tests/e2e/", "tests/tui/")


def unit(nodeid: str) -> str:
    """Name what is given to one worker as a whole: a module, so that it makes what is of a module once.

    Tests with real Puppet are two units, of which one shares a master; a test with a proxy takes long enough to be one.
    """
    module = nodeid.partition("::")[0]
    if module.startswith(REAL):
        return "real, own masters" if module in OWN_MASTERS else "real, one master"
    return nodeid if module.startswith("tests/e2e/") else module


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give the workers units instead of single tests."""
    from xdist.scheduler import LoadScopeScheduling

    class Units(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return unit(nodeid)

    config.option.loadscopereorder = False
    return Units(config, log)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return one worker a processor, and two more for real Puppet, which is waited for most of the time."""
    return len(os.sched_getaffinity(0)) + (0 if config.option.markexpr == "not slow" else 2)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes a worker the longest: begun last, it would leave the others with nothing to do."""
    items.sort(key=lambda item: next((rank for rank, start in enumerate(FIRST) if item.nodeid.startswith(start)), 9))


# -- fixtures -----------------------------------------------------------------------------------------------


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> Callable[[Path, str], None]:
    """Compares a text with a golden file, or writes that file when asked to."""

    def compare(path: Path, text: str) -> None:
        if request.config.getoption("--update-golden"):
            path.write_text(text)
        assert path.is_file(), f"{path} is missing: look at the text and run pytest --update-golden"
        assert text == path.read_text()

    return compare


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """Runs a command in this process: exit status, stdout, stderr."""

    from inspector.cli import main as cli

    def call(*argv: object) -> tuple[int, str, str]:
        try:
            status = cli.main([str(argument) for argument in argv])
        except SystemExit as ended:
            status = int(ended.code or 0)
        out, err = capsys.readouterr()
        return status, out, err

    return call

"""Options and fixtures of the whole test suite."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterable, Mapping
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

REAL, END_TO_END = "tests/real/", "tests/e2e/"
REAL_WORKERS = 2
"""How many take tests with real Puppet, as long as there are others for the rest: each starts a master of its own."""
LONGEST = (f"{REAL}test_tap", f"{REAL}test_as_http", f"{REAL}test_faults", f"{REAL}test_clean", REAL,
           "tests/test_", "tests/runs/test_properties", END_TO_END, "tests/tui/", "tests/fleet/")  # fmt: skip
"""What takes a worker long. Begun last, it would leave the others with nothing to do."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with what takes long."""
    items.sort(key=lambda item: next((rank for rank, path in enumerate(LONGEST) if item.nodeid.startswith(path)), 99))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Return one worker a processor, and one more, as tests wait now and then, or those for real Puppet, which mostly
    wait."""
    return len(os.sched_getaffinity(0)) + (1 if config.option.markexpr == "not slow" else REAL_WORKERS)


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give a worker a module at once, so that what is made for a module is made once."""
    from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]

    class Modules(LoadScopeScheduling):  # type: ignore[misc]
        def _split_scope(self, nodeid: str) -> str:
            # A test with a proxy is long enough to be given alone.
            return nodeid if nodeid.startswith(END_TO_END) else nodeid.partition("::")[0]

        def _assign_work_unit(self, node: Any) -> None:
            real = node in self.nodes[:REAL_WORKERS]
            fitting = (name for name in self.workqueue if name.startswith(REAL) == real)
            if name := next(fitting, None):
                self.workqueue.move_to_end(name, last=False)
            super()._assign_work_unit(node)

    config.option.loadscopereorder = False
    return Modules(config, log)


# -- what a session could not play ---------------------------------------------------------------------------


def not_had(stats: Mapping[str, Iterable[Any]]) -> str:
    """Return what the reports of a session say of other releases of Debian, and of an openvox-ca, that could not be
    had, in one line."""
    from tests.real import openvox_ca, releases

    reports = (report for kind in ("skipped", "failed", "error") for report in stats.get(kind, ()))
    texts = (f"{report.longrepr[2]}" if isinstance(report.longrepr, tuple) else report.longreprtext
             for report in reports if report.longrepr)  # fmt: skip
    begins = rf"(?:{releases.NOT_HAD}|{openvox_ca.NOT_HAD}).*"
    reasons = [found[0].rstrip(".:'") for text in texts if (found := re.search(begins, text))]
    return f"NOT PLAYED with other versions of Puppet: {'; '.join(dict.fromkeys(reasons))}" if reasons else ""


@pytest.hookimpl(trylast=True)
def pytest_unconfigure(config: pytest.Config) -> None:
    """Say in the last line what could not be played. (Workers of pytest-xdist have no terminal.)"""
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and (line := not_had(reporter.stats)):
        reporter.write_line(line, red=True)


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

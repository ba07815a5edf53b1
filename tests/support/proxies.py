"""Proxies under test: where they listen, what they are given, and what they recorded."""

from __future__ import annotations

import os
import socket
from typing import TYPE_CHECKING

import pytest

from inspector.analysis.analyzer import Analyzer
from inspector.capture.store import Capture
from inspector.cli import demo
from inspector.model import Exchange

if TYPE_CHECKING:
    from contextlib import AbstractContextManager
    from pathlib import Path
    from typing import Protocol

    from inspector.lab import Lab
    from inspector.model import Record
    from inspector.proxy.launcher import Proxy

    class Proxied(Protocol):
        """Starts the proxy for a lab; ``options`` replace those of the demo."""

        def __call__(
            self, lab: Lab, *arguments: str, **options: str | Path | tuple[str, ...]
        ) -> AbstractContextManager[Proxy]: ...


HOST = f"127.{1 + os.getpid() // 250 // 250 % 250}.{os.getpid() // 250 % 250}.{1 + os.getpid() % 250}"
"""Where the proxies of this process listen: no other process looks for a free port there at the same time."""
APART = ("127.0.0.2", "127.0.0.4")
"""Of two workers these addresses meet one each (test_reuseport)."""


ONE_PROXY = pytest.mark.parametrize("own", [True], ids=["proxy"], indirect=True)
"""A test of what both proxies share (the recorder, keys and CRLs that change, what records mean): one plays it."""


def options(lab: Lab, capture: Path) -> dict[str, str | Path]:
    """The options of the demo, at an address that no other test looks for a port at."""
    return {**demo.options(lab, capture), "puppet_listen": HOST}


def free_port() -> int:
    """A port at ``HOST`` that nothing listens on."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def records(capture: Path) -> list[Record]:
    """What a capture holds."""
    with Capture.open(capture) as opened:
        return list(opened.records())


def exchanges(capture: Path) -> list[Exchange]:
    """The requests in it, with their answers."""
    return [record for record in records(capture) if isinstance(record, Exchange)]


def analyzed(capture: Path) -> Analyzer:
    """A capture, understood."""
    analyzer = Analyzer()
    for record in records(capture):
        step = analyzer.feed(record)
        assert not step.trouble
    analyzer.finish()
    return analyzer

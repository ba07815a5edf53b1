"""The lab with the real proxy in the middle."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from inspector.analysis.analyzer import Analyzer
from inspector.capture.store import Capture
from inspector.cli import demo
from inspector.lab import Lab
from inspector.proxy.launcher import Proxy

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from pathlib import Path
    from typing import Protocol

    from inspector.model import Exchange, Record

    class Proxied(Protocol):
        """Starts the proxy for a lab; ``options`` replace those of the demo."""

        def __call__(self, lab: Lab, *arguments: str, **options: str | Path) -> AbstractContextManager[Proxy]: ...


APART = ("127.0.0.2", "127.0.0.4")
"""Of two workers these addresses meet one each (test_affinity)."""


@pytest.fixture(scope="session")
def answers() -> list[Exchange]:
    """The sample that the lab's master answers from."""
    return demo.recorded()


@pytest.fixture
def lab(answers: list[Exchange]) -> Iterator[Lab]:
    """A lab whose agents are signed at once."""
    with Lab(answers=answers, autosign=True) as started:
        yield started


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    """Where the proxy records."""
    return tmp_path / "captures" / "test.sqlite"


@pytest.fixture
def own() -> bool:
    """Whether the proxy is `puppet-inspector proxy`; else it is mitmdump with the addon."""
    return False


@pytest.fixture
def proxied(capture: Path, own: bool) -> Proxied:
    """Starts proxies that record in ``capture``."""

    @contextmanager
    def start(lab: Lab, *arguments: str, **options: str | Path) -> Iterator[Proxy]:
        with Proxy({**demo.options(lab, capture), **options}, arguments=arguments, own=own) as proxy:
            lab.proxy_address = proxy.address
            yield proxy

    return start


def records(capture: Path) -> list[Record]:
    """What a capture holds."""
    with Capture.open(capture) as opened:
        return list(opened.records())


def analyzed(capture: Path) -> Analyzer:
    """A capture, understood."""
    analyzer: Any = Analyzer()
    for record in records(capture):
        step = analyzer.feed(record)
        assert not step.trouble
    analyzer.finish()
    return analyzer  # type: ignore[no-any-return]

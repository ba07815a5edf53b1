"""The lab with the real proxy in the middle."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from inspector.cli import demo
from inspector.lab import Lab
from inspector.proxy.launcher import Proxy
from tests.support import proxies

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from inspector.model import Exchange
    from tests.support.proxies import Proxied


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
        with Proxy({**proxies.options(lab, capture), **options}, arguments=arguments, own=own) as proxy:
            lab.proxy_address = proxy.address
            yield proxy

    return start

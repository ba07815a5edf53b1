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

QUICK = {
    "test_a_bootstrap_and_a_run_go_through",
    "test_a_verified_agent_is_itself",
    "test_no_identity_is_used_for_an_unverified_agent",
    "test_a_run_appears_while_it_happens",
}
"""One of each kind: a run through the proxy, an identity used and refused, the terminal inspector beside it."""


def pytest_itemcollected(item: pytest.Item) -> None:
    """All but a few are slow: each starts a proxy, and some two."""
    if item.name.partition("[")[0] not in QUICK:
        item.add_marker(pytest.mark.slow)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Give a test ``own``: whether its proxy is `puppet-inspector proxy`; else it is mitmdump with the addon.

    Both stand on the same parts, so only where mitmdump's road has code of its own is a test tried on it as well: hooks
    of TLS and HTTP, limits, faults, CONNECT.
    """
    given = [mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")]
    if "own" in metafunc.fixturenames and not any("own" in names for names in given):
        both = metafunc.definition.get_closest_marker("both_roads") is not None
        roads = {"mitmdump": False, "proxy": True} if both else {"proxy": True}
        metafunc.parametrize("own", roads.values(), ids=roads)


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
def proxied(capture: Path, own: bool) -> Proxied:
    """Starts proxies that record in ``capture``."""

    @contextmanager
    def start(lab: Lab, *arguments: str, **options: str | Path | tuple[str, ...]) -> Iterator[Proxy]:
        with Proxy({**proxies.options(lab, capture), **options}, arguments=arguments, own=own) as proxy:
            lab.proxy_address = proxy.address
            yield proxy

    return start

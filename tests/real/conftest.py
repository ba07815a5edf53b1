"""Fixtures of the end-to-end tests with real Puppet: one master per session, any number of agents.

Where real Puppet cannot be run the tests are skipped and say why; with the environment variable
PUPPET_INSPECTOR_REAL=required they fail instead, so that CI cannot pass without having run them.
"""

from __future__ import annotations

import os
from contextlib import ExitStack
from typing import TYPE_CHECKING, Protocol

import pytest

from tests.real.puppet import RealAgent, RealMaster, host_names, missing

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MASTER_NAME, PROXY_NAME = "master.example", "proxy.example"
PROXY_HOST = "127.0.0.1"


class AgentFactory(Protocol):
    """A new agent; its certname resolves to `PROXY_HOST`, so that it can be the name of a proxy too."""

    def __call__(self, certname: str, *, invented_facts: bool = True, keylength: int = 2048) -> RealAgent: ...


@pytest.fixture(scope="session")
def master() -> Iterator[RealMaster]:
    """A running puppetserver (ready after some 25 s), whose certificate is also good for `PROXY_NAME`."""
    if reason := missing():
        if os.environ.get("PUPPET_INSPECTOR_REAL") == "required":
            pytest.fail(reason)
        pytest.skip(reason)
    with host_names({PROXY_NAME: PROXY_HOST}), RealMaster(MASTER_NAME, [PROXY_NAME]) as running:
        yield running


@pytest.fixture
def agent_factory(master: RealMaster, tmp_path: Path) -> Iterator[AgentFactory]:
    """Makes agents without a certificate; names that begin with "auto" are signed at once."""
    with ExitStack() as stack:

        def make(certname: str, *, invented_facts: bool = True, keylength: int = 2048) -> RealAgent:
            stack.enter_context(host_names({certname: PROXY_HOST}))
            base = tmp_path / certname
            return RealAgent(base, certname, invented_facts=invented_facts, keylength=keylength)

        yield make

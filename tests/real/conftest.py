"""Fixtures of the end-to-end tests with real Puppet: one master per session, any number of agents.

Where real Puppet cannot be run the tests are skipped and say why; with the environment variable
PUPPET_INSPECTOR_REAL=required they fail instead, so that CI cannot pass without having run them.
"""

from __future__ import annotations

import os
import shutil
from typing import TYPE_CHECKING, NoReturn

import pytest

from tests.real import openvox_ca, releases
from tests.real.machine import host_names, missing
from tests.real.openvox_ca import Compiler, OpenvoxCa
from tests.real.puppet import RealMaster
from tests.real.through import PROXY_HOST, PROXY_NAME, Stage

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.real.agent import RealAgent
    from tests.real.releases import System


MAKING = 300
"""Seconds that a directory of another release may take to make; a session that has none says so in its last line."""


def pytest_itemcollected(item: pytest.Item) -> None:
    """All are slow."""
    item.add_marker(pytest.mark.slow)
    item.add_marker(pytest.mark.timeout(1800))


@pytest.fixture(scope="session")
def master() -> Iterator[RealMaster]:
    """A running puppetserver (ready after some 25 s); `PROXY_NAME` has a certificate in its ssldir."""
    if reason := missing():
        _without(reason)
    with host_names({PROXY_NAME: PROXY_HOST}), RealMaster() as running:
        running.generate(PROXY_NAME)
        yield running


def _without(reason: str) -> NoReturn:
    """Skip a test that lacks what it needs, or fail it where it is required."""
    (pytest.fail if os.environ.get("PUPPET_INSPECTOR_REAL") == "required" else pytest.skip)(reason)


def _release(name: str) -> System:
    if os.geteuid() != 0 or not shutil.which("debootstrap"):
        _without(f"{releases.NOT_HAD} {name}: that needs root and debootstrap")
    try:
        return releases.stored(name, MAKING)
    except releases.TooSlow as error:
        pytest.skip(f"{error}")
    except RuntimeError as error:
        _without(f"{error}")


@pytest.fixture(scope="session")
def trixie() -> System:
    """Debian 13 in a directory: Puppet Server 8.7 and agent 8.10."""
    return _release("trixie")


@pytest.fixture(scope="session")
def sid() -> System:
    """Debian's next release in a directory: OpenVox 9's agent."""
    return _release("sid")


@pytest.fixture(scope="session")
def master8(trixie: System) -> Iterator[RealMaster]:
    """A running Puppet Server 8.7 that renews certificates: for three days, so that agents ask for it in each run."""
    renewing = {"allow-auto-renewal": True, "auto-renewal-cert-ttl": "3d", "ca-ttl": "3d"}
    with (
        host_names({PROXY_NAME: PROXY_HOST}),
        RealMaster("master8.example", host="127.0.8.1", system=trixie, ca_settings=renewing) as running,
    ):
        running.generate(PROXY_NAME)
        yield running


@pytest.fixture(scope="session")
def compiler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Compiler]:
    """A running puppetserver without a CA service, and the openvox-ca that is its agents' CA."""
    program = openvox_ca.program()
    if program is None:
        pytest.skip(f"{openvox_ca.NOT_HAD}: {openvox_ca.PROGRAM} names none")
    if reason := missing():
        _without(reason)
    base = tmp_path_factory.mktemp("openvox-ca")
    with (
        host_names({PROXY_NAME: PROXY_HOST}),
        OpenvoxCa(program, base, PROXY_NAME) as authority,
        Compiler(authority) as running,
    ):
        yield running


@pytest.fixture
def stage(master: RealMaster, tmp_path: Path) -> Iterator[Stage]:
    """Where a scenario is played."""
    stage = Stage(master, tmp_path)
    yield stage
    stage.close()


@pytest.fixture(scope="session")
def established(master: RealMaster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealAgent]:
    """An agent that has a certificate and has made its first run."""
    stage = Stage(master, tmp_path_factory.mktemp("steady"))
    agent = stage.enrolled("steady.example")
    stage.direct.run(agent)
    yield agent
    stage.close()


@pytest.fixture
def steady(master: RealMaster, established: RealAgent) -> RealAgent:
    """The established agent; its manifest is the demo module again, whatever a test before made of it."""
    master.demo(established.certname, established.target, notice=False)
    return established

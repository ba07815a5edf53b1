"""A CA, its master, and a node with what its agent trusts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inspector.lab.ca import LabCA
from inspector.lab.master import LabMaster
from inspector.proxy.connect.trust import NodeTrust

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from inspector.host.pki import SslDirPaths


@pytest.fixture
def ca() -> LabCA:
    return LabCA("puppet.example")


@pytest.fixture
def master(ca: LabCA, tmp_path: Path) -> Iterator[LabMaster]:
    """It is found as localhost."""
    with LabMaster(ca, ca.enrol(tmp_path / "master", "puppet.example", ["localhost"])) as running:
        yield running


@pytest.fixture
def place(ca: LabCA, tmp_path: Path) -> SslDirPaths:
    """The node's directory."""
    return ca.enrol(tmp_path / "ssl", "web1.example")


@pytest.fixture
def trust(place: SslDirPaths) -> NodeTrust:
    return NodeTrust(place.ca, place.crl, "chain")

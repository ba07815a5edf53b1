"""What agents of other hosts need that use the proxy as their HTTP proxy."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from cryptography import x509

from inspector.errors import InspectorError
from inspector.model import RUN_CA
from inspector.proxy import tls
from inspector.proxy.connect.interception import Way
from inspector.proxy.connect.site import BUNDLE, CRLS, SiteInterception

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.lab.ca import LabCA

SERVER = ("puppet.example", 8140)


@pytest.fixture
def trust(ca: LabCA, tmp_path: Path) -> tls.SiteTrust:
    place = ca.enrol(tmp_path / "ssl", "proxy.example")
    return tls.SiteTrust(place.ca, place.crl)


def test_agents_get_the_sites_bundle_and_ours(ca: LabCA, trust: tls.SiteTrust, tmp_path: Path) -> None:
    directory = tmp_path / "a" / "b"
    made = SiteInterception(directory, [SERVER], trust, print)
    assert (directory / BUNDLE).read_bytes() == ca.ca_bundle + made._authority.certificate
    assert (directory / CRLS).read_bytes() == ca.crl_bundle + made._authority.crl
    assert sorted(path.name for path in directory.iterdir()) == [BUNDLE, CRLS], "and no key"
    *_, own = x509.load_pem_x509_certificates((directory / BUNDLE).read_bytes())
    assert RUN_CA.partition(",")[0] in own.subject.rfc4514_string()


def test_each_start_replaces_them(trust: tls.SiteTrust, tmp_path: Path) -> None:
    first, second = (SiteInterception(tmp_path, [SERVER], trust, print) for _ in range(2))
    assert first._authority.certificate != second._authority.certificate
    assert (tmp_path / BUNDLE).read_bytes().endswith(second._authority.certificate)
    assert first._authority.certificate not in (tmp_path / BUNDLE).read_bytes()


def test_a_directory_that_cannot_be_written_is_an_error(trust: tls.SiteTrust, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(InspectorError, match="cannot be written"):
        SiteInterception(tmp_path / "file" / "x", [SERVER], trust, print)


def test_other_servers_are_refused_and_said_once(trust: tls.SiteTrust, tmp_path: Path) -> None:
    """Else everybody who reaches the proxy could reach everything through it."""
    lines: list[str] = []
    made = SiteInterception(tmp_path, [SERVER], trust, lines.append)
    for _ in range(2):
        decision = asyncio.run(made.decide(("192.0.2.1", 22)))
        assert decision.way is Way.REFUSED
    assert lines == ["-- refused a connection with 192.0.2.1:22, which is not puppet_master"]

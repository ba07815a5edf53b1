"""A CA on another host than the master: its requests go there, as this host's puppet.conf has it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inspector import installation
from inspector.lab.ca import LabCA
from inspector.lab.master import LabMaster
from inspector.model import Handshake
from inspector.proxy.launcher import Proxy
from tests.e2e.wire import Peer, read
from tests.support import proxies

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from inspector.lab import Lab

NAME = "web1.lab.example"
PATHS = (
    "/puppet-ca/v1/certificate/ca",
    f"/puppet/v3/node/{NAME}?environment=production",
    f"/puppet-ca/v1/certificate/{NAME}",
    f"/production/certificate/{NAME}",
    "/puppet/v3/file_metadatas/plugins?environment=production&/puppet-ca/v1/",
    f"/puppet-ca/v1/certificate_status/{NAME}",
)
TO_THE_CA = (0, 2, 3, 5)
_PUPPET_CONF = """
import sys
sys.path.insert(0, {package!r})
from inspector.host import puppetconf
puppetconf._PLACES = (puppetconf._Place({folder!r}, {folder!r}, ("$confdir/ssl",), ()),)
"""
"""Where the proxy's processes find this host's puppet.conf."""


@pytest.fixture
def ca(lab: Lab, tmp_path: Path) -> Iterator[LabMaster]:
    """The CA's server."""
    with LabMaster(lab.ca, lab.ca.enrol(tmp_path / "ca", "localhost")) as server:
        yield server


def _proxy(lab: Lab, ca: tuple[str, int], capture: Path, own: bool, patch: pytest.MonkeyPatch) -> Proxy:
    host, port = lab.master_address
    folder = capture.parent.parent / "conf"
    folder.mkdir()
    settings = f"server = {host}\nserverport = {port}\nca_server = {ca[0]}\nca_port = {ca[1]}\n"
    (folder / "puppet.conf").write_text(f"[main]\n{settings}")

    code = _PUPPET_CONF.format(package=str(installation.PACKAGE.parent), folder=str(folder))
    (folder / "sitecustomize.py").write_text(code)
    patch.setenv("PYTHONPATH", str(folder))
    return Proxy(proxies.options(lab, capture), own=own)


@pytest.mark.both_roads
def test_requests_to_the_ca_go_to_the_ca(
    lab: Lab, ca: LabMaster, capture: Path, own: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = lab.agent(NAME, enrolled=True).place
    with _proxy(lab, ("localhost", ca.address[1]), capture, own, monkeypatch) as proxy:
        # All on one connection, as an agent's whose ca_server is its server.
        with Peer.of(proxy.address, lab.proxy_name, place).connect() as connection:
            for path in PATHS:
                connection.sendall(f"GET {path} HTTP/1.1\r\nHost: {lab.proxy_name}:8140\r\n\r\n".encode())
                assert read(connection).status in (200, 403, 404), path
        stranger = Peer(proxy.address, lab.proxy_name)
        for path in PATHS[:2]:
            stranger.ask("GET", path)
    at_ca = [(received.request.target, received.certname) for received in ca.received]
    assert at_ca == [*((PATHS[at], NAME) for at in TO_THE_CA), (PATHS[0], None)]
    assert {received.request.header("host") for received in ca.received} == {f"{lab.proxy_name}:8140"}
    at_master = [(received.request.target, received.certname) for received in lab.master.received]
    assert at_master == [(PATHS[1], NAME), (PATHS[4], NAME), (PATHS[1], None)]
    legs = [exchange.master for exchange in proxies.exchanges(capture)[: len(PATHS)]]
    assert [leg.port == ca.address[1] for leg in legs if leg] == [at in TO_THE_CA for at in range(len(PATHS))]
    assert any(line == f"  CA          localhost:{ca.address[1]} (ca_server of puppet.conf)" for line in proxy.lines)


@pytest.mark.both_roads
@pytest.mark.parametrize("wrong", ["name", "issuer"])
def test_the_cas_server_is_verified_as_the_master_is(
    wrong: str, lab: Lab, capture: Path, own: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whoever answers there gets neither a request nor an identity, if the certificate is wrong."""
    place = lab.agent(NAME, enrolled=True).place
    issuer = lab.ca if wrong == "name" else LabCA("another.example")
    name = "another.example" if wrong == "name" else "localhost"
    server = LabMaster(issuer, issuer.enrol(tmp_path / "ca", name))
    where = "localhost", server.address[1]
    with server as ca, _proxy(lab, where, capture, own, monkeypatch) as proxy:
        peer = Peer.of(proxy.address, lab.proxy_name, place)
        assert peer.ask("GET", PATHS[0]).status == 502
        assert peer.ask("GET", PATHS[1]).status == 200
    assert ca.received == []
    assert [received.request.target for received in lab.master.received] == [PATHS[1]]
    (refused,) = (record for record in proxies.records(capture) if isinstance(record, Handshake))
    assert (refused.leg.side, refused.leg.port) == ("master", ca.address[1])

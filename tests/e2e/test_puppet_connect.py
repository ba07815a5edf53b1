"""Agents of a site use the proxy as their HTTP proxy (``puppet_connect``), on either road."""

from __future__ import annotations

import http.client
import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from cryptography import x509

from inspector.lab.ca import LabCA
from inspector.lab.master import LabMaster
from inspector.model import Exchange, Handshake
from inspector.proxy.connect.interception import ADDED
from inspector.proxy.launcher import Proxy
from tests.support.proxies import HOST, exchanges, records

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from inspector.host.pki import SslDirPaths

NAME, NODE, CA = "web1.lab.example", "/puppet/v3/node/web1.lab.example", "/puppet-ca/v1/certificate/ca"
MASTER, OTHER = "localhost", "127.0.0.1"
"""A name of the master that its certificate has, and one that it lacks."""


@dataclass(frozen=True)
class Site:
    """A master, a node, and a proxy."""

    folder: Path
    master: LabMaster
    place: SslDirPaths
    own: bool

    @property
    def capture(self) -> Path:
        return self.folder / "test.sqlite"

    @property
    def bundle(self) -> Path:
        """What a node has to trust."""
        return self.folder / "trust" / "ca.pem"

    @property
    def server(self) -> tuple[str, int]:
        return MASTER, self.master.address[1]

    def proxy(self, name: str = MASTER) -> Proxy:
        options: dict[str, str | Path | tuple[str, ...]] = {
            "puppet_master": f"{name}:{self.master.address[1]}", "puppet_connect": self.bundle.parent,
            "puppet_ssldir": self.place.path, "puppet_identity": f"keys:{self.place.path}", "puppet_listen": HOST,
            "puppet_capture": self.capture,
        }  # fmt: skip
        return Proxy(options, own=self.own)

    def exchanges(self) -> list[Exchange]:
        return exchanges(self.capture)


@pytest.fixture
def site(tmp_path: Path, own: bool) -> Iterator[Site]:
    ca = LabCA("master.example")
    with LabMaster(ca, ca.enrol(tmp_path / "master", "master.example", [MASTER])) as master:
        yield Site(tmp_path, master, ca.enrol(tmp_path / "ssl", NAME), own)


def _context(trusted: Path | None, place: SslDirPaths | None = None) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(trusted) if trusted else None)
    if trusted is None:
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    else:
        context.load_verify_locations(cafile=str(trusted.with_name("crl.pem")))
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_CHAIN
    if place:
        context.load_cert_chain(place.certificate, place.key)
    return context


def _ask(proxy: Proxy, server: tuple[str, int], path: str, context: ssl.SSLContext) -> tuple[int, bytes]:
    """Ask a server through the proxy; return the status and the body."""
    connection = http.client.HTTPSConnection(*proxy.address, context=context, timeout=60)
    try:
        connection.set_tunnel(*server)
        connection.request("GET", path, headers={"Accept-Encoding": "gzip"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


@pytest.mark.both_roads
def test_an_agent_keeps_its_masters_name_and_is_itself(site: Site) -> None:
    with site.proxy() as proxy:
        status, _ = _ask(proxy, site.server, NODE, _context(site.bundle, site.place))
    assert status == 404  # that master has no nodes
    assert [each.certname for each in site.master.received] == [NAME]
    (exchange,) = site.exchanges()
    assert (exchange.agent.sni, exchange.added, exchange.agent.for_one_run) == (MASTER, "", True)


@pytest.mark.both_roads
def test_a_fresh_node_gets_the_proxys_ca_with_the_sites(site: Site) -> None:
    with site.proxy() as proxy:
        _, body = _ask(proxy, site.server, CA, _context(None))
    given = x509.load_pem_x509_certificates(body)
    assert set(given) == set(x509.load_pem_x509_certificates(site.bundle.read_bytes()))
    (exchange,) = site.exchanges()
    assert exchange.response
    assert exchange.added == ADDED
    assert len(x509.load_pem_x509_certificates(exchange.response.body)) == len(given) - 1


@pytest.mark.both_roads
@pytest.mark.parametrize("host", [OTHER, "somewhere.example"])
def test_it_connects_with_no_other_server(site: Site, host: str) -> None:
    with site.proxy() as proxy, pytest.raises(OSError, match="403"):
        _ask(proxy, (host, site.server[1]), NODE, _context(None))
    assert not site.master.received


@pytest.mark.both_roads
def test_a_request_without_connect_is_not_passed_on(site: Site) -> None:
    with site.proxy() as proxy:
        connection = http.client.HTTPConnection(*proxy.address, timeout=60)
        connection.request("GET", "http://{}:{}{}".format(*site.server, CA))
        with pytest.raises((OSError, http.client.HTTPException)):
            connection.getresponse()
    assert not site.master.received


@pytest.mark.both_roads
def test_what_an_agent_would_refuse_is_passed_on_unread(site: Site) -> None:
    with site.proxy(OTHER) as proxy:
        status, _ = _ask(proxy, (OTHER, site.server[1]), CA, _context(None))
    assert status == 200
    (handshake,) = (record for record in records(site.capture) if isinstance(record, Handshake))
    assert handshake.leg.tunnelled
    assert "did not match server certificate" in handshake.reason
    assert not site.exchanges()

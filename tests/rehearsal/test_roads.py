"""The roads: which certificate, and that data of nodes is not overwritten by mistake."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from inspector.errors import IdentityError, InspectorError
from inspector.host import pki, puppetconf
from inspector.lab.ca import LabCA
from inspector.model import Exchange
from inspector.rehearsal import requests, roads
from inspector.rehearsal.requests import Asked, Unsendable
from inspector.runs.examples import catalog, talk

if TYPE_CHECKING:
    from pathlib import Path

ROLE = x509.Extension(
    x509.ObjectIdentifier("1.3.6.1.4.1.34380.1.1.13"), critical=False,
    value=x509.UnrecognizedExtension(x509.ObjectIdentifier("1.3.6.1.4.1.34380.1.1.13"), b"\x0c\x03web"),
)  # fmt: skip


def asked(certificate: bytes | None = None) -> Asked:
    of = requests.asked(record for record in talk(catalog()) if isinstance(record, Exchange))
    agent = dataclasses.replace(of.exchange.agent, peer_chain=(certificate,) if certificate else ())
    return dataclasses.replace(of, exchange=dataclasses.replace(of.exchange, agent=agent))


def recorded() -> bytes:
    key = pki.new_key()
    made = pki.sign(pki.make_ca("old"), key.public_key(), "node1.example", ["alias.example"], extensions=[ROLE])
    return made.public_bytes(Encoding.DER)


@pytest.mark.parametrize("road", ["keys:DIR", "mint:DIR"])
def test_data_of_nodes_is_not_overwritten_by_mistake(tmp_path: Path, road: str) -> None:
    with pytest.raises(InspectorError, match="would overwrite the data of every node"):
        roads.road_of(road.replace("DIR", str(tmp_path)), None, None, stores=False)


def test_keys(tmp_path: Path) -> None:
    LabCA("new").enrol(tmp_path, "node1.example")
    road = roads.road_of(f"keys:{tmp_path}", None, None, stores=True)
    assert pki.certname_of(road.credentials(asked()).chain[0]) == "node1.example"
    assert road.ca == tmp_path / "certs" / "ca.pem"
    assert road.request(asked(), None, None).body == asked().exchange.request.body
    with pytest.raises(IdentityError, match="no key for other"):
        road.credentials(dataclasses.replace(asked(), certname="other"))


def test_a_minted_certificate_has_the_trusted_facts_and_names_of_the_recorded_one(tmp_path: Path) -> None:
    LabCA("new").write_cadir(tmp_path)
    road = roads.road_of(f"mint:{tmp_path}", None, None, stores=True)
    made = road.credentials(asked(recorded())).chain[0]
    assert pki.certname_of(made) == "node1.example"
    assert pki.puppet_extensions(made) == [ROLE]
    assert pki.alt_names(made) == ["node1.example", "alias.example"]
    with pytest.raises(Unsendable, match="its certificate was not recorded"):
        road.credentials(asked())
    with pytest.raises(IdentityError, match="cannot be read"):
        road.credentials(asked(b"no certificate"))


def test_v4(tmp_path: Path) -> None:
    place = LabCA("new").enrol(tmp_path, "tool.example")
    road = roads.road_of("v4", place.certificate, place.key, stores=False)
    assert isinstance(road, roads.V4)
    assert pki.certname_of(road.credentials(asked()).chain[0]) == "tool.example"
    assert road.request(asked(recorded()), None, None).target == requests.V4
    assert b'"pp_role": "web"' in road.request(asked(recorded()), None, None).body
    assert 'allow: ["tool.example"]' in road.rule


def test_v4_without_a_certificate(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    conf = puppetconf.PuppetConf(None, "puppet", 8140, tmp_path, "host.example")
    monkeypatch.setattr(puppetconf, "read", lambda: conf)
    with pytest.raises(InspectorError, match=r"This host has no certificate .*host\.example\.pem\."):
        roads.road_of("v4", None, None, stores=False)

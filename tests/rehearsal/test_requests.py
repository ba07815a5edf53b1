"""The requests of a rehearsal: as recorded byte for byte, or with other facts; and nothing that is no read."""

from __future__ import annotations

import dataclasses
import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from inspector.host import pki
from inspector.model import Exchange, Request
from inspector.protocol import decode, x509
from inspector.protocol import documents as d
from inspector.rehearsal import requests
from inspector.rehearsal.fact_changes import FactChanges
from inspector.rehearsal.requests import Asked, Unsendable
from inspector.runs.examples import altered, catalog, plugins, report, talk

if TYPE_CHECKING:
    from inspector.model import Record

FACTS = {"osfamily": "Debian", "text": "100 % & + é"}


def exchanges(records: list[Record]) -> list[Exchange]:
    return [record for record in records if isinstance(record, Exchange)]


def asked(**fields: Any) -> Asked:
    return requests.asked(exchanges(talk(plugins(), catalog(facts=FACTS, **fields), report())))


def trusted() -> d.Certificate:
    key = pki.new_key()
    return x509.certificate(pki.sign(pki.make_ca("ca"), key.public_key(), "node1.example"))


def read(request: Request) -> d.CatalogRequest:
    document = decode.catalog_request(request)
    assert isinstance(document, d.CatalogRequest)
    return document


def test_as_it_was_recorded() -> None:
    of = asked(form={"checksum_type": "sha256.md5", "static_catalog": "true"})
    made, recorded = requests.as_recorded(of), of.exchange.request
    assert (made.method, made.target, made.body) == (recorded.method, recorded.target, recorded.body)
    names = {name.lower() for name, _ in made.headers}
    assert {"accept", "content-type"} <= names
    assert not names & {"host", "content-length", "connection", "cookie", "authorization"}


def test_another_environment() -> None:
    of = asked(form={"configured_environment": "production", "x": "a%2Bb+c"})
    made = requests.as_recorded(of, "staging")
    assert made.target.endswith("environment=staging")
    assert (read(made).environment, read(made).configured_environment) == ("staging", "staging")
    assert b"&x=a%252Bb%2Bc&" in made.body
    assert read(made).facts == of.facts


def test_other_facts() -> None:
    of = asked(form={"facts_format": "pson"})
    made = requests.as_recorded(of, facts=FactChanges(dropped=("osfamily",)).applied(of.facts))
    document = read(made)
    assert isinstance(document.facts, d.Facts)
    assert document.facts.values == {"puppetversion": "7.23.0", "text": FACTS["text"]}
    assert document.facts_format == "application/json"
    assert document.transaction_uuid == of.document.transaction_uuid


def test_v4_stores_nothing_and_says_whom_it_trusts() -> None:
    of = asked()
    certificate = msgspec.structs.replace(trusted(), extensions={"pp_role": "web", "2.5.29.99": "x"})
    made = requests.v4(of, certificate, "staging")
    body = json.loads(made.body)
    assert (made.method, made.target) == ("POST", "/puppet/v4/catalog")
    assert body["persistence"] == {"facts": False, "catalog": False}
    assert (body["certname"], body["environment"]) == (of.certname, "staging")
    assert body["options"]["prefer_requested_environment"] is True
    assert body["facts"]["values"]["osfamily"] == "Debian"
    found = body["trusted_facts"]["values"]
    assert (found["authenticated"], found["extensions"]) == ("remote", {"pp_role": "web"})
    assert (found["hostname"], found["domain"]) == ("node1", "example")
    assert json.loads(requests.v4(of, None).body)["options"]["prefer_requested_environment"] is False


def test_files() -> None:
    of = asked()
    query = requests.reading("sha256", "production")
    made = requests.metadata(of, "modules/m/a b", query)
    assert made.target == (
        "/puppet/v3/file_metadata/modules/m/a%20b?links=manage&checksum_type=sha256&source_permissions=ignore"
        "&environment=production"
    )
    listing = requests.listing(of, "modules/m", requests.reading("md5", "a&b", [("recurse", "true")]))
    assert listing.target == (
        "/puppet/v3/file_metadatas/modules/m?recurse=true&links=manage&checksum_type=md5&source_permissions=ignore"
        "&environment=a%26b"
    )
    static = requests.static_content(of, "modules/m/files/a", "production", "a&recurse=true")
    assert static.target == (
        "/puppet/v3/static_file_content/modules/m/files/a?environment=production&code_id=a%26recurse%3Dtrue"
    )
    assert all(map(requests.is_file, (made, listing, static)))
    assert requests.is_file(requests.content(of, "modules/m/a", "production"))
    assert not requests.is_file(requests.as_recorded(of))


@pytest.mark.parametrize("name", ["modules/../../../puppet-ca/v1/certificate_status/a", "./a", "modules/m/%2e%2e/x/.."])
def test_a_file_leads_nowhere_else(name: str) -> None:
    with pytest.raises(Unsendable):
        requests.content(asked(), name, "production")


def test_nothing_else_is_sent(subtests: pytest.Subtests) -> None:
    for method, target in [
        ("PUT", "/puppet/v3/report/a.example?environment=production"),
        ("PUT", "/puppet/v3/catalog/a.example"),
        ("PUT", "/puppet/v3/facts/a.example"),
        ("PUT", "/puppet-ca/v1/certificate_request/a.example"),
        ("DELETE", "/puppet-ca/v1/certificate_status/a.example"),
        ("GET", "/puppet-ca/v1/certificate/ca"),
        ("PUT", "/puppet/v3/file_bucket_file/sha256/0/a"),
        ("GET", "/puppet/v3/file_bucket_file/sha256/0/a"),
        ("POST", "/puppet/v3/catalog/../../puppet-admin-api/v1/environment-cache"),
        ("POST", "/puppet/v3/catalog/%2e%2e/x"),
        ("POST", "/puppet/v3/catalog/a.example HTTP/1.1\r\nX: y"),
        ("DELETE", "/puppet-admin-api/v1/environment-cache"),
        ("GET", "http://elsewhere.example/puppet/v3/catalog/a.example"),
        ("POST", "/puppet/v4/catalog?x"),
    ]:
        with subtests.test(method), pytest.raises(Unsendable):
            requests.checked(Request(method=method, target=target))


def test_v4_that_stores_is_not_sent() -> None:
    made = requests.v4(asked(), None)
    stores = dataclasses.replace(made, body=made.body.replace(b'"catalog": false', b'"catalog": true'))
    with pytest.raises(Unsendable):
        requests.checked(stores)


@pytest.mark.parametrize("header", [("X-Client-DN", "CN=admin"), ("Accept", "a\r\nX-Client-Verify: SUCCESS")])
def test_no_other_header_is_sent(header: tuple[str, str]) -> None:
    made = requests.as_recorded(asked())
    with pytest.raises(Unsendable):
        requests.checked(dataclasses.replace(made, headers=(*made.headers, header)))


def test_what_cannot_be_sent() -> None:
    no_facts = altered(catalog(), request={"body": b"environment=production"})
    elsewhere = altered(catalog(), request={"target": "/puppet/v3/catalog/../x?environment=production"})
    part = altered(catalog(), request={"lost": 9})
    for records, reason in (
        (talk(plugins(), report()), "it asked for no catalog"),
        (talk(part), "its request for a catalog was recorded in part (puppet_keep_body)"),
    ):
        with pytest.raises(Unsendable) as raised:
            requests.asked(exchanges(records))
        assert str(raised.value) == reason
    with pytest.raises(Unsendable, match="it sent no facts"):
        requests.v4(requests.asked(exchanges(talk(no_facts))), None)
    with pytest.raises(Unsendable):
        requests.as_recorded(requests.asked(exchanges(talk(elsewhere))))

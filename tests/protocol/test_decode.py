"""Bodies become documents, or say why not; hostile bytes never raise and never take for ever."""

from __future__ import annotations

import base64
import gzip
import hashlib
import json
import re
import zlib
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus, unquote_to_bytes

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from inspector.host import pki
from inspector.model import Message, Request, Response
from inspector.protocol import decode
from inspector.protocol import documents as d
from inspector.protocol.bodies import unescape
from inspector.protocol.endpoints import match

if TYPE_CHECKING:
    from inspector.protocol.decode import Decoder

FORM = "application/x-www-form-urlencoded"
JSON, PSON, YAML, PACK = "application/json", "text/pson", "text/yaml", "application/x-msgpack"
CA = pki.make_ca("Decode CA")


def asked(media: str, body: bytes, encoding: str = "", target: str = "/") -> Request:
    headers = (("content-TYPE", media), *((("Content-Encoding", encoding),) if encoding else ()))
    return Request(headers=headers, body=body, method="PUT", target=target)


def answered(media: str, body: bytes, encoding: str = "", status: int = 200) -> Response:
    return Response(headers=asked(media, body, encoding).headers, body=body, status=status)


NODE = d.Node("a.b", "production", {"x": 1})
SHORT = d.Node("a.b", "production")
CATALOG = d.Catalog("a.b", "production", 7, resources=[d.Resource("File", "/x", {"mode": "0644"}, exported=True)])
FACTS = d.Facts("a.b", {"puppetversion": "3.8.7", "x": {"y": [1]}})
FACTS_JSON = b'{"name":"a.b","values":{"puppetversion":"3.8.7","x":{"y":[1]}}}'
FACTS_YAML = b"--- !ruby/object:Puppet::Node::Facts\nname: a.b\nvalues:\n  puppetversion: 3.8.7\n  x: {y: [1]}\n"
BODY = b'{"name":"a.b","environment":"production","parameters":{"x":1}}'
REPORT_27 = b"""--- !ruby/object:Puppet::Transaction::Report
  host: a.b
  kind: apply
  configuration_version: 1765000000
  logs:
    - &id001 !ruby/object:Puppet::Util::Log
      level: !ruby/sym notice
      message: hello
      source: Puppet
      tags:
        - notice
      time: 2026-11-21 08:25:37.123456789 +00:00
    - *id001
  metrics:
    time: !ruby/object:Puppet::Util::Metric
      values: [[total, Total, 0.5]]
  report_format: 3
  puppet_version: "2.7.26"
  resource_statuses:
    "File[/x]": !ruby/object:Puppet::Resource::Status
      failed: false
      changed: true
      title: /x
  status: changed
  time: 2026-11-21 08:25:37.123456789 +00:00
"""
LOG = d.LogLine("notice", "hello", "Puppet", "2026-11-21 08:25:37.123456789 +00:00")
WRAPPED = b'{"document_type":"Node","data":' + BODY + b',"metadata":{"api_version":1}}'
META = d.FileMetadata("/x", None, "file", d.Checksum("md5", "{md5}0"), mode=420)
META_JSON = b'{"path":"/x","relative_path":null,"type":"file","checksum":{"type":"md5","value":"{md5}0"},"mode":420}'


def form(facts: str, notation: str) -> bytes:
    return f"environment=x&facts_format={quote(notation, '')}&facts={facts}&transaction_uuid=u-1".encode()


def b64(text: bytes = FACTS_YAML) -> str:
    return base64.encodebytes(zlib.compress(text, 9)).decode()


CATALOG_REQUEST = partial(d.CatalogRequest, "x", transaction_uuid="u-1")

TABLE: list[tuple[str, Decoder, Message, d.Document]] = [
    ("json", decode.node, answered(JSON, BODY), NODE),
    ("json with a charset", decode.node, answered("Application/JSON;charset=utf-8", BODY), NODE),
    ("no content type", decode.node, Response(body=BODY, status=200), NODE),
    ("gzip", decode.node, answered(JSON, gzip.compress(BODY), "gzip"), NODE),
    ("deflate with zlib's head", decode.node, answered(JSON, zlib.compress(BODY), "deflate"), NODE),
    ("raw deflate", decode.node, answered(JSON, zlib.compress(BODY, wbits=-15), "deflate"), NODE),
    ("two encodings", decode.node, answered(JSON, gzip.compress(zlib.compress(BODY)), "deflate, gzip"), NODE),
    ("pson in its envelope", decode.node, answered(PSON, WRAPPED), NODE),
    ("pson without", decode.node, answered(PSON, BODY), NODE),
    ("json has no envelope", decode.node, answered(JSON, WRAPPED), d.Node()),
    ("pson that is not UTF-8", decode.node, answered(PSON, b'{"name":"\xe4\xff","environment":"x"}'),
     d.Node("\xe4\xff", "x")),
    ("pson list of envelopes", decode.metadatas,
     answered(PSON, b'[{"document_type":"FileMetadata","data":' + META_JSON + b"}," + META_JSON + b"]"),
     d.FileMetadatas([META, META])),
    ("a list", decode.metadatas, answered(JSON, b"[" + META_JSON + b"]"), d.FileMetadatas([META])),
    ("an empty list", decode.metadatas, answered(JSON, b"[]"), d.FileMetadatas([])),
    ("msgpack", decode.metadata, answered(PACK, msgspec.msgpack.encode(json.loads(META_JSON))), META),
    ("rich json", decode.catalog, answered("application/vnd.puppet.rich+json; charset=utf-8",
     b'{"name":"a.b","environment":"production","version":7,"resources":[{"type":"File","title":"/x",'
     b'"exported":true,"parameters":{"mode":"0644"}}],"edges":[]}'), CATALOG),
    ("rich msgpack", decode.catalog, answered("application/vnd.puppet.rich+msgpack",
     msgspec.msgpack.encode(CATALOG)), CATALOG),
    ("yaml with Ruby's tags", decode.facts, asked(YAML, FACTS_YAML), FACTS),
    ("yaml that says it is text", decode.facts, asked("text/plain", FACTS_YAML), FACTS),
    ("yaml with symbols and variables", decode.node, answered(YAML, b"--- \n:name: a.b\n'@environment': production\n"),
     SHORT),
    ("a report of 2.7", decode.report, asked(YAML, REPORT_27), d.Report(
        "a.b", "changed", "2026-11-21 08:25:37.123456789 +00:00", configuration_version=1765000000, report_format=3,
        puppet_version="2.7.26", logs=[LOG, LOG],
        resource_statuses={"File[/x]": d.ResourceStatus(failed=False, changed=True, title="/x")},
        metrics={"time": d.Metric(values=[["total", "Total", 0.5]])})),
    ("form, escaped twice", decode.catalog_request,
     asked(FORM, form(quote_plus(quote_plus(FACTS_JSON)), "application/json")),
     CATALOG_REQUEST(facts_format="application/json", facts=FACTS)),
    ("form, escaped once", decode.catalog_request, asked(FORM, form(quote_plus(FACTS_JSON), "pson")),
     CATALOG_REQUEST(facts_format="pson", facts=FACTS)),
    ("form, pson that is not UTF-8", decode.catalog_request,
     asked(FORM, form(quote_plus(quote_plus(b'{"name":"\xff","values":{}}')), "pson")),
     CATALOG_REQUEST(facts_format="pson", facts=d.Facts("\xff"))),
    ("form, b64_zlib_yaml escaped twice", decode.catalog_request,
     asked(FORM, form(quote_plus(quote_plus(b64())), "b64_zlib_yaml")),
     CATALOG_REQUEST(facts_format="b64_zlib_yaml", facts=FACTS)),
    ("form, b64_zlib_yaml escaped once", decode.catalog_request,
     asked(FORM, form(quote_plus(b64()), "b64_zlib_yaml")),
     CATALOG_REQUEST(facts_format="b64_zlib_yaml", facts=FACTS)),
    ("form, yaml facts", decode.catalog_request, asked(FORM, form(quote_plus(quote_plus(FACTS_YAML)), "yaml")),
     CATALOG_REQUEST(facts_format="yaml", facts=FACTS)),
    ("form in the query, as 2.6 asked", decode.catalog_request,
     asked("", b"", target="/x/catalog/a?transaction_uuid=u-2"), d.CatalogRequest(transaction_uuid="u-2")),
    ("form with flags", decode.catalog_request,
     asked(FORM, b"static_catalog=true&checksum_type=sha256.md5&configured_environment=c&check_environment=true"),
     d.CatalogRequest(configured_environment="c", check_environment=True, static_catalog=True,
                      checksum_type="sha256.md5")),
    ("form with bytes that are no text", decode.catalog_request, asked(FORM, b"transaction_uuid=%FF"),
     d.CatalogRequest(transaction_uuid="\ufffd")),
    ("form with many fields", decode.catalog_request, asked(FORM, b"a&" * 1500 + b"environment=x"),
     d.CatalogRequest("x")),
    ("json error", decode.catalog, answered(JSON, b'{"message":"Server Error: x","issue_kind":"R"}', status=500),
     d.ErrorDocument("Server Error: x", "R")),
    ("json error of 4.x", decode.catalog,
     answered(JSON, b'{"message":"Server Error: x","issue_kind":"R","stacktrace":["/a.rb:1"]}', status=500),
     d.ErrorDocument("Server Error: x", "R", stacktrace=True)),
    ("pson error without a trace", decode.catalog, answered(PSON, b'{"message":"x","stacktrace":[]}', status=400),
     d.ErrorDocument("x")),
    ("text error", decode.catalog, answered("text/plain", b"Not Found: x\n", status=404),
     d.ErrorDocument("Not Found: x")),
    ("html error", decode.catalog, answered("text/html", b"<h1>502</h1>", status=502),
     d.ErrorDocument(f"{d.HTML}: 502")),
    ("gzipped error", decode.crls, answered("text/plain", gzip.compress(b"none"), "gzip", 404),
     d.ErrorDocument("none")),
    ("empty error", decode.catalog, answered("text/plain", b"", status=404), d.Nothing()),
    ("not modified", decode.crls, answered("text/plain", b"", status=304), d.Nothing()),
    ("file content", decode.opaque, answered("application/octet-stream", gzip.compress(b"abc"), "gzip"),
     d.Opaque(3, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad")),
    ("a tool's list", decode.anything, answered(JSON, b'[{"a":1}]'), d.Data([{"a": 1}])),
    ("a probe's answer", decode.text, answered("text/plain", b"running"), d.Text("running")),
]  # fmt: skip

WRONG: list[tuple[str, Decoder, Message, str]] = [
    ("second part", decode.node, answered(JSON, gzip.compress(BODY) + gzip.compress(BODY), "gzip"), "after its end"),
    ("cut off gzip", decode.node, answered(JSON, gzip.compress(BODY)[:-4], "gzip"), "cut off"),
    ("gzip that is none", decode.node, answered(JSON, BODY, "gzip"), "says it is gzip"),
    ("unknown encoding", decode.node, answered(JSON, BODY, "br"), "unknown content encoding 'br'"),
    ("an HTML page", decode.node, answered("text/html", b"<h1>hello</h1>"), "HTML page"),
    ("empty", decode.node, answered(JSON, b""), "empty"),
    ("another type", decode.node, answered(JSON, b'{"name":7}'), r"\$.name"),
    ("json cut off", decode.catalog, answered(JSON, b'{"name":'), "truncated"),
    ("no PEM", decode.certificates, answered("text/plain", b"<html>"), "no CERTIFICATE in PEM form"),
    ("another PEM", decode.crls, answered("text/plain", pki.pem(CA.certificate)), "no X509 CRL"),
    ("a long field", decode.catalog_request, asked(FORM, b"environment=" + b"x" * 66_000), "'environment' is longer"),
    ("stray percent signs", decode.catalog_request, asked(FORM, b"facts=" + b"%4g" * 10_001), "escape nothing"),
    ("no form", decode.catalog_request, asked(JSON, b"{}"), "with a form"),
    ("yaml that is none", decode.report, asked(YAML, b"--- {"), "no YAML"),
    ("bad json in an error", decode.catalog, answered(JSON, b"<h1>", status=500), "malformed"),
]


@pytest.mark.parametrize(("decoder", "message", "document"), [row[1:] for row in TABLE], ids=[r[0] for r in TABLE])
def test_a_body_is_read(decoder: Decoder, message: Message, document: d.Document) -> None:
    assert decoder(message) == document


@pytest.mark.parametrize(("decoder", "message", "reason"), [row[1:] for row in WRONG], ids=[r[0] for r in WRONG])
def test_a_wrong_body_says_why(decoder: Decoder, message: Message, reason: str) -> None:
    found = decoder(message)
    assert isinstance(found, d.Undecodable)
    assert re.search(reason, found.reason)


def test_facts_that_cannot_be_read_do_not_hide_the_rest_of_the_form() -> None:
    found = decode.catalog_request(asked(FORM, form("%257B", "application/json")))
    assert isinstance(found, d.CatalogRequest)
    assert found.transaction_uuid == "u-1"
    assert isinstance(found.facts, d.Undecodable)
    assert isinstance(decode.catalog_request(asked(FORM, form("e!", "b64_zlib_yaml"))), d.CatalogRequest)


def test_pem_bundles_are_read() -> None:
    bundle = b"CN=text between\n" + pki.pem(CA.certificate) + b"\nmore\n" + pki.pem(CA.certificate)
    found = decode.certificates(answered("text/plain", bundle))
    assert isinstance(found, d.Certificates)
    assert [each.common_name for each in found.certificates] == ["Decode CA"] * 2
    crls = decode.crls(answered("text/plain", pki.pem(pki.make_crl(CA, [5], 9))))
    assert isinstance(crls, d.RevocationLists)
    assert [(each.number, each.revoked) for each in crls.crls] == [(9, [5])]
    csr = decode.csr(asked("text/plain", pki.pem(pki.make_csr("a.b", pki.new_key()))))
    assert isinstance(csr, d.CertificateRequest)
    assert csr.common_name == "a.b"


@pytest.mark.parametrize("before", range(-3, 4))
def test_an_escape_is_not_cut_in_two_in_a_large_form(before: int) -> None:
    value = b"x" * (2**20 + before) + b"%2B%C3%a9+" * 9
    assert unescape(value) == b"x" * (2**20 + before) + b"+\xc3\xa9 " * 9


@pytest.mark.parametrize(
    ("sent", "meant"),
    [
        (b"%41%42", b"AB"),
        (b"=41_%3D=%0A=\n", b"=41_==\n=\n"),
        (b"%", b"%"),
        (b"%%41%4g%4", b"%A%4g%4"),
        (b"%2541+%2B", b"%41 +"),
        (b"a b\r\n \xff", b"a b\r\n \xff"),
        (b"%41 \r\n\t", b"A \r\n\t"),
    ],
)
def test_one_layer_of_escapes_is_taken_off(sent: bytes, meant: bytes) -> None:
    assert unescape(sent) == meant == unquote_to_bytes(sent.replace(b"+", b" "))


@given(
    st.lists(st.sampled_from([b"%", b"%41", b"%0a", b"=", b"=\n", b"==", b"%3d", b"_", b" ", b"\r\n", b"4", b"\xff"]))
)
def test_escapes_are_taken_off_as_the_library_does(pieces: list[bytes]) -> None:
    assert unescape(b"".join(pieces)) == unquote_to_bytes(b"".join(pieces))


def test_an_empty_file_is_a_file() -> None:
    empty = d.Opaque(0, hashlib.sha256(b"").hexdigest())
    head = answered("application/octet-stream", b"")
    for target in ("/p/file_content/modules/m/f", "/p/file_content/plugins/f", f"/p/file_bucket_file/md5/{'0' * 32}",
                   "/puppet/v3/static_file_content/modules/m/files/f?code_id=1"):  # fmt: skip
        found = match("GET", target)
        assert found is not None
        assert decode.answer(found.endpoint.response, Request(target=target), head) == empty
    for method in ("HEAD", "PUT"):
        bucket = match(method, target := f"/p/file_bucket_file/md5/{'0' * 32}")
        assert bucket is not None
        assert decode.answer(bucket.endpoint.response, Request(method=method, target=target), head) == d.Nothing()
    assert decode.opaque(answered("", b"", "gzip")) == empty
    assert decode.opaque(answered("", b"", status=304)) == d.Nothing()
    assert decode.opaque(Response((("Content-Length", "0"),), status=200)) == empty
    assert decode.opaque(Response((("Content-Length", "700"),), status=200)) == d.Nothing()


def test_single_escaped_facts_may_hold_a_percent_sign() -> None:
    found = decode.catalog_request(asked(FORM, form(quote_plus('{"name":"a%20b"}'), "application/json")))
    assert isinstance(found, d.CatalogRequest)
    assert found.facts == d.Facts("a%20b")


@pytest.mark.parametrize(
    ("body", "kind"),
    [(b"", "Nothing"), (pki.pem(pki.make_ca("CA").certificate), "Certificates"), (b"--- \n...\n", "Text")],
)
def test_what_a_ca_says_to_a_signing_request(body: bytes, kind: str) -> None:
    """4 and later say nothing; a 3.8 master that signs at once answers with the certificate."""
    response = Response(headers=(("Content-Type", "text/plain"),), body=body, status=200)
    assert type(decode.submitted(response)).__name__ == kind

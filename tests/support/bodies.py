"""Bodies in every format, and the documents that they are."""

from __future__ import annotations

import base64
import gzip
import json
import zlib
from functools import partial
from typing import TYPE_CHECKING
from urllib.parse import quote, quote_plus

import msgspec

from inspector.model import Message, Request, Response
from inspector.protocol import decode
from inspector.protocol import documents as d

if TYPE_CHECKING:
    from inspector.protocol.decode import Decoder

FORM = "application/x-www-form-urlencoded"
JSON, PSON, YAML, PACK = "application/json", "text/pson", "text/yaml", "application/x-msgpack"


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

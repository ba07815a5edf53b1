"""Bodies are taken apart and written again: what is left can still be read."""

from __future__ import annotations

import gzip
import json
from typing import Any
from urllib.parse import quote

import msgspec
import pytest

from inspector.formats import body_parts
from inspector.formats.body_parts import Part, opened, parts, with_body, without
from inspector.model import Message, Request, Response
from inspector.protocol import bodies, decode, endpoints
from inspector.protocol import documents as d

CATALOG = {
    "name": "a.example", "classes": ["one", "two"], "tags": [],
    "resources": [{"type": "File", "title": "/a", "parameters": {"mode": "0644", "deep": {"a": [1, {"b": 2}]}}}],
    "metadata": {"/a": {"type": "file", "checksum": {"type": "md5", "value": "x"}}},
}  # fmt: skip


def response(body: bytes, media: str = "application/json", **headers: str) -> Response:
    return Response((("Content-Type", media), *headers.items()), body, status=200)


def named(value: Any, depth: int) -> list[int | str]:
    found = parts(value, depth)
    assert found is not None
    return [part.key for part in found]


def test_fields_of_documents_stay_and_what_they_list_can_go() -> None:
    assert named(CATALOG, 0) == []
    assert named(CATALOG, 1) == [0, 1, 0, "/a"]  # classes, the resource, metadata
    assert named(CATALOG, 2) == []  # the resource's own fields, and those of metadata
    assert named(CATALOG, 3) == ["mode", "deep"]
    assert named(CATALOG, 4) == ["a"]
    assert named(CATALOG, 5) == [0, 1]
    assert named(CATALOG, 6) == ["b"]
    assert parts(CATALOG, 7) is None


def test_a_value_of_another_type_goes_as_a_whole() -> None:
    value = {"parameters": {"secret": {"__ptype": "Sensitive", "__pvalue": "x"}}}
    assert (named(value, 1), named(value, 2)) == (["secret"], [])


def test_what_is_taken_out_is_not_there_and_the_rest_as_before() -> None:
    found = parts(CATALOG, 1)
    assert found is not None
    made = without(CATALOG, {found[0], found[2]})
    assert (made["classes"], made["resources"], made["name"]) == (["two"], [], "a.example")
    assert len(CATALOG["resources"]) == 1
    assert without(CATALOG, set[Part]()) == CATALOG


@pytest.mark.parametrize("media", ["application/json", "text/pson", "application/vnd.puppet.rich+json",
                                   "application/x-msgpack"])  # fmt: skip
def test_each_notation_is_written_again(media: str) -> None:
    packed = msgspec.msgpack.encode(CATALOG) if media in bodies.PACKED else json.dumps(CATALOG).encode()
    body = opened(response(packed, media))
    assert body is not None
    assert body.value == CATALOG
    again = opened(response(body.write(body.value | {"classes": []}), media))
    assert again is not None
    assert again.value == CATALOG | {"classes": []}


@pytest.mark.parametrize("layers", [1, 2])
def test_the_facts_in_a_form_are_taken_apart(layers: int) -> None:
    facts = json.dumps({"name": "a.example", "values": {"kernel": "Linux", "deep": {"a": 1, "b": 2}}})
    for _ in range(layers):
        facts = quote(facts, safe="")
    sent = f"environment=production&facts_format=application%2Fjson&facts={facts}&transaction_uuid=u-1".encode()
    request = Request((("Content-Type", "application/x-www-form-urlencoded"),), sent, method="POST",
                      target="/puppet/v3/catalog/a.example?environment=production")  # fmt: skip
    body = opened(request)
    assert body is not None
    (gone,) = (part for part in parts(body.value, 2) or () if part.key == "a")
    match = endpoints.match(request.method, request.target)
    assert match is not None
    read = match.endpoint.request(with_body(request, body.write(without(body.value, {gone}))))
    assert isinstance(read, d.CatalogRequest)
    assert isinstance(read.facts, d.Facts)
    assert read.facts.values == {"kernel": "Linux", "deep": {"b": 2}}
    assert (read.environment, read.transaction_uuid) == ("production", "u-1")


NONE: dict[str, Message] = {
    "text": response(b"a file", "text/plain"),
    "damaged": response(b'{"a": [', "application/json"),
    "empty": response(b"", "application/json"),
    "another encoding": response(b"{}", **{"Content-Encoding": "br"}),
    "a page": response(b"<html>", "text/html"),
    "YAML": response(b"--- {a: [1]}\n", "text/yaml"),
    "a form without facts": Request((("Content-Type", "application/x-www-form-urlencoded"),), b"a=1&b=2"),
    "facts in YAML": Request((("Content-Type", "application/x-www-form-urlencoded"),), b"facts=--- a"),
    "deep": response(b"[" * 10_000 + b"]" * 10_000),
}  # fmt: skip


@pytest.mark.parametrize("name", NONE)
def test_what_has_no_parts(name: str) -> None:
    assert opened(NONE[name]) is None


def test_what_is_too_large_has_none(monkeypatch: pytest.MonkeyPatch) -> None:
    assert opened(response(b"[1, 2]")) is not None
    monkeypatch.setattr(body_parts, "LARGEST", 5)
    assert opened(response(b"[1, 2]")) is None


def test_another_body_is_compressed_and_counted_as_the_first() -> None:
    packed = gzip.compress(b'{"a": [1, 2, 3]}')
    message = response(packed, **{"Content-Encoding": "gzip", "Content-Length": str(len(packed))})
    other = with_body(message, b"{}")
    assert decode.content(other) == b"{}"
    assert other.header("Content-Length") == str(len(other.body))
    emptied = with_body(message, b"")
    assert (emptied.body, emptied.header("Content-Length")) == (b"", "0")

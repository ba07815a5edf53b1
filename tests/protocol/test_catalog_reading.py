"""Catalogs whose fields have other types than a master's: read as an agent reads them."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from inspector.protocol import decode
from inspector.protocol import documents as d
from tests.support.bodies import JSON, answered
from tests.support.catalog_verdicts import cat, res


def _read(catalog: Any) -> d.Catalog:
    found = decode.catalog(answered(JSON, json.dumps(catalog).encode()))
    assert isinstance(found, d.Catalog), found
    return found


def test_fields_of_other_types_have_rubys_meaning() -> None:
    odd = res("File", 5, owner="root") | {
        "exported": "false", "line": "12", "file": 7, "kind": 5, "tags": "one", "sensitive_parameters": None,
    }  # fmt: skip
    found = _read(cat(odd, tags=[1, ["two"]], classes={"x": "y"}, version=True, code_id=7, catalog_format=None))
    assert found.unreadable == ""
    assert found.resources == [d.Resource("File", "5", {"owner": "root"}, "7", 12, True, [], ["one"], "5")]
    assert (found.tags, found.classes, found.version, found.code_id) == (["1", "two"], ["x", "y"], "true", "7")


@pytest.mark.parametrize(
    ("catalog", "reason"),
    [
        (cat({"type": "File", "file": "/m/a.pp", "line": 3}),
         "No resource title provided in serialized data (File /m/a.pp 3)"),
        (cat({"title": "x"}), "No resource type provided in serialized data (x)"),
        (cat({}), "No resource type provided in serialized data (an empty one)"),
        (cat(None), "an entry of resources is null, not a mapping"),
        (cat(res() | {"parameters": 5}), "parameters is a number, not a mapping (Notify a /m/a.pp 7)"),
        (cat(resources="x"), "resources is text, not a list"),
        (cat(environment=["x"]), "environment is a list, not text"),
        (cat() | {"edges": [{"source": 5}]}, "the source of an edge is a number, not a reference to a resource"),
        (cat(recursive_metadata={"/a": {"x": 5}}), "an entry of recursive_metadata is a number, not a list"),
    ],
)  # fmt: skip
def test_what_no_agent_can_read_is_left_out(catalog: dict[str, Any], reason: str) -> None:
    if isinstance(catalog["resources"], list):
        catalog = catalog | {"resources": [*catalog["resources"], res(title="kept")]}
    found = _read(catalog)
    assert found.unreadable == reason
    assert catalog["resources"] == "x" or found.resources[-1].title == "kept"


def test_the_first_reason_counts() -> None:
    assert _read(cat({"type": "File"}, environment=5)).unreadable == "environment is a number, not text"


def test_metadata_are_read_without_what_is_wrong_in_them() -> None:
    found = _read(cat(metadata={"/a": {"path": "/a", "owner": [1], "checksum": "x", "source": "puppet:///m"}}))
    assert found.metadata == {"/a": d.FileMetadata("/a", source="puppet:///m")}


def test_text_may_be_bytes_in_msgpack() -> None:
    body = msgspec.msgpack.encode(cat(res() | {"exported": b"true", "file": b"/m/\xff.pp"}))
    found = decode.catalog(answered("application/x-msgpack", body))
    assert isinstance(found, d.Catalog)
    assert (found.resources[0].exported, found.resources[0].file) == (True, "/m/\xff.pp")


@pytest.mark.parametrize("body", [b"[]", b'"x"', b'{"name": 5, "name'])
def test_no_mapping_is_no_catalog(body: bytes) -> None:
    assert isinstance(decode.catalog(answered(JSON, body)), d.Undecodable)


def test_what_is_marked_as_secret_stays_marked() -> None:
    """Whatever the mark looks like: views must not show it."""
    found = _read(
        cat(*(res(secret="x") | {"sensitive_parameters": mark} for mark in ("secret", {"secret": 1}, [["secret"]])))
    )
    assert [resource.sensitive for resource in found.resources] == [["secret"]] * 3

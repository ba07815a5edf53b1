"""Commands of a master to PuppetDB, read as the documents that agents and masters exchange."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from inspector.protocol import decode
from inspector.protocol import documents as d
from tests.support.bodies import JSON, asked


def _read(command: str, version: int, body: Any, encoding: str = "") -> d.Command:
    sent = body if isinstance(body, bytes) else json.dumps(body).encode()
    target = f"/pdb/cmd/v1?command={command}&version={version}&certname=a.b&producer-timestamp=now"
    found = decode.command(asked(JSON, gzip.compress(sent) if encoding else sent, encoding, target))
    assert isinstance(found, d.Command)
    return found


def test_facts() -> None:
    body = {"certname": "a.b", "values": {"kernel": "Linux"}, "producer_timestamp": "now", "producer": "m"}
    found = _read("replace_facts", 5, body, "gzip")
    assert found == d.Command("replace facts", "5", "a.b", "now", None, d.Facts("a.b", {"kernel": "Linux"}, "now"))


def test_a_catalog_has_its_edges_as_an_agents() -> None:
    ends = {"source": {"type": "File", "title": "/a"}, "target": {"type": "Service", "title": "b"}}
    resource = {"type": "File", "title": "/a", "parameters": {"mode": "0644"}, "tags": ["file"], "exported": True}
    body = {"certname": "a.b", "transaction_uuid": "u", "version": "1", "resources": [resource]}
    found = _read("replace_catalog", 9, body | {"edges": [ends | {"relationship": "before"}]})
    assert found.transaction_uuid == "u"
    assert isinstance(found.payload, d.Catalog)
    assert found.payload.resources == [d.Resource("File", "/a", {"mode": "0644"}, exported=True, tags=["file"])]
    assert found.payload.edges == [d.Edge("File[/a]", "Service[b]")]


def test_a_report_has_its_resources_events_and_metrics() -> None:
    event = {"status": "failure", "property": "ensure", "old_value": "absent", "new_value": "file", "message": "no"}
    resources = [
        {
            "resource_type": "File",
            "resource_title": "/a",
            "skipped": False,
            "containment_path": ["x"],
            "events": [event],
        },
        {"resource_type": "Exec", "resource_title": "b", "skipped": True, "events": []},
    ]
    metrics = [{"category": "time", "name": "total", "value": 1.5}, {"category": "time", "name": "file", "value": 1}]
    body = {"certname": "a.b", "transaction_uuid": "u", "status": "failed", "resources": resources, "metrics": metrics}
    found = _read("store_report", 8, body).payload
    assert isinstance(found, d.Report)
    assert (found.failed, found.times, found.outcome) == (["File[/a]"], {"total": 1.5, "file": 1}, "failed")
    (read,) = found.resource_statuses["File[/a]"].events or []
    assert (read.previous_value, read.desired_value, read.message) == ("absent", "file", "no")
    assert found.resource_statuses["Exec[b]"].skipped


@pytest.mark.parametrize(("command", "version"), [("deactivate_node", 3), ("replace_facts", 4), ("", 1)])
def test_another_command_or_version_is_data(command: str, version: int) -> None:
    found = _read(command, version, {"certname": "a.b"})
    assert (found.command, found.payload) == (command.replace("_", " "), d.Data({"certname": "a.b"}))


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"values": 5}', b'{"values": {"a": nope}}'])
def test_what_cant_be_read_is_said(body: bytes) -> None:
    found = _read("replace_facts", 5, body)
    assert (found.certname, type(found.payload)) == ("a.b", d.Undecodable)

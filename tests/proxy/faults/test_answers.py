"""Answers in the master's place."""

from __future__ import annotations

import json

import pytest

from inspector.model import Response
from inspector.protocol import documents as d
from inspector.protocol.endpoints import match
from inspector.proxy.faults import answers


def test_an_error_is_one_for_an_agent() -> None:
    answer = answers.error(503, ("Retry-After", "7"))
    assert answer.assembled("GET").startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
    assert b"\r\nRetry-After: 7\r\n" in answer.assembled("GET")
    assert json.loads(answer.body)["issue_kind"] == "RUNTIME_ERROR"
    assert answer.assembled("HEAD").endswith(b"\r\n\r\n")


@pytest.mark.parametrize(
    ("method", "target"),
    [("POST", "/puppet/v3/catalog/web1.example?environment=test"), ("POST", "/test/catalog/web1.example")],
)
def test_an_empty_catalog_is_read_as_one(method: str, target: str) -> None:
    found = match(method, target)
    assert found
    answer = answers.empty_catalog(found)
    headers = (("Content-Type", answer.content_type),)
    document = found.endpoint.response(Response(headers=headers, body=answer.body, status=200))
    assert isinstance(document, d.Catalog)
    assert (document.name, document.environment, document.resources) == ("web1.example", "test", [])

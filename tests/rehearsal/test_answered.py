"""Answers of another master as an agent would have had them."""

from __future__ import annotations

import dataclasses
import gzip
import json
from typing import Any

from inspector.model import Exchange, Request, Response
from inspector.rehearsal import answered, requests
from inspector.runs.examples import catalog, talk
from tests.support.compared import file
from tests.support.rehearsals import JSON, failing

OF = requests.asked(record for record in talk(catalog()) if isinstance(record, Exchange))


def v4(document: Any = None, **response: Any) -> Exchange:
    body: dict[str, Any] = {"headers": (JSON,), "body": json.dumps(document).encode(), "status": 200} | response
    return dataclasses.replace(OF.exchange, request=requests.v4(OF, None), response=Response(**body))


def made(**fields: Any) -> dict[str, Any]:
    return {"catalog": {"name": "node1.example", "resources": [file("/a")], **fields}, "logs": []}


def test_the_catalog_of_v4_is_the_catalog_of_an_agent() -> None:
    documents = answered.gathered(OF, [v4(made())], "label")
    assert documents.catalog is not None
    assert [resource.ref for resource in documents.catalog.resources] == ["File[/a]"]
    assert documents.facts == OF.facts
    assert documents.name == "node1.example"


def test_a_compressed_answer_of_v4() -> None:
    zipped = v4(headers=(JSON, ("Content-Encoding", "gzip")), body=gzip.compress(json.dumps(made()).encode()))
    assert answered.gathered(OF, [zipped], "label").catalog is not None


def test_what_is_no_catalog() -> None:
    odd: tuple[Any, ...] = ({"catalog": None}, [], {"catalog": [1]}, 7)
    for document in odd:
        documents = answered.gathered(OF, [v4(document)], "label")
        assert documents.without_catalog
        assert answered.failure(OF, v4(document), documents)
    cut = v4(body=b'{"catalog": {')
    assert answered.gathered(OF, [cut], "label").without_catalog


def test_why_there_is_no_catalog_with_the_rule() -> None:
    exchange = dataclasses.replace(v4(), response=failing())
    documents = answered.gathered(OF, [exchange], "label")
    assert answered.failure(OF, exchange, documents) == "no role for this node (S01)"
    nothing = dataclasses.replace(exchange, response=None, error="reset")
    assert answered.failure(OF, nothing, documents) == "reset"
    empty = v4({"catalog": {"name": "node1.example", "resources": []}})
    assert answered.failure(OF, empty, answered.gathered(OF, [empty], "label")) == "has an empty catalog"


def test_the_catalog_among_the_requests_for_files() -> None:
    one = v4(made())
    two = dataclasses.replace(one, request=requests.content(OF, "modules/m/a", "production"))
    assert answered.catalog_of([one, two]) is one
    assert answered.catalog_of([two]) is None


def test_a_web_page() -> None:
    html = (("Content-Type", "text/html"),)
    page = b"<html><title>x</title></html>"
    assert answered.is_web_page(OF, v4(headers=html, body=page, status=502))
    assert answered.is_web_page(OF, v4(headers=html, body=page))
    assert not answered.is_web_page(OF, v4(made()))
    assert not answered.is_web_page(OF, dataclasses.replace(v4(), response=failing()))
    assert isinstance(answered.to_agent(OF, v4(made())).request, Request)

"""What requests to PuppetDB are about, and what it cannot store, as PuppetDB 7.12 itself did with each value."""

from __future__ import annotations

import random
import string

import pytest

from inspector.protocol import documents as d
from inspector.protocol import puppetdb
from inspector.protocol.endpoints import match

NUL = "a\0b"
_LETTERS = random.Random(1)  # noqa: S311 - no secret


def _random(length: int) -> str:
    return "".join(_LETTERS.choices(string.ascii_letters + string.digits, k=length))


def _catalog(title: str = "/a", **fields: object) -> d.Catalog:
    return d.Catalog("a.b", resources=[d.Resource("File", title, **fields)])  # type: ignore[arg-type]


def _report(title: str = "/a", event: d.Event | None = None, **fields: object) -> d.Report:
    event = event or d.Event("success", "ensure", message="m")
    return d.Report(resource_statuses={f"File[{title}]": d.ResourceStatus(events=[event], **fields)})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "document",
    [
        d.Facts("a", {"a": NUL, "b": {"c": [NUL]}}),
        d.Facts("a", {_random(1024): 1, "ü" * 1023: 1}),
        d.Facts("a", {"a": {_random(1100): 1}, "b": "x" * 300_000}),
        _catalog(parameters={"content": NUL, "deep": [{NUL: NUL}]}),
        _catalog("abc" * 3000),
        _catalog(_random(2600)),
        _catalog("ü" * 1300),
        _report(event=d.Event("success", "ensure", NUL, [NUL], message="m")),
        _report(_random(2600)),
        d.Report(logs=[d.LogLine("info", NUL, NUL)]),
        d.Report(resource_statuses={"File[a\0b]": d.ResourceStatus(events=[], containment_path=[NUL])}),
        d.Data({NUL: NUL}),
        None,
    ],
)
def test_what_was_stored(document: d.Document | None) -> None:
    assert list(puppetdb.obstacles(document)) == []


@pytest.mark.parametrize(
    ("document", "where"),
    [
        (d.Facts("a", {NUL: 1}), "the name of the fact"),
        (d.Facts("a", {"n" * 1025: 1}), "the name of the fact"),
        (d.Facts("a", {"os": {"x": [{NUL: 1}]}}), "a key of the fact os"),
        (_catalog(NUL), "the title of the resource"),
        (_catalog(_random(4000)), "the title of the resource"),
        (_catalog(file=NUL), "the path of the manifest of File[/a]"),
        (_catalog(tags=[NUL]), "a tag of File[/a]"),
        (_catalog(parameters={NUL: 1}), "the name of a parameter of File[/a]"),
        (_catalog(parameters={_random(3000): 1}), "the name of a parameter of File[/a]"),
        (d.Catalog(version=NUL), "the version of the catalog"),
        (d.Report(configuration_version=NUL), "the version of the catalog"),
        (_report(NUL), "the title of the resource"),
        (_report(_random(2720)), "the title of the resource"),
        (_report(file=NUL), "the path of the manifest of File[/a]"),
        (_report(containment_path=[NUL]), "what contains File[/a]"),
        (_report(event=d.Event("success", "p", message=NUL)), "the message of an event of File[/a]"),
        (_report(event=d.Event("success", "p", name=NUL)), "the name of an event of File[/a]"),
        (_report(event=d.Event("success", NUL)), "the property of an event of File[/a]"),
        (_report(event=d.Event("success", _random(4000))), "the property of an event of File[/a]"),
    ],
)
def test_what_was_not_stored(document: d.Document, where: str) -> None:
    assert [found.where for found in puppetdb.obstacles(document)] == [where]


def test_of_whom_and_what() -> None:
    found = match("POST", "/pdb/cmd/v1?command=store_report&version=8&certname=a.b")
    assert found
    assert (puppetdb.command(found), puppetdb.node(found), puppetdb.query(found, d.Nothing())) == (
        "store report", "a.b", "",
    )  # fmt: skip
    found = match("GET", "/pdb/query/v4/nodes/a.b/facts")
    assert found
    assert (puppetdb.command(found), puppetdb.node(found)) == ("", "a.b")
    found = match("GET", "/pdb/query/v4/resources?query=%5B%22%3D%22%5D")
    assert found
    assert (puppetdb.node(found), puppetdb.query(found, None)) == ("", 'resources ["="]')
    found = match("POST", "/pdb/query/v4")
    assert found
    assert puppetdb.query(found, d.Data({"query": "nodes{}"})) == "nodes{}"

"""What of a run is compared."""

from __future__ import annotations

import hashlib

import pytest

from inspector.compare import documents
from inspector.model import Phase, Record
from inspector.protocol import documents as d
from inspector.runs.examples import ExamplePart, altered, catalog, content, metadata, report, talk, unanswered
from tests.support.compared import decoded, file, gathered, resource

NAME = "modules/m/f"


def test_documents_of_a_run() -> None:
    found = gathered(
        talk(
            catalog(resources=[file("/f", source=f"puppet:///{NAME}")], facts={"os": "x"}), metadata(NAME),
            content(NAME), report(result="changed"),
        )
    )  # fmt: skip
    assert found.catalog is not None
    assert found.catalog.resources[0].ref == "File[/f]"
    assert found.facts is not None
    assert found.facts.values["os"] == "x"
    assert found.report is not None
    assert found.report.status == "changed"
    assert [(request.name, request.phase, request.status) for request in found.requests] == [
        ("catalog", Phase.CATALOG, 200), (f"file_metadata {NAME}", Phase.FILES, 200),
        (f"file_content {NAME}", Phase.FILES, 200), ("report", Phase.REPORT, 200),
    ]  # fmt: skip
    assert [use.name for use in found.files] == [NAME]
    assert found.contents == {3: b"content"}
    assert (found.name, found.server, found.without_catalog) == ("node1.example", "puppet.example", "")


def test_the_last_catalog_counts() -> None:
    first, second = catalog(resources=[file("/a")]), catalog(resources=[file("/b")])
    found = gathered(talk(first, second, report()))
    assert found.catalog is not None
    assert found.catalog.resources[0].title == "/b"
    failed = gathered(talk(first, catalog(status=500, text="Server Error: x"), report(result="failed")))
    assert (failed.catalog, failed.without_catalog, failed.catalog_failure) == (
        None, "got no catalog", "x",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("part", "failure"),
    [
        (unanswered(catalog(), "the master closed the connection"), "the master closed the connection"),
        (altered(catalog(), response={"body": b"{"}), "Input data was truncated"),
    ],
)
def test_why_there_is_no_catalog(part: ExamplePart, failure: str) -> None:
    found = gathered(talk(part, report(result="failed")))
    assert failure in found.catalog_failure


def test_secrets_in_the_reason_are_masked() -> None:
    text = "Server Error: cannot log in as root with hunter2hunter2"
    facts = {"db_password": "hunter2hunter2"}
    assert gathered(talk(catalog(status=500, text=text, facts=facts))).catalog_failure == (
        "cannot log in as root with MASKED"
    )


def test_a_run_that_asked_for_none() -> None:
    assert gathered(talk(report(result="failed"))).without_catalog == "asked for no catalog"


def test_an_empty_catalog_has_nothing_but_what_all_have() -> None:
    usual = [resource("Stage", "main"), resource("Class", "Settings"), resource("Class", "main")]
    assert documents.empty(decoded([]))
    assert documents.empty(decoded(usual))
    assert documents.empty(decoded([*usual, resource("Node", "default")]))  # what 7.23 sends for `node default {}`
    assert documents.empty(decoded([*usual, resource("Node", "a.example")]))
    assert not documents.empty(decoded([*usual, resource("Node", "default"), resource("Notify", "a")]))
    assert not documents.empty(decoded([*usual, resource("Class", "a")]))
    assert not documents.empty(decoded([file("/a")]))


def test_large_contents_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "CONTENT_MOST", 10)
    monkeypatch.setattr(documents, "CONTENTS_MOST", 12)
    parts = [content(f"modules/m/{size}", b"x" * size) for size in (11, 8, 5, 4)]
    assert gathered(talk(catalog(resources=[file("/a")]), *parts, report())).contents == {3: b"x" * 8, 5: b"x" * 4}


def test_of_a_capture() -> None:
    records = {record.seq: record for record in talk(catalog(resources=[file("/a")]), report())}
    body = hashlib.sha256(b"x").hexdigest()

    class Stored:
        def record(self, seq: int) -> Record | None:
            return records.get(seq)

        def body(self, digest: str) -> bytes | None:
            return b"x" if digest == body else None

    run = gathered(records.values()).run
    found = documents.of_run(Stored(), [1, 2, 3], run, "c run 1")
    assert isinstance(found.catalog, d.Catalog)
    assert found.stored(body) == b"x"
    left_out = documents.of_run(Stored(), [1, 2], run, "c run 1", {1: "it took too long"})
    assert left_out.catalog_failure == "not analyzed: it took too long"

"""What a run's documents show in a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inspector.formats.outgoing import ALL
from inspector.report import parts
from tests.support.pages import content_of, sample

if TYPE_CHECKING:
    import pytest

    from inspector.report.drawings import Drawing


def parts_of(name: str, **given: Any) -> dict[str, Drawing]:
    (section,) = content_of(sample(name), **given).sections
    return {part.title: part for part in (*section.parts.documents, *section.parts.connections)}


def test_a_run_has_facts_catalog_files_report_and_connections() -> None:
    found = parts_of("first-run")
    assert list(found) == [
        "Facts", "Catalog: 23 resources", "Catalog by file", "Catalog as a tree", "About the catalog", "Files: 13",
        "Report: events", "Report: log", "Report: metrics", "About the report", "Connections: 8",
    ]  # fmt: skip
    states = [row[0] for row in found["Catalog: 23 resources"].rows]
    assert states[0] == "changed"
    assert found["Catalog by file"].rows[0][0]
    assert found["Files: 13"].rows[0][0] == "fetched"
    assert len(found["Connections: 8"].rows) == 8


def test_values_are_there_only_if_they_are_opened() -> None:
    closed, opened = parts_of("first-run")["Facts"], parts_of("first-run", opened=ALL)["Facts"]
    assert "rack: A7" not in str(closed)
    assert "A7" in str(opened)
    assert [node.text.partition(":")[0] for node in closed.nodes] == [
        node.text.partition(":")[0] for node in opened.nodes
    ]


def test_a_run_without_a_catalog_says_why() -> None:
    found = parts_of("compile-error")
    assert "no role for this node" in "".join(found["No catalog"].lines)
    assert not any(title.startswith("Catalog") for title in found)


def test_connections_that_are_not_drawn_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "MOST", 1)
    drawing = parts_of("first-run")["Connections: 8"]
    assert (len(drawing.rows), drawing.note) == (1, "… 7 more connections in the capture")


def test_a_refused_connection_is_marked() -> None:
    (part,) = (part for title, part in parts_of("revoked").items() if title.startswith("Connections"))
    assert {row[2] for row in part.rows} == {"failed"}

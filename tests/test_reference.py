"""The generated pages are current, and ``explain`` answers whatever it is asked."""

from __future__ import annotations

from pathlib import Path

import pytest

from inspector import reference
from inspector.errors import InspectorError
from inspector.protocol.endpoints import ENDPOINTS
from inspector.rules import all_rules

DOCS = Path(__file__).resolve().parents[1] / "docs"


@pytest.mark.parametrize("name", reference.PAGES)
def test_the_page_is_current(name: str) -> None:
    written = (DOCS / name).read_text(encoding="utf-8")
    assert written == reference.PAGES[name](), "run `make docs`"


def test_the_readmes_table_is_current() -> None:
    text = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    assert text == reference.readme(text), "run `make docs`"
    assert all(f"| [{rule.id}](" in text for rule in all_rules())


@pytest.mark.parametrize("name", sorted({endpoint.name for endpoint in ENDPOINTS}))
def test_every_endpoint_is_explained(name: str) -> None:
    told = reference.explain(name)
    assert told["endpoint"] == name
    assert all(told.values())
    # What a person reads has no regular expression left in it.
    assert not any(mark in told["requests"] for mark in ("(?", "[^", ".*", ".+", "\\"))


@pytest.mark.parametrize("rule", [rule.id for rule in all_rules()])
def test_every_rule_is_explained(rule: str) -> None:
    assert reference.explain(rule.lower())["rule"].startswith(rule)


def test_a_path_is_explained() -> None:
    assert reference.explain("/puppet/v3/file_metadata/modules/m/f?environment=x")["endpoint"] == "file_metadata"
    assert reference.explain("production/certificate/ca")["endpoint"] == "ca"


@pytest.mark.parametrize(
    ("what", "near"), [("file_metdata", "file_metadata"), ("B99", "B"), ("nonsense", "Endpoints are")]
)
def test_what_is_unknown_is_said_with_the_nearest(what: str, near: str) -> None:
    with pytest.raises(InspectorError) as error:
        reference.explain(what)
    assert near in error.value.hint

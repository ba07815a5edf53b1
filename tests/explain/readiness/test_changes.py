"""The table of changes: each is shown by something, and nothing is shown by a healthy run of the newest version."""

from __future__ import annotations

import pytest

from inspector.explain.readiness.changes import CHANGES, TARGETS, UNCHECKED, Change, for_version, unchecked_for
from inspector.explain.readiness.survey import Survey
from inspector.rules import rule_of
from tests.docs import markdown
from tests.support import upgrades
from tests.support.places import DOCS

NEWEST = TARGETS[-1]


@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.key)
def test_a_change_is_shown_by_what_it_is_about_alone(change: Change) -> None:
    survey = Survey(NEWEST)
    survey.add("a.sqlite", upgrades.showing(change.key))
    alike = {"legacy-url": {"md5", "pson", "report-store"}, "revocation": set(), "yaml": {"report-store"},
             "weak-certificates": {"report-store"}}  # fmt: skip
    assert change.key in survey.found
    assert survey.found.keys() - {change.key} <= alike.get(change.key, set())


def test_agents_that_have_a_version_are_not_told_of_what_it_brings() -> None:
    for key, target, version, concerned in (
        ("legacy-facts", 8, 7, True),
        ("legacy-facts", 9, 7, True),
        ("legacy-facts", 9, 8, False),
        ("deferred", 8, 7, True),
        ("deferred", 8, 8, False),
        ("deferred", 9, 8, True),  # 9 takes it back
        ("deferred", 9, 7, False),
        ("deferred", 9, 9, False),
        ("deferred", 9, 0, True),
        ("renewal", 9, 8, True),
    ):
        (change,) = [change for change in CHANGES if change.key == key]
        assert change.concerns(version, target) == concerned, (key, target, version)


def test_a_healthy_run_of_the_newest_version_shows_nothing() -> None:
    survey = Survey(NEWEST)
    survey.add("a.sqlite", upgrades.healthy())
    assert survey.found == {}
    assert [*survey.agents.values()] == ["8.28.1"]


def test_every_change_has_one_source_of_evidence_and_sources() -> None:
    assert len({change.key for change in CHANGES}) == len(CHANGES)
    for change in CHANGES:
        assert bool(change.sign) != bool(change.rules), change.key
        assert change.fix, change.key
        assert change.sources, change.key
        for ident in change.rules:
            assert rule_of(ident).id == ident


def test_a_rule_shows_one_change_only() -> None:
    rules = [ident for change in CHANGES for ident in change.rules]
    assert len(set(rules)) == len(rules)


def test_sections_that_are_cited_exist() -> None:
    anchors = markdown.anchors((DOCS / "protocol.md").read_text(encoding="utf-8"))
    for row in (*CHANGES, *UNCHECKED):
        for source in row.sources:
            if source.startswith("docs/protocol.md#"):
                assert source.partition("#")[2] in anchors, source


def test_a_version_brings_what_came_before_too() -> None:
    assert set(for_version(8)) < set(for_version(9)) == set(CHANGES)
    assert max(change.since for change in for_version(8)) == 8
    assert set(unchecked_for(8)) < set(unchecked_for(9)) == set(UNCHECKED)

"""A survey in words: nothing raw, nothing left out."""

from __future__ import annotations

from inspector.explain.readiness import survey_text
from inspector.explain.readiness.changes import UNCHECKED
from inspector.explain.readiness.survey import Survey
from inspector.runs.examples import catalog, talk
from tests.support.json_output import builtins
from tests.support.upgrades import FACTS, healthy, quiet


def surveyed(*captures: object, target: int = 9) -> Survey:
    survey = Survey(target)
    for number, records in enumerate(captures, 1):
        survey.add(f"folder/{number}.sqlite", records)  # type: ignore[arg-type]
    return survey


def test_the_head_says_what_was_looked_at() -> None:
    survey = surveyed(talk(catalog(facts=FACTS), quiet()))
    assert survey_text.head(survey) == (
        "OpenVox 9: 1 of 18 changes concern what was recorded, of 1 node (1x 7.23.0), master 7.23.0"
    )
    assert survey_text.head(surveyed([], target=8)) == (
        "Puppet 8 and OpenVox 8: 0 of 14 changes concern what was recorded, of 0 nodes"
    )


def test_the_capture_is_named_if_there_are_several() -> None:
    records = talk(catalog(facts=FACTS), quiet())
    assert survey_text.rows(surveyed(records))[0][-1] == "record 1"
    assert survey_text.rows(surveyed(records, healthy()))[0][-1] == "record 1 of 1.sqlite"


def test_the_details_have_the_fix_with_its_commands() -> None:
    survey = surveyed(talk(catalog(facts=FACTS), quiet()))
    lines = [*survey_text.details(survey, survey.affected[0], None)]
    assert lines[0] == "legacy facts (changed default, Puppet 8 and OpenVox 8)"
    assert lines[1] == "  nodes:  node1.example"
    assert any(line.strip() == "puppet config set include_legacy_facts false --section agent" for line in lines)
    assert all(len(line) <= 100 for line in lines if "puppet config" not in line)


def test_what_was_not_recorded_and_what_cannot_be_seen_is_said() -> None:
    survey = surveyed(healthy())
    text = "\n".join(survey_text.rest(survey, 10_000))
    assert text.startswith("not recorded: URLs of Puppet 2.7 and 3; ")
    assert text.count("\n  - ") == len(UNCHECKED)


def test_captured_text_is_clean() -> None:
    survey = surveyed(talk(catalog(facts=FACTS), quiet(), version="7.0\x1b[31m", certname="a\x1b[2J"))
    words = [survey_text.head(survey), *survey_text.details(survey, survey.affected[0], None)]
    assert "\x1b" not in "".join(words)


def test_json_has_every_change_with_its_nodes() -> None:
    document = builtins(survey_text.plain(surveyed(talk(catalog(facts=FACTS), quiet()))))
    by_key = {change["key"]: change for change in document["changes"]}
    assert by_key["pson"]["nodes"] == []
    (node,) = by_key["legacy-facts"]["nodes"]
    assert (node["node"], node["record"], node["capture"], node["records"]) == (
        "node1.example",
        1,
        "folder/1.sqlite",
        1,
    )
    assert document["agents"] == [{"node": "node1.example", "version": "7.23.0"}]

"""A survey in words: nothing raw, nothing left out."""

from __future__ import annotations

from inspector.explain.readiness import survey_text
from inspector.explain.readiness.changes import UNCHECKED
from inspector.explain.readiness.survey import Survey
from inspector.runs.examples import catalog, plugins, renewal, talk
from tests.support.conversations import Agent, numbered
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
        "OpenVox 9: 1 of 21 changes concern what was recorded, of 1 node (1x 7.23.0), master 7.23.0"
    )
    assert survey_text.head(surveyed([], target=8)) == (
        "Puppet 8 and OpenVox 8: 0 of 14 changes concern what was recorded, of 0 nodes"
    )


def test_nodes_whose_agent_did_not_run_are_counted_as_in_the_table() -> None:
    asks = Agent("", version="3.0").ask("GET", "/puppet/v3/status/a?environment=production",
                                        headers=(("User-Agent", "curl/8"),)).records  # fmt: skip
    survey = surveyed(talk(catalog(facts=FACTS), quiet()), numbered(asks))
    assert "of 2 nodes (1x 7.23.0, 1x no run of an agent)" in survey_text.head(survey)
    assert {row[2] for row in survey_text.rows(survey)} == {"1"}


def test_what_was_recorded_and_concerns_no_node_is_not_called_not_recorded() -> None:
    survey = surveyed(talk(renewal(), plugins(), catalog(), quiet(), version="8.10.0"))
    first, second = "\n".join(survey_text.rest(survey, 10_000)).split("\n\n")[:2]
    assert first == "recorded, and no node is concerned: renewal of certificates"
    assert second.startswith("not recorded: ")
    assert "renewal" not in second
    document = builtins(survey_text.plain(survey))
    assert {change["key"] for change in document["changes"] if change["recorded"]} == {"renewal"}


def test_the_capture_is_named_if_there_are_several() -> None:
    records = talk(catalog(facts=FACTS), quiet())
    assert survey_text.rows(surveyed(records))[0][-1] == "record 1"
    other = talk(catalog(), quiet(), certname="b.example")
    assert survey_text.rows(surveyed(records, other))[0][-1] == "record 1 of 1.sqlite"


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

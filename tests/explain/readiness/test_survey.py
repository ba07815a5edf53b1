"""Evidence by node: whose it is, the latest, over several captures."""

from __future__ import annotations

from inspector.explain.readiness.survey import Survey
from inspector.runs.examples import asked, ca, catalog, csr, issued, plugins, talk, together
from tests.support.conversations import Agent, numbered
from tests.support.secrets import WORD
from tests.support.upgrades import FACTS, quiet, showing


def surveyed(*captures: object, target: int = 9) -> Survey:
    survey = Survey(target)
    for number, records in enumerate(captures, 1):
        survey.add(f"folder/{number}.sqlite", records)  # type: ignore[arg-type]
    return survey


def only(survey: Survey, key: str) -> object:
    (change,) = [change for change in survey.affected if change.key == key]
    return survey.evidence(change)


def test_each_node_has_its_latest_record() -> None:
    one = talk(catalog(facts=FACTS), quiet(), catalog(uuid="a-2", facts=FACTS | {"domain": "x"}), quiet(uuid="a-2"))
    other = talk(catalog(facts=FACTS), quiet(), certname="b.example", after=1.5)
    survey = surveyed(together(one, other))
    (change,) = survey.affected
    first, second = survey.evidence(change)
    assert (first.node, first.records, first.text[:1]) == ("node1.example", 2, "4")
    assert (second.node, second.records, second.text[:1]) == ("b.example", 1, "3")
    assert first.time > second.time
    assert survey.agents == {"node1.example": "7.23.0", "b.example": "7.23.0"}
    assert [*survey.masters] == ["7.23.0"]


def test_captures_are_added_up_and_the_latest_is_named_whatever_their_order() -> None:
    early = talk(catalog(facts=FACTS), quiet())
    late = talk(plugins(), catalog(facts=FACTS), quiet(), after=1000)
    for captures, latest in (((early, late), "folder/2.sqlite"), ((late, early), "folder/1.sqlite")):
        survey = surveyed(*captures)
        (found,) = survey.evidence(survey.affected[0])
        assert (found.capture, found.record, found.records) == (latest, 2, 2)


def test_what_is_shown_before_the_name_is_known_belongs_to_the_node() -> None:
    early = Agent("c.example", version="3.8.7").ca()
    records = numbered([*early.records, *early.csr().records[1:]])
    survey = surveyed(records)
    assert [*survey.found["legacy-url"]] == ["c.example"]
    assert survey.found["legacy-url"]["c.example"].records == 2


def test_a_rule_for_whole_runs_counts_too() -> None:
    survey = surveyed(talk(ca(), csr(), issued(), catalog(), quiet()))
    assert [*survey.found] == ["revocation"]
    assert survey.found["revocation"]["node1.example"].text.startswith("the agent bootstrapped and ran")


def test_a_tool_is_named_with_its_program() -> None:
    records = Agent("", version="3.0").ask("GET", "/puppet/v3/status/a?environment=production",
                                         headers=(("User-Agent", "curl/8"),)).records  # fmt: skip
    survey = surveyed(numbered(records))
    assert [*survey.found["removed-endpoint"]] == ["192.0.2.1 (curl/8)"]
    assert survey.agents == {}


def test_what_a_later_version_brings_is_not_looked_for() -> None:
    assert surveyed(showing("report-store"), target=8).found == {}
    assert [*surveyed(showing("report-store")).found] == ["report-store"]


def test_no_secret_is_quoted() -> None:
    line = f"Unknown variable: 'x' with password={WORD}"
    survey = surveyed(talk(quiet(logs=[{"level": "warning", "message": line}])))
    (found,) = survey.found["strict"].values()
    assert "Unknown variable" in found.text
    assert WORD not in found.text


def test_records_that_were_not_analyzed_are_counted() -> None:
    assert surveyed(talk(asked("/status/v1/simple", b"running", run=False))).unanalyzed == 0

"""Evidence by node: whose it is, the latest, over several captures."""

from __future__ import annotations

from inspector.explain.readiness.survey import Survey
from inspector.runs.examples import asked, ca, catalog, crl, csr, issued, plugins, renewal, report, talk, together
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


def test_agents_of_the_version_are_not_concerned_by_what_it_brought() -> None:
    survey = surveyed(showing("deferred"), target=8)
    assert survey.agents == {"node1.example": "8.10.0"}
    assert survey.affected == []
    assert [change.key for change in survey.past] == ["deferred"]
    assert [change.key for change in surveyed(showing("deferred")).affected] == ["deferred"]


def test_a_node_that_was_upgraded_meanwhile_is_not_concerned_whatever_the_order_of_captures() -> None:
    old = talk(catalog(facts=FACTS), quiet(), version="7.23.0")
    new = talk(plugins(), catalog(), quiet(), version="8.10.0", after=1000)
    for captures in ((old, new), (new, old)):
        survey = surveyed(*captures)
        assert survey.agents == {"node1.example": "8.10.0"}
        assert survey.affected == []


def test_a_master_of_the_version_is_not_concerned_by_what_it_brought() -> None:
    survey = surveyed(talk(report(), version="8.10.0", master_version="9.0.0"))
    assert survey.affected == []
    assert [change.key for change in survey.past] == ["report-store"]


def test_a_renewal_that_was_recorded_counts_as_recorded() -> None:
    survey = surveyed(talk(renewal(), plugins(), catalog(), quiet(), version="8.10.0"))
    assert survey.affected == []
    assert [change.key for change in survey.past] == ["renewal"]


def test_a_run_that_ended_before_its_certname_was_known_is_of_the_node_at_its_address() -> None:
    early = talk(ca(), crl(complete=False), after=-900)
    survey = surveyed(numbered([*early, *showing("pson")]))
    assert survey.agents == {"node1.example": "7.23.0"}
    assert [*survey.found["revocation"]] == ["node1.example"]
    other = talk(catalog(), quiet(), certname="b.example", after=900)
    several = surveyed(numbered([*early, *showing("pson"), *other]))
    assert len(several.agents) == 3
    assert "node1.example" not in several.found["revocation"]


def test_a_node_is_listed_once_whatever_calls_with_its_certificate() -> None:
    agent = Agent("d.example", version="3.0").csr()
    curl = (("User-Agent", "curl/8"),)
    agent.ask("GET", "/puppet/v3/status/a?environment=production", own=True, headers=curl)
    agent.wait(600).ask("GET", "/puppet-ca/v1/certificate_statuses/any", own=True, headers=curl)
    survey = surveyed(numbered(agent.records))
    assert {node for nodes in survey.found.values() for node in nodes} == {"d.example"}


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

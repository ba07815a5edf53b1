"""Rules that a site writes in its rules file: what they find, and what is wrong with them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from inspector.analysis.analyzer import Analyzer
from inspector.model import Severity
from inspector.rules.fixes import Host, Step, plain
from inspector.runs.examples import catalog, content, metadata, node, refused, report, slow, talk
from inspector.summaries import site_rules
from inspector.summaries.site_rules import RuleError, rule_parts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inspector.model import Finding, Record

RUN = talk(node(), catalog(environment="staging"), metadata("app/a"), content("app/a"), content("app/b"), report())


def found(entry: dict[str, Any], records: Sequence[Record] = RUN) -> list[Finding]:
    """What a rule finds in a conversation."""
    analyzer = Analyzer(rule_parts("U01", {"title": "a title", **entry}, "rules.yaml, line 2"))
    for record in records:
        assert analyzer.feed(record).trouble == []
    assert analyzer.failed == {}
    return [finding for run in analyzer.finish() for finding in run.findings]


def messages(entry: dict[str, Any], records: Sequence[Record] = RUN) -> list[str]:
    return [finding.message for finding in found(entry, records)]


# -- of records -----------------------------------------------------------------------------------------


def test_each_record_that_matches_is_a_finding() -> None:
    (finding,) = found({"when": "endpoint:file_content", "message": "{method} {path}"}, RUN[:4])
    assert (finding.rule, finding.severity, finding.seqs) == ("U01", Severity.WARNING, (4,))
    assert finding.message.startswith("GET /puppet/v3/file_content/")
    assert len({finding.message for finding in found({"when": "phase:files", "message": "{path}"})}) == 3


def test_the_fields_of_a_message() -> None:
    records = talk(slow(catalog(asks="staging"), 7), report())
    message = "{agent}|{address}|{environment}|{version}|{phase}|{endpoint}|{method}|{path}|{status}|{ms}|{run}"
    (text,) = messages({"when": "phase:catalog ms:>5000", "message": message}, records)
    agent, address, environment, version, *rest = text.split("|")
    assert (agent, environment, rest[:3]) == ("node1.example", "staging", ["catalog", "catalog", "POST"])
    assert (address, version) == ("192.0.2.7", records[0].request.header("x-puppet-version"))  # type: ignore[union-attr]
    assert rest[3:5] == ["/puppet/v3/catalog/node1.example", "200"]
    assert int(rest[5]) >= 7000


def test_a_field_without_a_value_and_one_that_looks_like_a_field() -> None:
    records = talk(catalog(asks="{agent}"), report())
    assert messages({"when": "phase:catalog", "message": "{environment}"}, records) == ["{agent}"]
    records = talk(refused(reason="unknown ca"))
    assert messages({"when": "phase:handshake", "message": "of {version}, {status}"}, records) == ["of -, no answer"]


def test_a_failed_handshake_is_a_record() -> None:
    assert len(found({"when": "phase:handshake"}, talk(refused(reason="unknown ca")))) == 1


def test_bytes_of_the_wire_reach_no_terminal_and_make_no_endless_message() -> None:
    records = talk(catalog(asks="a\x1b]0;x\x07" + "b" * 10_000), report())
    (text,) = messages({"when": "phase:catalog", "message": "{environment}"}, records)
    assert "\x1b" not in text
    assert len(text) < 2 * site_rules.QUOTED


# -- of runs --------------------------------------------------------------------------------------------


def test_a_number_of_records_of_a_run() -> None:
    entry = {"per": "run", "when": "endpoint:file_content", "message": "{count} of {agent}"}
    (finding,) = found(entry | {"at_least": 2})
    assert (finding.message, finding.seqs) == ("2 of node1.example", (4, 5))
    assert found(entry | {"at_least": 3}) == []


def test_records_of_a_run_and_what_the_run_was() -> None:
    entry = {"per": "run", "when": "endpoint:file_content outcome:complete", "at_least": 1}
    assert len(found(entry)) == 1
    assert found(entry | {"when": "endpoint:file_content outcome:failed"}) == []


def test_what_is_missing_in_a_run() -> None:
    entry = {"per": "run", "missing": "phase:report", "message": "{agent}: {outcome}"}
    assert found(entry) == []
    (finding,) = found(entry, RUN[:-1])
    # It may still be in progress.
    assert (finding.severity, finding.message) == (Severity.NOTICE, "node1.example: unfinished")
    assert found(entry | {"when": "agent:other*"}, RUN[:-1]) == []
    later = talk(catalog(), report(), certname="other.example")
    assert later
    assert len(found({"per": "run", "missing": "endpoint:file_bucket_file", "when": "agent:node1*"})) == 1


def test_a_property_of_a_run() -> None:
    assert len(found({"per": "run", "when": "outcome:complete"})) == 1
    assert found({"per": "run", "when": "outcome:failed"}) == []
    assert messages({"per": "run", "when": "status:200", "message": "{count}"}) == ["6"]


# -- what is said of them -------------------------------------------------------------------------------


def test_title_severity_fix_and_explanation() -> None:
    entry = {
        "title": "  a \n title. ", "when": "phase:catalog", "severity": "error", "explanation": "Because.",
        "fix": ["look", {"text": "restart {it}", "command": "run {name} {host}", "on": "node", "destroys": "it"}],
    }  # fmt: skip
    first, *others = rule_parts("U07", entry, "rules.yaml, line 3")
    assert {rule.id for rule in (first, *others)} == {"U07"}
    assert (first.title, first.severity, first.explanation) == ("a title", Severity.ERROR, "Because.")
    assert first.source == "rules.yaml, line 3"
    one, two = first.fix
    assert (one, two.on) == (Step("look", "", None, "", ""), Host("node"))
    assert "restart {it}" in plain(first.fix_for(None))


def test_without_a_fix_it_names_the_file() -> None:
    (rule, _) = rule_parts("U01", {"title": "x", "when": "phase:catalog"}, "ru{les.yaml, line 9")
    assert "ru{les.yaml, line 9" in plain(rule.fix_for(None))


@pytest.mark.parametrize(
    ("entry", "key", "message"),
    [
        ({"when": "phse:catalog"}, "when", "no key 'phse'"),
        ({"when": "ms:>x"}, "when", "when: "),
        ({"title": "", "when": "ms:>1"}, "title", "title must be a text"),
        ({"title": None, "when": "ms:>1"}, "title", "title must be a text, not None"),
        ({}, "when", "when must be a text"),
        ({"when": 5}, "when", "when must be a text, not 5"),
        ({"wehn": "x"}, "wehn", "There is no key 'wehn'"),
        ({"when": "ms:>1", "per": "hour"}, "per", "not 'hour'"),
        ({"when": "ms:>1", "severity": "bad"}, "severity", "'bad' is not a severity"),
        ({"when": "ms:>1", "severity": ["error"]}, "severity", "is not a severity"),
        ({"when": "ms:>1", "message": "{agnt}"}, "message", "no field {agnt}"),
        ({"when": "ms:>1", "message": "{count}"}, "message", "add `per: run`"),
        ({"when": "ms:>1", "per": "run", "message": "{path}"}, "message", "omit `per: run`"),
        ({"when": "ms:>1", "at_least": 2}, "at_least", "about all records"),
        ({"when": "ms:>1", "missing": "phase:report"}, "missing", "about all records"),
        ({"when": "ms:>1", "per": "run", "at_least": 0}, "at_least", "not 0"),
        ({"when": "ms:>1", "per": "run", "at_least": True}, "at_least", "not True"),
        ({"when": "ms:>1", "per": "run", "at_least": "3"}, "at_least", "not '3'"),
        ({"when": "a", "per": "run", "at_least": 2, "missing": "b"}, "missing", "not both"),
        ({"when": "phase:files", "per": "run", "missing": "phase:report"}, "when", "about the run as a whole"),
        ({"per": "run", "missing": "outcome:failed"}, "missing", "outcome cannot be used here"),
        ({"when": "outcome:failed"}, "when", "outcome cannot be used here"),
        ({"when": "rule:B01"}, "when", "rule cannot be used here"),
        ({"when": "since:2026-01-01"}, "when", "cannot have since"),
        ({"when": "ms:>1", "fix": 5}, "fix", "text or a mapping"),
        ({"when": "ms:>1", "fix": {"comand": "x"}}, "fix", "no key 'comand'"),
        ({"when": "ms:>1", "fix": {"text": 5}}, "fix", "must be a text"),
        ({"when": "ms:>1", "fix": {"text": "x", "on": "moon"}}, "fix", "no host 'moon'"),
        ({"when": "ms:>1", "fix": {"on": "node"}}, "fix", "a text or a command"),
    ],
)
def test_a_mistake_names_its_key(entry: dict[str, Any], key: str, message: str) -> None:
    with pytest.raises(RuleError) as raised:
        rule_parts("U01", {"title": "a title", **entry}, "rules.yaml, line 2")
    assert raised.value.key == key
    assert message in raised.value.message
    assert raised.value.hint


def test_a_rule_is_a_mapping() -> None:
    with pytest.raises(RuleError, match="is a mapping, not"):
        rule_parts("U01", ["x"], "rules.yaml, line 2")

"""A site's rules.yaml: severities, thresholds, what is ignored; and mistakes in it."""

from __future__ import annotations

import datetime
from typing import TYPE_CHECKING

import pytest

from inspector.analysis.analyzer import Analyzer
from inspector.errors import InspectorError
from inspector.model import Severity
from inspector.runs.examples import ca, catalog, crl, csr, issued, report, talk
from inspector.summaries import ruleset

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.rules import Ruleset

BOOTSTRAP = talk(ca(), crl(), csr(), issued(), catalog(), report())


def written(folder: Path, text: str) -> Ruleset:
    path = folder / "rules.yaml"
    path.write_text(text)
    return ruleset.load(path)


def severities(rules: Ruleset) -> dict[str, Severity]:
    analyzer = Analyzer(rules.rules, rules.ignores)
    for record in BOOTSTRAP:
        analyzer.feed(record)
    (run,) = analyzer.finish()
    return {finding.rule: finding.severity for finding in run.findings}


def test_without_a_file_all_rules_are_as_they_are() -> None:
    assert severities(ruleset.load(None))["B01"] is Severity.NOTICE


@pytest.mark.parametrize("off", ["off", "'off'", "{severity: off}", "false"])
def test_a_rule_can_be_off(tmp_path: Path, off: str) -> None:
    assert "B01" not in severities(written(tmp_path, f"rules:\n  B01: {off}\n"))


@pytest.mark.parametrize("wanted", ["error", "{severity: error}"])
def test_a_severity_is_what_the_site_wants(tmp_path: Path, wanted: str) -> None:
    assert severities(written(tmp_path, f"rules:\n  B01: {wanted}\n"))["B01"] is Severity.ERROR


def test_a_threshold_is_the_sites(tmp_path: Path) -> None:
    plain = {rule.id: rule for rule in ruleset.load(None).rules}
    name = next(iter(plain["S08"].thresholds))
    rules = {rule.id: rule for rule in written(tmp_path, f"rules:\n  S08: {{{name}: 123}}\n").rules}
    assert rules["S08"].thresholds[name] == 123
    assert plain["S08"].thresholds[name] != 123
    assert rules["S08"].chosen is None


DAY = datetime.datetime.fromtimestamp(BOOTSTRAP[0].time, datetime.UTC).date()


@pytest.mark.parametrize(
    ("entry", "gone"),
    [
        ("rules: B01", True),
        ("rules: [B03, B01]", True),
        ("rules: B03", False),
        ("certname: 'node*.example'", True),
        ("certname: [other, node1.example]", True),
        ("certname: other.example", False),
        (f"until: {DAY + datetime.timedelta(days=1)}", True),
        (f"until: {DAY}", False),
        (f"until: {DAY + datetime.timedelta(days=1)} 00:00:00", True),
        (f"rules: B01\n    certname: node1.example\n    until: {DAY + datetime.timedelta(days=1)}\n    why: x", True),
        (f"rules: B01\n    certname: node1.example\n    until: {DAY}", False),
    ],
)
def test_what_a_site_does_not_want_to_see(tmp_path: Path, entry: str, gone: bool) -> None:
    # B01 comes before the agent has said its name.
    assert ("B01" not in severities(written(tmp_path, f"ignore:\n  - {entry}\n"))) is gone


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("rules: {b01: off}", "there is no rule 'b01'", "Did you mean B01"),
        ("rules: {B99: off}", "there is no rule 'B99'", "Did you mean"),
        ("rules: {B01: {sevrity: error}}", "there is no key 'sevrity'", "Did you mean severity?"),
        ("rules: {B01: eror}", "'eror' is not a severity", "Did you mean error?"),
        ("rules: {S08: {warning_s: soon}}", "must be a number", "`S08: {warning_s: 10}`"),
        (f"rules: {{S08: {{warning_s: {'9' * 400}}}}}", "must be a number", "`S08: {warning_s: 10}`"),
        (f"rules: {{S08: {{warning_s: 0x{'f' * 5000}}}}}", "must be a number", "`S08: {warning_s: 10}`"),
        ("rules: {S08: {warning_s: .nan}}", "must be a number", "`S08: {warning_s: 10}`"),
        ("rules: [B01]", "rules must be a mapping", "B45: off"),
        ("ruls: {}", "there is no key 'ruls'", "Did you mean rules?"),
        ("ignore: {rules: B01}", "`ignore` is a list", "B45: off"),
        ("ignore: [{rules: X01}]", "there is no rule 'X01'", ""),
        ("ignore: [{until: soon}]", "until must be a date", "2027-01-31"),
        ("ignore: [{why: because}]", "would ignore everything", ""),
        ("ignore: [{rules: []}]", "must be a string or a list of strings", ""),
        ("ignore: [{certname: 7}]", "must be a string or a list of strings", ""),
        ("[1, 2", "is not valid YAML in line", "rules:"),
        ("- 1", "the file must be a mapping", ""),
        ("!!python/object:os.system x", "is not valid YAML", ""),
    ],
)
def test_a_mistake_is_reported_with_what_it_should_be(tmp_path: Path, text: str, message: str, hint: str) -> None:
    with pytest.raises(InspectorError) as error:
        written(tmp_path, text)
    assert message in error.value.message
    assert "rules.yaml" in error.value.message
    assert hint in error.value.hint
    assert error.value.hint


def test_exemptions_that_have_ended_are_reported(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(
        "ignore:\n"
        "  - {rules: [B18, B01], until: 2026-01-01}\n"
        "  - {certname: build*, until: 2026-01-02 12:00:00}\n"
        "  - {rules: B02, until: 2026-01-03}\n"
        "  - rules: B03\n"
    )
    noon = datetime.datetime(2026, 1, 2, 12, tzinfo=datetime.UTC).timestamp()
    assert ruleset.load(path, now=noon).warnings == (
        f"{path}: the exception for B01, B18 ended on 2026-01-01",
        f"{path}: the exception for all rules for build* ended on 2026-01-02",
    )
    assert len(ruleset.load(path, now=noon - 1).warnings) == 1
    assert ruleset.load(path).warnings == ()


def test_a_file_that_is_not_there_or_too_large(tmp_path: Path) -> None:
    with pytest.raises(InspectorError, match=r"cannot be read: No such file.*docs/findings"):
        ruleset.load(tmp_path / "none.yaml")
    with pytest.raises(InspectorError, match="is larger than"):
        written(tmp_path, "#" * (ruleset.LARGEST + 1))


def test_an_empty_file_changes_nothing(tmp_path: Path) -> None:
    empty, usual = written(tmp_path, "# nothing\n"), ruleset.load(None)
    assert (empty.rules, empty.ignores, empty.warnings) == (usual.rules, usual.ignores, usual.warnings)

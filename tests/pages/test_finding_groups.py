"""The findings of a capture in groups: by rule, agent or severity, the worst first."""

from __future__ import annotations

from inspector.model import Finding, Severity
from inspector.pages.finding_groups import Group, grouped, shown
from inspector.summaries.summary import Conclusion, RunBrief


def run(number: int, certname: str, *findings: Finding, symptoms: tuple[str, ...] = ()) -> RunBrief:
    verdict = Conclusion(lead="", reason="", symptoms=symptoms, certainty="certain", since=1.0)
    return RunBrief(number=number, certname=certname, findings=findings, verdict=verdict)


def found(rule: str, severity: Severity, message: str = "m", since: float = 1e9) -> Finding:
    return Finding(rule, severity, message, (1,), since)


RUNS = [
    run(1, "a", found("R20", Severity.ERROR), found("S01", Severity.ERROR), symptoms=("R20",)),
    run(2, "b", found("R20", Severity.ERROR, since=2e9), found("B39", Severity.NOTICE), symptoms=("R20",)),
    run(3, "a", found("B01", Severity.WARNING)),
]


def test_groups_have_the_worst_and_the_causes_first() -> None:
    by_rule = grouped(RUNS, "rule", Severity.NOTICE)
    assert [group.key for group in by_rule] == ["S01", "R20", "B01", "B39"]
    assert (by_rule[1].where, str(by_rule[1].who)) == ("2 runs", "2 agents")
    assert (by_rule[1].since[:4], by_rule[1].last[:4]) == ("2001", "2033")
    by_agent = grouped(RUNS, "agent", Severity.NOTICE)
    assert [(group.key, group.where, group.counted) for group in by_agent] == [
        ("a", "2 runs", "2 errors, 1 warning: B01 R20 S01"),
        ("b", "1 run", "1 error, 1 notice: B39 R20"),
    ]
    assert [member.name for member in by_agent[0].members] == ["S01", "R20", "B01"]
    assert [group.key for group in grouped(RUNS, "severity", Severity.NOTICE)] == ["error", "warning", "notice"]


def test_what_is_less_bad_is_left_out() -> None:
    assert [group.key for group in grouped(RUNS, "rule", Severity.WARNING)] == ["S01", "R20", "B01"]
    assert [group.key for group in grouped(RUNS, "rule", Severity.ERROR)] == ["S01", "R20"]


def test_a_symptom_is_dimmed_and_says_what_it_follows_from() -> None:
    cause, symptom = grouped(RUNS[:1], "agent", Severity.NOTICE)[0].members
    assert (cause.follows, symptom.follows) == ("", "follows from S01")
    assert str(symptom.what) == "follows from S01: m"
    assert [span.style for span in symptom.what.spans] == ["dim"]
    assert cause.what.spans == []


def test_lines_are_those_of_unfolded_groups() -> None:
    groups = grouped(RUNS, "rule", Severity.NOTICE)
    assert all(isinstance(line, Group) for line in shown(groups, set()))
    unfolded = shown(groups, {"R20"})
    assert [line.mark for line in unfolded] == ["▶", "▼", "", "", "▶", "▶"]
    assert len({line.ident for line in unfolded}) == 6

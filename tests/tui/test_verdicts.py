"""The verdict of a run: a few lines that keep what and where, and in full with a numbered fix."""

from __future__ import annotations

import shlex
from pathlib import Path

import msgspec

from inspector.cli import commands
from inspector.model import Finding, Phase, Severity
from inspector.rules.fixes import Fix, advice, on_node
from inspector.runs.servers import Server
from inspector.runs.snapshot import RunState
from inspector.summaries.summary import Conclusion, RunBrief
from inspector.tui import verdicts


def concluded(lead: str, reason: str, *fix: str) -> Conclusion:
    since = 1763727055.0  # 2025-11-21 12:10:55
    steps: Fix = tuple(map(advice, fix))
    return Conclusion(lead=lead, reason=reason, advice=steps, certainty="certain", since=since)


def test_a_headline_keeps_what_and_where() -> None:
    reason = f"S01 no catalog: {'evaluation ' * 60}(file: /x/site.pp, line: 2)"
    run = RunBrief(number=1, verdict=concluded("a.example failed", reason, "correct it"))
    for width in (80, 100, 200):
        shown = verdicts.headline(run, width).plain
        assert shown.startswith("a.example failed: S01 no catalog")
        assert shown.endswith("line: 2)")
        assert len(shown) <= width * verdicts.lines(width)
    whole = RunBrief(number=1, verdict=concluded("a", "short"))
    assert verdicts.headline(whole, 80).plain == "a: short, since 2025-11-21 12:10:55 UTC"


def test_in_full_a_fix_has_numbered_steps_and_whole_commands() -> None:
    conclusion = Conclusion(
        lead="a", reason="b " * 200, certainty="certain", since=0.0,
        advice=(advice("look"), on_node("run it", "puppet agent -t --verbose --debug")),
    )  # fmt: skip
    lines = verdicts.in_full(RunBrief(number=1, verdict=conclusion), 40).plain.splitlines()
    assert lines[0].count("b ") == 200
    assert lines[1:] == ["", "Fix", "1. Look.", "2. On the node, run it:", "     puppet agent -t --verbose --debug"]


def test_what_is_over_says_so_first_and_its_fix_is_of_that_time() -> None:
    verdict = msgspec.structs.replace(concluded("a.example failed", "x " * 300 + "end", "clean it"), over_since="run 2")
    run = RunBrief(number=1, verdict=verdict)
    shown = verdicts.headline(run, 80).plain
    assert shown.startswith("Over since run 2: a.example failed: x ")
    assert len(shown) <= 80 * verdicts.lines(80)
    lines = verdicts.in_full(run, 80).plain.splitlines()
    assert lines[0].startswith("Over since run 2: a.example failed: x ")
    assert lines[2:] == ["Fix at the time: nothing is to be done now", "Clean it."]
    found = Finding("B18", Severity.ERROR, "x", seqs=(3,))
    assert "over" not in verdicts.finding_in_full(found, run).plain, "another rule's"
    run = RunBrief(number=1, verdict=msgspec.structs.replace(verdict, cause="B18"))
    text = verdicts.finding_in_full(found, run).plain
    assert "evidence: record 3; over since run 2: the fix is of that time\n" in text


def test_a_command_that_is_too_wide_breaks_at_blanks_and_can_be_copied() -> None:
    command = """puppet agent -t --certname web1.lab.example --note 'two  words' --other a\\ b "three more words" end"""
    conclusion = Conclusion(lead="a", reason="b", certainty="certain", since=0.0, advice=(on_node("run it", command),))
    for width in range(30, 130):
        lines = verdicts.in_full(RunBrief(number=1, verdict=conclusion), width).plain.splitlines()
        shown = lines[lines.index("On the node, run it:") + 1 :]
        assert shlex.split("\n".join(shown).replace("\\\n", "")) == shlex.split(command)
        assert all(len(line) <= width for line in shown)
        assert len(shown) == 1 or all(line.endswith(" \\") for line in shown[:-1])
        assert (len(shown) == 1) is (width >= len(command) + 2)


def test_a_finding_breaks_its_commands_so_too() -> None:
    found = Finding("B18", Severity.ERROR, "x")
    narrow, wide = (verdicts.finding_in_full(found, RunBrief(number=1), width).plain for width in (40, 48))
    assert "  puppetserver ca clean --certname \\\n" in narrow
    assert "  puppetserver ca clean --certname <certname>\n" in wide


def test_a_finding_has_the_command_that_passes_it_on_alone_if_its_run_is_over() -> None:
    found, run = Finding("S01", Severity.ERROR, "x", seqs=(3,)), RunBrief(number=4)
    lines = verdicts.to_pass_on(found, run, Path("/a b/c.sqlite"), 60).plain.splitlines()
    assert lines[0] == "  To pass on only what shows this:"
    assert all(len(line) <= 60 for line in lines)
    words = shlex.split("\n".join(lines[1:]))
    assert words[:2] == ["puppet-inspector", "reduce"]
    chosen = commands.parser_of("reduce").parse_args([word for word in words[2:] if word.strip()])
    assert (chosen.captures, chosen.run, chosen.rule) == ([Path("/a b/c.sqlite")], 4, "S01")
    assert not verdicts.to_pass_on(found, msgspec.structs.replace(run, state=RunState.CUT_OFF), Path("c"), 60)


def test_what_is_shown_of_a_run_that_went_well() -> None:
    run = RunBrief(number=1, outcome="complete")
    assert verdicts.headline(run, 100).plain == "complete, no deviations"
    findings = (Finding("B01", Severity.WARNING, "x"), Finding("R21", Severity.NOTICE, "y"),
                Finding("B45", Severity.NOTICE, "z"))  # fmt: skip
    run = RunBrief(number=1, outcome="complete", findings=findings)
    assert verdicts.in_full(run, 100).plain == "complete; 1 warning, 2 notices"


def test_the_servers_of_a_run_that_several_answered_are_below_its_verdict() -> None:
    one = Server("c1.example", "192.0.2.1:8140", None, 1, requests=2, phases=[Phase.PLUGINS])
    other = Server("c2.example", "192.0.2.2:8140", None, 3, requests=1, phases=[Phase.CATALOG], catalog="5f2e")
    for verdict in (None, concluded("a.example failed", "S01 x", "correct it")):
        alone = verdicts.in_full(RunBrief(number=1, verdict=verdict, servers=(one,)), 100).plain
        both = verdicts.in_full(RunBrief(number=1, verdict=verdict, servers=(one, other)), 100).plain
        assert both.splitlines()[-2:] == [
            "answered by c1.example: plugins (2)", "answered by c2.example: catalog (1); catalog 5f2e",
        ]  # fmt: skip
        assert both.startswith(alone)
        assert "answered" not in alone

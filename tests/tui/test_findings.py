"""The findings of the whole capture: groups, their order, what to do, and the way to the proof."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from inspector import rules
from inspector.analysis.analyzer import Analyzer
from inspector.capture.store import Capture
from inspector.pages.finding_groups import Member
from inspector.rules import fixes, rule_of
from inspector.rules.fixes import plain
from inspector.runs.examples import MASTER, ca, carried, catalog, made, plugins, refused, report, talk
from inspector.runs.examples import together as of_all
from inspector.summaries import conclusions, ruleset, wording
from inspector.text import counts
from inspector.tui.exchange import ExchangeView
from inspector.tui.exchange_pane import ExchangePane
from inspector.tui.findings import Findings, FoundRows
from inspector.tui.run import RunView
from tests.support.captures import save
from tests.support.conversations import Agent, together
from tests.support.nodes import not_stored, well
from tests.tui.screens import SIZES, indexed, look, play, sample, screen_text, settled, shared_sample, unframed

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot

    from inspector.tui.app import Inspector

HOSTILE = "[bold]x[/] \x1b[2J \u202e"
NAMES = ["bootstrap-waiting", "mismatched-key", "revoked", "first-run", "compile-error"]


async def opened(pilot: Pilot[None], app: Inspector) -> Findings:
    view = Findings()
    await app.push_screen(view)
    await pilot.pause()
    return view


def lines(view: Findings) -> list[str]:
    """Marks and ids of what is listed."""
    return [f"{item.mark}{item.name}" for item in view.query_one(FoundRows).items]


def detail(view: Findings) -> str:
    return " ".join(view._detail().plain.split())


@pytest.mark.slow
def test_the_fix_is_the_one_for_whose_certificate_has_expired(tmp_path: Path) -> None:
    leg = {"side": "master", "peer_chain": carried(made(MASTER, ends=-60)), "own_chain": ()}
    records = talk(refused(None, by="proxy", culprits=("it has expired",), leg=leg))

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await opened(pilot, app)
        assert "--certname puppet.example --subject-alt-names puppet.example --ca-client" in str(view.copy_value())

    play(indexed(save(tmp_path / "expired.sqlite", *records)), act)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_all_findings_of_a_sample_are_there(name: str) -> None:
    path = shared_sample(name)
    analyzer = Analyzer()
    with Capture.open(path) as capture:
        for record in capture.records():
            analyzer.feed(record)
    expected = [finding for run in analyzer.finish() for finding in run.findings]

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await opened(pilot, app)
        text = screen_text(app)
        assert f"{counts(expected) or 'no findings'} in {name}.sqlite, by rule" in text
        rows = view.query_one(FoundRows)
        for rule in {finding.rule for finding in expected}:
            assert f" {rule} " in text
            assert rule_of(rule).title[:20] in text
            assert rows.go(rule)
            await pilot.press("right")
        members = [item for item in rows.items if isinstance(item, Member)]
        assert sorted(member.finding.message for member in members) == sorted(finding.message for finding in expected)

    look(path, act, (80, 24))


@pytest.mark.slow
def test_a_group_is_unfolded_and_a_finding_opened_by_key_and_by_mouse(monkeypatch: pytest.MonkeyPatch) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        asked: list[tuple[int, int | None, str]] = []
        monkeypatch.setattr(app, "open_run", lambda number, seq, finding: asked.append((number, seq, finding.rule)))
        view = await opened(pilot, app)
        assert lines(view) == ["▶B18", "▶B23"]
        await pilot.press("enter")
        assert lines(view) == ["▼B18", "B18", "▶B23"]
        await pilot.press("down", "enter")
        assert asked == [(1, 1, "B18")]
        await pilot.press("left")
        assert lines(view) == ["▶B18", "▶B23"]
        await pilot.click(FoundRows, offset=(0, 2))
        assert lines(view) == ["▶B18", "▼B23", "B23"]
        await pilot.click(FoundRows, offset=(0, 2))
        assert lines(view) == ["▶B18", "▶B23"]
        await pilot.click(FoundRows, offset=(30, 2), times=2)
        assert lines(view) == ["▶B18", "▼B23", "B23"]
        await pilot.click(FoundRows, offset=(30, 3), times=2)
        assert [rule for _, _, rule in asked] == ["B18", "B23"]

    look(shared_sample("mismatched-key"), act)


@pytest.mark.slow
def test_the_order_and_the_severities_change_by_key(tmp_path: Path) -> None:
    records = talk(ca(), plugins(), catalog(status=500, text="Server Error: no role"), report(result="failed"))

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await opened(pilot, app)
        everything = lines(view)
        await pilot.press("a")
        assert ", by agent" in screen_text(app)
        assert lines(view) == ["▶"]
        await pilot.press("a")
        assert ", by severity" in screen_text(app)
        levels = [str(item.level) for item in view.query_one(FoundRows).items]
        assert len(levels) > 1
        await pilot.press("e")
        assert [str(item.level) for item in view.query_one(FoundRows).items] == [
            level for level in levels if level == "error"
        ]
        assert "errors only" in screen_text(app)
        await pilot.press("e", "e", "a")
        assert lines(view) == everything

    play(indexed(save(tmp_path / "failed.sqlite", *records)), act)


@pytest.mark.slow
def test_what_to_do_is_presents_and_a_tab_on_a_narrow_screen() -> None:
    path = shared_sample("compile-error")
    analyzer = Analyzer()
    with Capture.open(path) as capture:
        for record in capture.records():
            analyzer.feed(record)
    real = conclusions.of_run(*analyzer.finish())
    expected = {finding.rule: " ".join(" ".join(wording.finding(finding, real)).split())
                for finding in real.findings}  # fmt: skip
    fix, whole = (" ".join(" ".join(fixes.lines(steps)).split()) for steps in (real.fix_for("S01"), real.steps))
    assert whole.startswith(fix)
    assert len(whole) > len(fix), "how to see that it worked"
    expected["S01"] = expected["S01"].replace(fix, whole)

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await opened(pilot, app)
        assert detail(view).partition(" To pass on ")[0] == expected["S01"]
        await pilot.press("down")
        assert detail(view).partition(" To pass on ")[0] == f"{expected['R20']} follows from S01"
        fix = plain(real.fix_for("R20"))
        assert view.copy_value() == fix
        await pilot.press("y")
        assert app.clipboard == fix
        wide = app.size.width >= 100
        assert ("  why:  " in screen_text(app)) is wide
        await pilot.press("tab")
        assert "  why:  " in screen_text(app)
        assert ("▶ error" in screen_text(app)) is wide
        if not wide:
            await pilot.click("PaneTabs", offset=(2, 0))
            assert "▶ error" in screen_text(app)

    for size in SIZES:
        look(path, act, size)


@pytest.mark.slow
def test_what_is_the_same_in_all_lines_leaves_its_room_to_the_message() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await opened(pilot, app)
        await pilot.press("right")
        await settled(pilot, app)
        line = next(line for line in screen_text(app).splitlines() if "▼ error" in line)
        assert " 1 agent " not in line
        assert rule_of("B18").title in line
        await pilot.press("a")
        await settled(pilot, app)
        assert f" 1 run {view.agent}: 2 errors: B18 B23" in screen_text(app).splitlines()[3]

    look(shared_sample("mismatched-key"), act, (80, 24))


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_a_column_says_what_differs_between_lines_and_no_other_is_there(size: tuple[int, int], tmp_path: Path) -> None:
    failing = [talk(catalog(status=500, text="no role"), certname=name) for name in ("a.example", "b.example")]

    def titles(app: Inspector) -> set[str]:
        return {column.title for column, _ in app.screen.query_one(FoundRows)._shown} & {"run", "agent"}

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await opened(pilot, app)
        narrow = app.size.width < 100
        assert titles(app) == ({"agent"} if narrow else {"run", "agent"}), "the agent says more"
        await pilot.press("a")
        assert titles(app) == {"run"}, "each group names its agent"
        await pilot.press("a")
        assert titles(app) == ({"agent"} if narrow else {"run", "agent"})
        await pilot.press("escape", "r", "enter", "F")
        await settled(pilot, app)
        assert titles(app) == set()

    look(indexed(save(tmp_path / "two.sqlite", *failing[0], *failing[1])), act, size)


@pytest.mark.slow
def test_of_a_group_by_agent_the_fix_is_steps_and_as_of_its_time_if_it_is_over(tmp_path: Path) -> None:
    path = tmp_path / "over.sqlite"
    save(path, *talk(catalog(status=500), report(result="failed")), *talk(catalog(), report(), after=1800))

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await opened(pilot, app)
        await pilot.press("a")
        text = view._detail().plain
        assert "\nOver since run 2: node1.example failed: S01 " in text
        assert "\n1. " in text
        assert "\nFix at the time: nothing is to be done now\n" in text

    play(indexed(path), act)


@pytest.mark.slow
def test_what_to_do_is_whole_and_wrapped_behind_its_labels() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await opened(pilot, app)
        await pilot.press("tab")
        await pilot.pause()
        text = unframed(screen_text(app))
        shown, below, command = detail(view).partition("To pass on only what shows this:")
        assert shown in " ".join(text.split())
        assert (bool(below), "puppet-inspector reduce" in command) == (True, True)
        lines = text.splitlines()
        why = next(at for at, line in enumerate(lines) if line.startswith("   why:    "))
        assert lines[why + 1].startswith(" " * 11)
        assert lines[why + 1].strip()

    look(shared_sample("bootstrap-waiting"), act, (80, 24))


@pytest.mark.slow
def test_a_waiting_agent_that_was_signed_needs_nothing(tmp_path: Path) -> None:
    waiting = Agent().ca().crl().csr()
    for _ in range(5):
        waiting.wait(120).poll()
    signed = dataclasses.replace(waiting, records=[*waiting.records]).wait(120).issued().run()
    for records, fix in (
        (waiting.records, "puppetserver ca sign"),
        (signed.records, "Nothing to do: the request was signed"),
    ):
        path = indexed(save(tmp_path / f"{len(records)}.sqlite", *records))

        async def act(pilot: Pilot[None], app: Inspector, fix: str = fix) -> None:
            view = await opened(pilot, app)
            assert view.query_one(FoundRows).go("B39")
            await pilot.pause()
            assert fix in detail(view)

        play(path, act)


@pytest.mark.slow
def test_search_finds_what_is_folded() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await opened(pilot, app)
        assert view.query_one(FoundRows).item == view._groups[0]
        await pilot.press("slash", *"EXAMPLE (serial", "enter")
        rows = view.query_one(FoundRows)
        assert isinstance(rows.item, Member)
        assert rows.item.finding.rule == "T05"
        await pilot.press("slash", *"nowhere", "enter")
        assert "No match here for 'nowhere'." in screen_text(app)

    look(shared_sample("revoked"), act)


@pytest.mark.slow
def test_no_findings_are_reported(tmp_path: Path) -> None:
    path = indexed(save(tmp_path / "empty.sqlite"))

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await opened(pilot, app)
        assert "no findings in empty.sqlite" in screen_text(app)
        assert "No deviations from the protocol." in screen_text(app)
        await pilot.press("enter", "right", "left", "a", "y")
        assert view.copy_value() is None

    play(path, act)


@pytest.mark.slow
def test_captured_text_never_reaches_the_terminal(tmp_path: Path) -> None:
    hostile = Agent(HOSTILE.replace(" ", "%20"), "192.0.2.66").refused(HOSTILE).refused(HOSTILE).refused(HOSTILE)
    other = Agent(environment="[b]" + HOSTILE.split()[0]).run().csr(status=400, text=f"no {HOSTILE}")
    path = indexed(save(tmp_path / "hostile.sqlite", *together(hostile, other)))

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await opened(pilot, app)
        rows = view.query_one(FoundRows)
        text = ""
        for _ in range(3):
            for item in list(rows.items):
                view.unfold(item.group.key, unfold=True)
            for at in range(len(rows.items)):
                rows.move_to(at)
                await pilot.pause()
                text += screen_text(app) + view._detail().plain
            await pilot.press("a")
        await pilot.press("tab")
        text += screen_text(app)
        assert "[bold]x[/]" in text
        assert "\x1b" not in text
        assert "\u202e" not in text

    play(path, act)


# -- rules of a site's own ------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_rule_of_the_site_is_shown_as_any_other(tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text("rules: {U01: {title: slow catalog, when: 'phase:catalog ms:>400', fix: look at it}}\n")

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await opened(pilot, app)
        rows = view.query_one(FoundRows)
        (item,) = [item for item in rows.items if item.name == "U01"]
        rows.go(item.ident)
        await pilot.pause()
        assert "slow catalog" in detail(view)
        assert "Look at it" in detail(view)

    rules.use(ruleset.load(path))
    try:
        play(sample("first-run", tmp_path), act)
    finally:
        rules.use(None)


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_the_findings_of_a_run_are_those_of_this_run_and_lead_to_their_evidence_in_it(size: tuple[int, int]) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        for number, found in ((1, "no findings"), (2, "2 notices")):
            await pilot.press("home", *["down"] * (number - 1), "enter")
            await settled(pilot, app)
            run = app.screen
            assert isinstance(run, RunView)
            await pilot.press("F")
            await settled(pilot, app)
            view = app.screen
            assert isinstance(view, Findings)
            assert f"{found} in run {number} of node1.example, by rule" in screen_text(app).splitlines()[0]
            if number == 1:
                await pilot.press("escape", "escape")
        assert isinstance(view, Findings)
        await pilot.press("right", "down")
        assert view.chosen is not None
        seqs = view.chosen.finding.seqs
        await pilot.press("enter")
        await settled(pilot, app)
        assert app.screen is run
        assert run.query_one(ExchangePane).seq in seqs
        await pilot.press("escape")
        await settled(pilot, app)
        again = app.screen
        assert isinstance(again, Findings)
        assert again.chosen is not None
        assert again.chosen.finding.seqs == seqs, "the cursor is where it was"
        await pilot.press("escape")
        await settled(pilot, app)
        assert app.screen is run

    look(shared_sample("out-of-sync"), act, size)


def test_what_was_found_outside_runs_is_listed_too(tmp_path: Path) -> None:
    path = save(tmp_path / "a.sqlite", *of_all(well(1), not_stored()))

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await opened(pilot, app)
        assert "2 errors in a.sqlite" in screen_text(app)
        (group,) = view._groups
        assert (group.key, group.where, group.who.plain) == ("D03", "no run", ""), "a master is no agent"
        await pilot.press("enter", "down", "down")
        assert [item.where for item in view.query_one(FoundRows).items] == 3 * ["no run"]
        assert "puppet-inspector reduce" in detail(view)
        assert "--run" not in detail(view)
        await pilot.press("enter")
        await settled(pilot, app)
        assert isinstance(app.screen, ExchangeView)
        assert app.screen.seq == 5

    play(indexed(path), act)

"""One run: its panes, the way from a finding to its proof, playing it, and what can be taken from it."""

from __future__ import annotations

import re
import shlex
import stat
import time
from typing import TYPE_CHECKING

import pytest
from textual.widgets import Input, Static

from inspector.capture.store import Capture
from inspector.cli.main import main
from inspector.explain.master_log.measured import MasterTime, MasterTimes
from inspector.explain.timeline import HandshakeLine
from inspector.model import Exchange, OpenRequest, Present
from inspector.tui.bootstrap import Bootstrap
from inspector.tui.bytes import Bytes
from inspector.tui.catalog import Catalog
from inspector.tui.connections import Connections
from inspector.tui.doc_widgets import Leaves, Sheet
from inspector.tui.exchange import ExchangeView
from inspector.tui.exchange_pane import ExchangePane
from inspector.tui.files import Files
from inspector.tui.findings import Findings
from inspector.tui.keys import keys
from inspector.tui.panes import PaneTabs
from inspector.tui.playback import Knowledge
from inspector.tui.rows import Rows
from inspector.tui.run import RunView
from inspector.tui.sequence import Sequence
from inspector.tui.waterfall import Waterfall
from tests.support.captures import keep, recording
from tests.support.conversations import Agent
from tests.tui.screens import (
    SIZES,
    in_run,
    indexed,
    play,
    run_view,
    sample,
    screen_text,
    settled,
    shared_sample,
    type_in,
)

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot

    from inspector.tui.app import Inspector

WIDE, NARROW = (200, 60), (80, 24)


def seq(app: Inspector) -> int | None:
    """What the right pane shows."""
    return run_view(app).query_one(ExchangePane).seq


@pytest.mark.slow
def test_a_failed_run_opens_at_what_proves_its_cause() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        text = screen_text(app)
        assert "run 1 of node1.example (7.23.0): failed" in text
        assert "S01" in text
        assert "c Fix" in text
        assert seq(app) == 4  # the answer without a catalog

    in_run("compile-error", act, NARROW)


@pytest.mark.slow
def test_c_shows_the_cause_and_its_fix() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press("c")
        await settled(pilot, app)
        assert "1. Correct the code that the message names (file and line), and" in screen_text(app)
        assert run_view(app).query_one("#findings", Rows).has_focus
        await pilot.press("escape")
        await settled(pilot, app)
        assert run_view(app).current == "top"

    in_run("compile-error", act, NARROW)


@pytest.mark.slow
def test_the_steps_of_a_fix_are_as_wide_as_their_pane() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press("c")
        await settled(pilot, app)
        lines = [line.rstrip() for line in screen_text(app).splitlines()]
        first = next(at for at, line in enumerate(lines) if "2. On the CA, remove its certificate" in line)
        assert lines[first + 1] == " " * 16 + "(deletes both, and revokes the certificate):"
        assert lines[first + 2] == " " * 18 + "puppetserver ca clean --certname node2.example"

    in_run("revoked", act, NARROW)


@pytest.mark.slow
def test_a_phase_with_failed_handshakes_only_took_no_time_that_could_be_summed() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        (line,) = (line for line in screen_text(app).splitlines() if line.startswith("│       certificates "))
        assert "ms" not in line

    in_run("revoked", act)


@pytest.mark.slow
@pytest.mark.parametrize("size", [(120, 40), (200, 60)])
def test_the_room_is_used(size: tuple[int, int]) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        text = screen_text(app)
        assert "GET file_metadatas/pluginfacts " in text
        assert "N B01 unverified, no cert" in text
        waterfall, record = run_view(app).query_one(Waterfall), run_view(app).query_one(ExchangePane)
        if size[1] == 60:
            assert waterfall.size.height == len(waterfall.items) + 2  # titles and legend
        assert record.size.height >= 16
        assert run_view(app).query_one("#explanation").size.height >= 12

    in_run("first-run", act, size)


@pytest.mark.slow
def test_a_healthy_run_opens_at_its_beginning_and_the_cursor_shows_each_exchange() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        assert seq(app) == 1
        await pilot.press("down")
        await settled(pilot, app)
        assert seq(app) == 2
        assert "CRL of CN=Puppet CA" in screen_text(app)
        await pilot.press("enter")
        await settled(pilot, app)
        assert isinstance(app.screen, ExchangeView)
        await pilot.press("escape")
        assert isinstance(app.screen, RunView)
        await pilot.pause()
        await pilot.press("c")
        await settled(pilot, app)
        assert "This run went well" in screen_text(app)

    in_run("first-run", act)


@pytest.mark.slow
def test_enter_on_a_finding_leads_to_its_proof() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press("tab", "tab")
        findings = run_view(app).query_one("#findings", Rows)
        assert findings.has_focus
        assert [finding.rule for finding in findings.items][:1] == ["B01"]
        place = [finding.rule for finding in findings.items].index("B45")
        await pilot.press("home", *["down"] * place, "enter")
        await settled(pilot, app)
        assert seq(app) == 3
        item = run_view(app).query_one(Waterfall).item
        assert item is not None
        assert item.seq == 3

    in_run("first-run", act)


@pytest.mark.slow
def test_on_a_narrow_terminal_panes_are_tabs() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        tabs = run_view(app).query_one(PaneTabs)
        assert tabs.display
        shown = [name for name in ("top", "left", "right") if run_view(app).query_one(f"#{name}").display]
        assert shown == ["top"]
        await pilot.press("tab")
        assert run_view(app).query_one("#left").display
        assert not run_view(app).query_one("#top").display
        await pilot.press("tab")
        assert run_view(app).query_one("#findings").has_focus
        await pilot.press("tab")
        assert run_view(app).query_one(Waterfall).has_focus
        await pilot.click(PaneTabs, offset=(14, 0))
        assert run_view(app).query_one("#left").display
        await pilot.press("shift+tab")
        assert run_view(app).query_one("#top").display

    in_run("first-run", act, NARROW)


@pytest.mark.slow
def test_a_pane_can_have_the_whole_screen_and_what_divides_them_is_moved() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press("tab", "z")
        assert not run_view(app).query_one("#top").display
        assert run_view(app).query_one("#left").size.width >= 198
        await pilot.press("z")
        assert run_view(app).query_one("#top").display
        await pilot.press("shift+tab")  # a tree has keys of its own
        await pilot.pause()
        left, right = run_view(app).query_one("#left"), run_view(app).query_one("#right")
        width, height = right.size.width, left.size.height
        await pilot.press("shift+left")
        await pilot.pause()
        assert right.size.width == width + 4
        await pilot.press("shift+up")
        await pilot.pause()
        assert left.size.height == right.size.height == height + 2
        at = right.region
        await pilot.mouse_down(offset=(at.x, at.y + 3))
        await pilot.hover(offset=(at.x - 10, at.y + 3))
        await pilot.mouse_up(offset=(at.x - 10, at.y + 3))
        await pilot.pause()
        assert right.size.width == width + 14
        at = left.region
        await pilot.mouse_down(offset=(at.x + 9, at.y))
        await pilot.hover(offset=(at.x + 9, at.y - 3))
        await pilot.mouse_up(offset=(at.x + 9, at.y - 3))
        await pilot.pause()
        assert left.size.height == height + 5

    in_run("first-run", act, WIDE)


@pytest.mark.slow
def test_the_sequence_shows_the_same_exchange_and_the_certificates_of_each_connection_once() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press("down", "w")
        await settled(pilot, app)
        sequence = run_view(app).query_one(Sequence)
        assert sequence.has_focus
        assert sequence.item is not None
        waterfall = run_view(app).query_one(Waterfall)
        assert not waterfall.display
        assert waterfall.item is not None
        assert sequence.item.seq == waterfall.item.seq
        assert "master" in screen_text(app)
        lines = [entry for entry in run_view(app).query_one(Sequence).items if isinstance(entry, HandshakeLine)]
        assert len(lines) == len({entry.brief.leg for entry in lines if entry.brief}) == 4
        drawn = screen_text(app)
        assert "none ↔ proxy.example" in drawn
        assert "↔ puppet.exam" in drawn
        await pilot.press("end")
        await pilot.pause()
        names = [entry.brief and (entry.brief.certname, entry.brief.presented) for entry in lines]
        assert names[-1] == ("node1.example", "proxy.example")

    in_run("first-run", act)


def test_the_sequence_has_the_room_that_its_lines_need() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press("w")
        await settled(pilot, app)
        sequence = run_view(app).query_one(Sequence)
        assert len(sequence.items) > run_view(app).query_one(Waterfall).number_of_lines
        assert sequence.max_scroll_y == 0

    in_run("mismatched-key", act, size=(200, 60))


@pytest.mark.slow
def test_the_key_for_the_other_drawing_is_answered_before_it_is_drawn() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        run = run_view(app)
        title = run.query_one("#title", Static)
        for drawing, before in (("sequence", Waterfall), ("waterfall", Sequence)):
            run.action_other()
            assert str(title.render()) == f"drawing the {drawing} …"
            assert isinstance(run.timed, before)
            await settled(pilot, app)
            assert "run 1 of" in str(title.render())
            assert not isinstance(run.timed, before)
        run.action_other()
        run.action_back()
        await settled(pilot, app)
        assert app.screen is not run

    in_run("first-run", act)


@pytest.mark.slow
def test_what_is_typed_stays_on_a_low_screen() -> None:
    """A long verdict, findings, and completions above the line."""

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press("f", *"sta", "tab")
        await settled(pilot, app)
        assert "filter:" in screen_text(app)
        line = app.screen.query_one(Input)
        assert line.value == "status:"
        assert line.region.bottom < 28
        assert "status:>=400" in screen_text(app)
        await pilot.press("escape")
        await settled(pilot, app)
        assert run_view(app).query_one("#right").size.height > 3

    in_run("compile-error", act, (100, 28))


@pytest.mark.slow
def test_a_filter_shows_what_it_lets_through() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await type_in(pilot, app, "f", "status:404")
        seqs = [entry.seq for entry in run_view(app).query_one(Waterfall).items if entry.seq]
        assert seqs == [17]
        await type_in(pilot, app, "f", "text:nowhere-at-all")
        assert [entry.seq for entry in run_view(app).query_one(Waterfall).items if entry.seq] == []
        await pilot.press("escape")
        await settled(pilot, app)
        assert len([entry for entry in run_view(app).query_one(Waterfall).items if entry.seq]) == 22
        await type_in(pilot, app, "f", "nokey:1")
        assert "nokey" in screen_text(app)

    in_run("first-run", act)


@pytest.mark.slow
def test_tab_completes_a_filter_that_is_typed() -> None:
    def offered(app: Inspector) -> bool:
        active = app.screen.active_bindings.values()
        return any(key.enabled and key.binding.action == "next_pane(1)" for key in active)

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        assert offered(app)
        await pilot.press("f", *"sta", "tab")
        line = app.screen.query_one(Input)
        assert (line.value, line.has_focus, run_view(app).current) == ("status:", True, "top")
        assert not offered(app)
        await pilot.press("shift+tab")
        assert line.has_focus
        await pilot.press("escape")
        await pilot.pause()
        assert offered(app)
        await pilot.press("tab")
        assert run_view(app).current == "left"

    in_run("first-run", act)


@pytest.mark.slow
def test_a_filter_that_lets_nothing_through_leaves_an_empty_picture() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await type_in(pilot, app, "f", "status:418")
        assert not run_view(app).query_one(Waterfall).items
        assert run_view(app).query_one(Waterfall).title(40) == ""
        await pilot.press("escape")
        await settled(pilot, app)
        assert "2.01 s" in run_view(app).query_one(Waterfall).title(40)

    in_run("first-run", act)


@pytest.mark.slow
def test_the_palette_does_what_the_keys_do() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        offered = {command.title: command for command in app.get_system_commands(app.screen)}
        wanted = {binding.description for _, binding in keys(app.screen)}
        assert {
            "Zoom pane",
            "Next finding",
            "Jump to a time",
            "Copy as curl",
            "Next run",
            "Sort by the next column",
        } <= wanted
        assert wanted <= set(offered)
        assert not run_view(app).query_one("#left").has_class("gone")
        await pilot.press("ctrl+p")
        await pilot.press(*"zoom pane")
        await pilot.pause(0.5)
        await pilot.press("enter")
        await settled(pilot, app)
        assert run_view(app).query_one("#left").has_class("gone")

    in_run("first-run", act)


@pytest.mark.slow
def test_the_list_is_searched_and_sorted() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await type_in(pilot, app, "slash", "logo")
        waterfall = run_view(app).query_one(Waterfall)
        assert waterfall.item is not None
        assert waterfall.item.seq == 20
        await pilot.press("n")
        assert waterfall.item is not None
        assert waterfall.item.seq == 21
        await pilot.press("N")
        assert waterfall.item is not None
        assert waterfall.item.seq == 20
        waterfall = run_view(app).query_one(Waterfall)
        before = list(waterfall.items)
        waterfall.sort_by([column.name for column in waterfall.columns].index("time"))
        await pilot.pause()
        took = [entry.ended - entry.began for entry in waterfall.items]
        assert took == sorted(took, reverse=True)
        assert {entry.kind for entry in waterfall.items} == {"record"}
        assert "time ▲" in screen_text(app)
        waterfall.sort_by(None)
        assert waterfall.items == before
        await pilot.press("s")
        assert [entry.seq for entry in waterfall.items] == sorted(waterfall.items[at].seq or 0 for at in range(22))

    in_run("first-run", act)


@pytest.mark.slow
def test_searching_in_the_pane_that_has_the_focus() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        pane, waterfall = run_view(app).query_one(ExchangePane), run_view(app).query_one(Waterfall)
        await pilot.press("tab")
        assert isinstance(pane.shown, Leaves)
        await type_in(pilot, app, "slash", "not after")
        first = pane.shown.cursor_line
        assert "2041-11-17" in str(pane.copy_value())
        await pilot.press("n")
        assert pane.shown.cursor_line > first
        assert "2041-11-17" in str(pane.copy_value())
        await pilot.press("N")
        assert pane.shown.cursor_line == first
        await type_in(pilot, app, "slash", "logo")
        assert "No match here for 'logo'." in screen_text(app)
        await pilot.press("2")
        await settled(pilot, app)
        assert isinstance(pane.shown, Sheet)
        await type_in(pilot, app, "slash", "user-agent")
        assert "Puppet/" in str(pane.copy_value())
        await pilot.press("3", "]")
        await settled(pilot, app)
        assert isinstance(pane.shown, Bytes)
        await type_in(pilot, app, "slash", "END CERT")
        first = pane.shown.at
        assert "END CERT" in str(pane.copy_value())
        await pilot.press("n")
        assert pane.shown.at > first
        assert seq(app) == 1
        await pilot.press("shift+tab")
        assert waterfall.has_focus
        assert waterfall.at == 1
        await type_in(pilot, app, "slash", "logo")
        assert waterfall.item is not None
        assert waterfall.item.seq == 20

    in_run("first-run", act)


@pytest.mark.slow
def test_a_mark_and_a_note_on_an_exchange(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press("down", "m")
        await type_in(pilot, app, "M", "why so [old]?")
        assert app.marks.marked(2)
        assert app.marks.note_of(2) == "why so [old]?"
        assert "why so [old]?" in screen_text(app)

    in_run("first-run", act, own=tmp_path)


@pytest.mark.slow
def test_an_exchange_is_copied_as_curl_and_the_value_under_the_cursor() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press("u")
        words = shlex.split(app.clipboard)
        assert "curl" in words
        assert any("/puppet-ca/v1/certificate/ca" in word for word in words)
        assert "copied" in screen_text(app)
        app.copy_to_clipboard("")
        await pilot.press("tab", "y")
        assert app.clipboard
        assert "copied" in screen_text(app)

    in_run("first-run", act)


@pytest.mark.slow
def test_a_body_is_saved_once(tmp_path: Path) -> None:
    target = tmp_path / "body.pem"

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await type_in(pilot, app, "S", str(target))
        assert target.read_bytes().startswith(b"-----BEGIN CERTIFICATE-----")
        assert stat.S_IMODE(target.stat().st_mode) == 0o600
        await type_in(pilot, app, "S", str(target))
        assert "already" in screen_text(app)

    in_run("first-run", act)


@pytest.mark.slow
@pytest.mark.parametrize("typed", ["", "~nobody-of-this-name/x", "no/such/directory/x.har", "a\0b"])
@pytest.mark.parametrize("key", ["S", "e"])
def test_what_can_be_no_file_is_reported(key: str, typed: str) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await type_in(pilot, app, key, typed)
        assert ("Use an absolute path" if typed.startswith("~") else "Choose another") in screen_text(app)

    in_run("first-run", act)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["out.jsonl", "out.mitm", "out.har"])
def test_what_is_shown_is_exported(tmp_path: Path, name: str) -> None:
    target = tmp_path / name

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await type_in(pilot, app, "f", "phase:certificates")
        await type_in(pilot, app, "e", str(target))
        assert "wrote 4 records to" in screen_text(app)

    in_run("first-run", act)
    assert target.read_bytes().count(b"/puppet-ca/v1/") >= 4
    # It reads as what it was, its connections included.
    assert main(["import", str(target), "-o", str(tmp_path / "again.sqlite")]) == 0
    with Capture.open(sample("first-run", tmp_path)) as whole, Capture.open(tmp_path / "again.sqlite") as again:
        output = [
            [
                (record.request.target, record.agent.peer_chain)
                for record in capture.records()
                if isinstance(record, Exchange)
            ]
            for capture in (whole, again)
        ]
    assert output[1] == output[0][:4]


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_the_other_views_of_a_run(size: tuple[int, int]) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        views = {"L": Files, "C": Catalog, "F": Findings, "O": Connections, "B": Bootstrap}
        for key, screen in views.items():
            await pilot.press(key)
            await settled(pilot, app)
            assert isinstance(app.screen, screen)
            assert len(screen_text(app).split()) > 30
            await pilot.press("escape")
            assert isinstance(app.screen, RunView)

    in_run("first-run", act, size)


@pytest.mark.slow
def test_the_runs_before_and_after() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        assert run_view(app).number == 1
        await pilot.press("ctrl+down")
        await settled(pilot, app)
        assert run_view(app).number == 2
        await pilot.press("ctrl+down")
        await settled(pilot, app)
        assert run_view(app).number == 2
        await pilot.press("ctrl+up", "escape")
        await settled(pilot, app)
        assert not isinstance(app.screen, RunView)

    in_run("out-of-sync", act)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["revoked", "mismatched-key", "bootstrap-waiting", "out-of-sync"])
def test_every_sample_can_be_walked_through(name: str) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        number = len(run_view(app).query_one(Waterfall).items)
        for _ in range(number):
            await pilot.press("down")
        await settled(pilot, app)
        await pilot.press("w", "end", "home", "z", "z", "i", "i", "space", "space")
        await settled(pilot, app)
        assert run_view(app).query_one(Sequence).items

    in_run(name, act)


@pytest.mark.slow
def test_the_frame_names_what_it_shows_and_help_lists_only_what_a_list_can_do() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        frames = run_view(app).query("#left, #state")
        for title in ("Record 1", "Agent state", "Record 1"):
            assert [frame.border_title for frame in frames if frame.display] == [title]
            await pilot.press("i")
            await settled(pilot, app)

        def listed() -> set[str]:
            return {binding.description for _, binding in keys(app.screen)}

        assert "Sort by the next column" in listed()
        await pilot.press("w")
        await settled(pilot, app)
        assert "Sort by the next column" not in listed()
        assert "Columns" in listed()

    in_run("first-run", act, (120, 40))


@pytest.mark.slow
def test_marked_records_are_gone_through(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        def seq() -> int | None:
            return run_view(app).record()

        await pilot.press("apostrophe")
        await pilot.pause()
        assert "No record of this run is marked; m marks one." in screen_text(app)
        first, last = 3, 9
        for marked in (first, last):
            run_view(app).timed.go(marked)
            await pilot.press("m")
        await pilot.press("home")
        await settled(pilot, app)
        for key, wanted in (
            ("apostrophe", first),
            ("apostrophe", last),
            ("apostrophe", first),
            ("quotation_mark", last),
        ):
            await pilot.press(key)
            await settled(pilot, app)
            assert seq() == wanted

    in_run("first-run", act, own=tmp_path)


@pytest.mark.slow
def test_the_frame_says_what_the_time_of_the_selected_record_was() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        run_view(app).timed.go(1)
        await settled(pilot, app)
        spent = str(run_view(app).query_one("#top").border_subtitle)
        found = re.fullmatch(r"TLS with the agent \d+ ms, then (\d+) ms = connect \d+ \+ TLS \d+ \+ .*", spent)
        assert found, spent
        parts = [int(figure) for figure in re.findall(r" (\d+)(?: \+|$)", spent)]
        assert abs(sum(parts) - int(found[1])) <= len(parts) // 2 + 1
        assert spent in screen_text(app)
        await pilot.press("w")
        await settled(pilot, app)
        await pilot.press("down")
        await settled(pilot, app)
        assert run_view(app).query_one("#top").border_subtitle == ""

    in_run("compile-error", act)


@pytest.mark.slow
def test_what_a_masters_logs_say_is_drawn_and_what_they_do_not_say_is_shown(tmp_path: Path) -> None:
    times = MasterTimes({11: MasterTime(0.46, 0.26, 0.2)}, ("Access log: 1 of 22 requests found in it.",))

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        while times.notes[0] not in screen_text(app):
            await pilot.pause(0.05)
        app.open_run(1, 11)
        await settled(pilot, app)
        await settled(pilot, app)
        (spent,) = [line for line in screen_text(app).splitlines() if "compile 200" in line]
        assert "queue 198 + serve 60 + compile 200" in spent
        assert "▒" in screen_text(app)

    play(shared_sample("first-run"), act, times=times, start="")


@pytest.mark.slow
def test_an_open_request_is_a_bar_that_grows_and_no_verdict_is_shown(tmp_path: Path) -> None:
    agent = Agent(leg="1", time=time.time() - 20).node().plugins()
    asked = OpenRequest("a.example-1", agent.time + 5, "POST", agent.url("catalog/a.example"))
    with recording(tmp_path / "c.sqlite", *agent.records, requests=(asked,)) as capture:

        async def act(pilot: Pilot[None], app: Inspector) -> None:
            await pilot.press("home", "enter")
            await settled(pilot, app)
            waterfall = app.screen.query_one(Waterfall)

            def took() -> float:
                assert [entry.text for entry in waterfall.items[-2:]] == ["gathers facts", "waits for its catalog"]
                return waterfall.items[-1].ended - waterfall.items[-1].began

            shown = screen_text(app)
            assert "under way: waits for its catalog, " in shown
            assert "waits for its catalog  " in shown
            assert "run 1 of a.example (7.23.0): open" in shown
            before = took()
            for _ in range(100):
                await pilot.pause(0.1)
                if took() > before:
                    break
            assert took() > before
            await pilot.press("c")
            await pilot.pause()
            assert "This run has no verdict: it is not over." in screen_text(app)
            await pilot.press("w")
            await settled(pilot, app)  # the sequence has only what is over
            agent.time = time.time()
            keep(capture, *agent.catalog().report().records[-2:])
            capture.set_present(Present("open", time.time()))
            capture.flush()
            for _ in range(200):
                await pilot.pause(0.1)
                if ": complete in" in screen_text(app):
                    break
            assert ": complete in" in screen_text(app)
            assert "under way" not in screen_text(app)

        play(indexed(tmp_path / "c.sqlite"), act)


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_escape_leads_from_the_sequence_and_the_agents_state_back_to_the_exchanges(size: tuple[int, int]) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        run = run_view(app)
        await pilot.press("w")
        await settled(pilot, app)
        assert isinstance(run.timed, Sequence)
        assert "w Waterfall" in screen_text(app)
        await pilot.press("escape")
        await settled(pilot, app)
        assert isinstance(run.timed, Waterfall)
        assert "w Sequence" in screen_text(app)
        await pilot.press("i")
        await settled(pilot, app)
        assert run.knowing or run.query_one(Knowledge).has_focus
        await pilot.press("escape")
        await settled(pilot, app)
        assert app.screen is run
        assert (run.current, run.timed.has_focus, run.knowing) == ("top", True, False)
        await pilot.press("escape")
        await settled(pilot, app)
        assert app.screen is not run

    in_run("first-run", act, size)


@pytest.mark.slow
def test_a_line_without_a_record_says_so() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press("home")
        await settled(pilot, app)
        assert run_view(app).record() is None, "the name of a phase"
        for key in ("enter", "6"):
            await pilot.press(key)
            await settled(pilot, app)
            assert "There is no record behind this line" in screen_text(app)
            await pilot.press("home")
            await settled(pilot, app)
            assert "There is no record behind this line" not in screen_text(app)

    in_run("first-run", act, NARROW)

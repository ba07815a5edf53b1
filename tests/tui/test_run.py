"""One run: its panes, the way from a finding to its proof, playing it, and what can be taken from it."""

from __future__ import annotations

import re
import shlex
import stat
import threading
import time
from typing import TYPE_CHECKING

import pytest
from textual.widgets import Input, Static

from inspector.capture.store import Capture
from inspector.cli.main import main
from inspector.explain.master_log.measured import MasterTime, MasterTimes
from inspector.explain.sequence import HandshakeLine
from inspector.model import Exchange, OpenRequest, Present
from inspector.tui.bootstrap import Bootstrap
from inspector.tui.bytes import Bytes
from inspector.tui.catalog import Catalog
from inspector.tui.connections import Connections
from inspector.tui.doc_widgets import Leaves, Sheet
from inspector.tui.exchange import ExchangeView
from inspector.tui.exchange_pane import ExchangePane
from inspector.tui.files import Files
from inspector.tui.keys import keys
from inspector.tui.panes import PaneTabs
from inspector.tui.playback import Knowledge, Transport
from inspector.tui.rows import Rows
from inspector.tui.run import RunView
from inspector.tui.sequence import Sequence
from inspector.tui.waterfall import Waterfall
from tests.support.captures import keep, recording
from tests.support.conversations import Agent
from tests.tui.screens import SIZES, indexed, play, sample, screen_text

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from textual.pilot import Pilot

    from inspector.analysis.analyzer import Step
    from inspector.tui.app import Inspector
    from tests.tui.screens import Play

WIDE, NARROW = (200, 60), (80, 24)


def in_run(name: str, folder: Path, act: Play, size: tuple[int, int] = WIDE) -> None:
    """Open the first run of a sample, and do something in it."""

    async def begin(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press("home", "enter")
        await settled(pilot)
        await act(pilot, app)

    play(sample(name, folder), begin, size)


async def settled(pilot: Pilot[None]) -> None:
    await pilot.pause()
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


async def type_in(pilot: Pilot[None], key: str, text: str | None) -> None:
    await pilot.press(key)
    if text is not None:
        pilot.app.screen.query_one(Input).value = text
    await pilot.press("enter")
    await settled(pilot)


def view(app: Inspector) -> RunView:
    assert isinstance(app.screen, RunView)
    return app.screen


def seq(app: Inspector) -> int | None:
    """What the right pane shows."""
    return view(app).query_one(ExchangePane).seq


@pytest.mark.parametrize("size", SIZES)
def test_a_failed_run_opens_at_what_proves_its_cause(tmp_path: Path, size: tuple[int, int]) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        text = screen_text(app)
        assert "run 1 of node1.example (7.23.0): failed" in text
        assert "S01" in text
        assert "c Fix" in text
        assert seq(app) == 4  # the answer without a catalog

    in_run("compile-error", tmp_path, act, size)


def test_c_shows_the_cause_and_its_fix(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press("c")
        await settled(pilot)
        assert "1. Correct the code that the message names (file and line), and" in screen_text(app)
        assert view(app).query_one("#findings", Rows).has_focus
        await pilot.press("escape")
        await settled(pilot)
        assert view(app).current == "top"

    in_run("compile-error", tmp_path, act, NARROW)


def test_the_steps_of_a_fix_are_as_wide_as_their_pane(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press("c")
        await settled(pilot)
        lines = [line.rstrip() for line in screen_text(app).splitlines()]
        first = next(at for at, line in enumerate(lines) if "1. On the CA, remove its certificate" in line)
        assert lines[first + 1] == " " * 16 + "(deletes both, and revokes the certificate):"
        assert lines[first + 2] == " " * 18 + "puppetserver ca clean --certname node2.example"

    in_run("revoked", tmp_path, act, NARROW)


def test_a_phase_with_failed_handshakes_only_took_no_time_that_could_be_summed(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        (line,) = (line for line in screen_text(app).splitlines() if line.startswith("│       certificates "))
        assert "ms" not in line

    in_run("revoked", tmp_path, act)


def test_a_run_that_went_well_has_no_cause(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press("c")
        await settled(pilot)
        assert "This run went well" in screen_text(app)

    in_run("first-run", tmp_path, act)


@pytest.mark.parametrize("size", [(120, 40), (200, 60)])
def test_the_room_is_used(tmp_path: Path, size: tuple[int, int]) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        text = screen_text(app)
        assert "GET file_metadatas/pluginfacts " in text
        assert "W B01 unverified, no cert" in text
        waterfall, record = view(app).query_one(Waterfall), view(app).query_one(ExchangePane)
        if size[1] == 60:
            assert waterfall.size.height == len(waterfall.items) + 2  # titles and legend
        assert record.size.height >= 16
        assert view(app).query_one("#explanation").size.height >= 12

    in_run("first-run", tmp_path, act, size)


def test_a_healthy_run_opens_at_its_beginning_and_the_cursor_shows_each_exchange(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        assert seq(app) == 1
        await pilot.press("down")
        await settled(pilot)
        assert seq(app) == 2
        assert "CRL of CN=Puppet CA" in screen_text(app)
        await pilot.press("enter")
        await settled(pilot)
        assert isinstance(app.screen, ExchangeView)
        await pilot.press("escape")
        assert isinstance(app.screen, RunView)

    in_run("first-run", tmp_path, act)


def test_enter_on_a_finding_leads_to_its_proof(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press("tab", "tab")
        findings = view(app).query_one("#findings", Rows)
        assert findings.has_focus
        assert [finding.rule for finding in findings.items][:1] == ["B01"]
        place = [finding.rule for finding in findings.items].index("R21")
        await pilot.press("home", *["down"] * place, "enter")
        await settled(pilot)
        assert seq(app) == 11
        item = view(app).query_one(Waterfall).item
        assert item is not None
        assert item.seq == 11

    in_run("first-run", tmp_path, act)


def test_on_a_narrow_terminal_panes_are_tabs(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        tabs = view(app).query_one(PaneTabs)
        assert tabs.display
        shown = [name for name in ("top", "left", "right") if view(app).query_one(f"#{name}").display]
        assert shown == ["top"]
        await pilot.press("tab")
        assert view(app).query_one("#left").display
        assert not view(app).query_one("#top").display
        await pilot.press("tab")
        assert view(app).query_one("#findings").has_focus
        await pilot.press("tab")
        assert view(app).query_one(Waterfall).has_focus
        await pilot.click(PaneTabs, offset=(14, 0))
        assert view(app).query_one("#left").display
        await pilot.press("shift+tab")
        assert view(app).query_one("#top").display

    in_run("first-run", tmp_path, act, NARROW)


def test_a_pane_can_have_the_whole_screen(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press("tab", "z")
        assert not view(app).query_one("#top").display
        assert view(app).query_one("#left").size.width >= 198
        await pilot.press("z")
        assert view(app).query_one("#top").display

    in_run("first-run", tmp_path, act)


def test_what_divides_panes_is_moved_by_keys_and_by_the_mouse(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        left, right = view(app).query_one("#left"), view(app).query_one("#right")
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

    in_run("first-run", tmp_path, act)


def test_the_sequence_shows_the_same_exchange(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press("down", "w")
        await settled(pilot)
        sequence = view(app).query_one(Sequence)
        assert sequence.has_focus
        assert sequence.item is not None
        waterfall = view(app).query_one(Waterfall)
        assert not waterfall.display
        assert waterfall.item is not None
        assert sequence.item.seq == waterfall.item.seq
        assert "master" in screen_text(app)

    in_run("first-run", tmp_path, act)


@pytest.mark.parametrize("size", SIZES)
def test_the_sequence_names_the_certificates_of_each_connection_once(tmp_path: Path, size: tuple[int, int]) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press("w")
        await settled(pilot)
        lines = [entry for entry in view(app).query_one(Sequence).items if isinstance(entry, HandshakeLine)]
        assert len(lines) == len({entry.brief.leg for entry in lines if entry.brief}) == 4
        drawn = screen_text(app)
        assert "none ↔ proxy.example" in drawn
        assert "↔ puppet.exam" in drawn
        await pilot.press("end")
        await pilot.pause()
        names = [entry.brief and (entry.brief.certname, entry.brief.presented) for entry in lines]
        assert names[-1] == ("node1.example", "proxy.example")

    in_run("first-run", tmp_path, act, size)


def test_the_key_for_the_other_drawing_is_answered_before_it_is_drawn(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        run = view(app)
        title = run.query_one("#title", Static)
        for drawing, before in (("sequence", Waterfall), ("waterfall", Sequence)):
            run.action_other()
            assert str(title.render()) == f"drawing the {drawing} …"
            assert isinstance(run.timed, before)
            await settled(pilot)
            assert "run 1 of" in str(title.render())
            assert not isinstance(run.timed, before)
        run.action_other()
        run.action_back()
        await settled(pilot)
        assert app.screen is not run

    in_run("first-run", tmp_path, act)


@pytest.mark.slow
def test_a_run_is_played_with_what_the_agent_knew_beside_it(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        whole = len(view(app).query_one(Waterfall).items)
        await pilot.press("-", "-", "-", "space")
        assert view(app).playing
        assert len(view(app).query_one(Waterfall).items) < whole
        await settled(pilot)
        assert view(app).query_one(Knowledge).display
        assert "not seen" in screen_text(app)
        await pilot.press(*["+"] * 9)
        for _ in range(200):
            await pilot.pause(0.05)
            if not view(app).playing:
                break
        assert not view(app).playing
        assert len(view(app).query_one(Waterfall).items) == whole
        assert "sent (changed), accepted" in screen_text(app)

    in_run("first-run", tmp_path, act)


def test_what_it_knew_is_read_once_and_nobody_waits_for_it_at_the_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, asked = threading.Event(), []

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        def steps(number: int) -> Iterator[Step]:
            asked.append(number)
            gate.wait(60)
            yield from ()

        monkeypatch.setattr(app.source, "steps", steps)
        await pilot.press("i")
        for _ in range(5):
            view(app).draw()
            await pilot.pause()
        assert asked == [1]
        threading.Timer(0.5, gate.set).start()

    in_run("first-run", tmp_path, act)


def test_what_is_typed_stays_on_a_low_screen(tmp_path: Path) -> None:
    """A long verdict, findings, and completions above the line."""

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press("f", *"sta", "tab")
        await settled(pilot)
        assert "filter:" in screen_text(app)
        line = app.screen.query_one(Input)
        assert line.value == "status:"
        assert line.region.bottom < 28
        assert "status:>=400" in screen_text(app)
        await pilot.press("escape")
        await settled(pilot)
        assert view(app).query_one("#right").size.height > 3

    in_run("compile-error", tmp_path, act, (100, 28))


@pytest.mark.slow
def test_stepping_and_jumping(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        def shown() -> int:
            return max(entry.seq or 0 for entry in view(app).query_one(Waterfall).items)

        await type_in(pilot, "t", "0")
        assert shown() <= 1
        await pilot.press(".", ".", ".")
        first = shown()
        assert first in (3, 4)
        await pilot.press(",")
        assert shown() == first - 1
        await pilot.press("p")
        phase = shown()
        assert phase > first
        await pilot.press("}")
        assert shown() == 11  # R21 is proved by the catalog
        await type_in(pilot, "t", "100%")
        assert shown() == 22
        await type_in(pilot, "t", "tomorrow")
        assert "tomorrow" in screen_text(app)
        assert shown() == 22

    in_run("first-run", tmp_path, act)


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_a_jump_that_takes_the_focused_widget_away_leaves_the_keyboard_alive(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press("G")
        await settled(pilot)
        await pilot.press("tab")
        await type_in(pilot, "t", "50%")
        assert seq(app) is None  # a silence, of which nothing is shown
        assert app.focused is None or app.focused.is_attached
        before = view(app).current
        await pilot.press("tab")
        assert view(app).current != before
        await pilot.press("escape")
        await settled(pilot)
        assert not isinstance(app.screen, RunView)

    in_run("compile-error", tmp_path, act, size)


@pytest.mark.slow
def test_the_mouse_plays_and_seeks(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        whole = len(view(app).query_one(Waterfall).items)
        line = view(app).query_one(Transport)
        slower = str(line.render()).index(" - ") + 1
        for _ in range(3):
            await pilot.click(Transport, offset=(slower, 0))
        assert "x0.1" in screen_text(app)
        await pilot.click(Transport, offset=(line.size.width // 2, 0))
        await pilot.pause()
        assert len(view(app).query_one(Waterfall).items) < whole
        await pilot.click(Transport, offset=(2, 0))
        assert view(app).playing
        await pilot.click(Transport, offset=(2, 0))
        assert not view(app).playing

    in_run("first-run", tmp_path, act)


def test_a_filter_shows_what_it_lets_through(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await type_in(pilot, "f", "status:404")
        seqs = [entry.seq for entry in view(app).query_one(Waterfall).items if entry.seq]
        assert seqs == [17]
        await type_in(pilot, "f", "text:nowhere-at-all")
        assert [entry.seq for entry in view(app).query_one(Waterfall).items if entry.seq] == []
        await pilot.press("escape")
        await settled(pilot)
        assert len([entry for entry in view(app).query_one(Waterfall).items if entry.seq]) == 22
        await type_in(pilot, "f", "nokey:1")
        assert "nokey" in screen_text(app)

    in_run("first-run", tmp_path, act)


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_tab_completes_a_filter_that_is_typed(tmp_path: Path, size: tuple[int, int]) -> None:
    def offered(app: Inspector) -> bool:
        active = app.screen.active_bindings.values()
        return any(key.enabled and key.binding.action == "next_pane(1)" for key in active)

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        assert offered(app)
        await pilot.press("f", *"sta", "tab")
        line = app.screen.query_one(Input)
        assert (line.value, line.has_focus, view(app).current) == ("status:", True, "top")
        assert not offered(app)
        await pilot.press("shift+tab")
        assert line.has_focus
        await pilot.press("escape")
        await pilot.pause()
        assert offered(app)
        await pilot.press("tab")
        assert view(app).current == "left"

    in_run("first-run", tmp_path, act, size)


def test_a_filter_that_lets_nothing_through_leaves_an_empty_picture(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await type_in(pilot, "f", "status:418")
        assert not view(app).query_one(Waterfall).items
        assert view(app).query_one(Waterfall).title(40) == ""
        await pilot.press("escape")
        await settled(pilot)
        assert "2.01 s" in view(app).query_one(Waterfall).title(40)

    in_run("first-run", tmp_path, act)


def test_the_palette_does_what_the_keys_do(tmp_path: Path) -> None:
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
        assert not view(app).query_one("#left").has_class("gone")
        await pilot.press("ctrl+p")
        await pilot.press(*"zoom pane")
        await pilot.pause(0.5)
        await pilot.press("enter")
        await settled(pilot)
        assert view(app).query_one("#left").has_class("gone")

    in_run("first-run", tmp_path, act)


def test_searching_in_the_list(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await type_in(pilot, "slash", "logo")
        waterfall = view(app).query_one(Waterfall)
        assert waterfall.item is not None
        assert waterfall.item.seq == 20
        await pilot.press("n")
        assert waterfall.item is not None
        assert waterfall.item.seq == 21
        await pilot.press("N")
        assert waterfall.item is not None
        assert waterfall.item.seq == 20

    in_run("first-run", tmp_path, act)


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_searching_in_the_pane_that_has_the_focus(tmp_path: Path, size: tuple[int, int]) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        pane, waterfall = view(app).query_one(ExchangePane), view(app).query_one(Waterfall)
        await pilot.press("tab")
        assert isinstance(pane.shown, Leaves)
        await type_in(pilot, "slash", "not after")
        first = pane.shown.cursor_line
        assert "2041-11-17" in str(pane.copy_value())
        await pilot.press("n")
        assert pane.shown.cursor_line > first
        assert "2041-11-17" in str(pane.copy_value())
        await pilot.press("N")
        assert pane.shown.cursor_line == first
        await type_in(pilot, "slash", "logo")
        assert "No match here for 'logo'." in screen_text(app)
        await pilot.press("2")
        await settled(pilot)
        assert isinstance(pane.shown, Sheet)
        await type_in(pilot, "slash", "user-agent")
        assert "Puppet/" in str(pane.copy_value())
        await pilot.press("3", "]")
        await settled(pilot)
        assert isinstance(pane.shown, Bytes)
        await type_in(pilot, "slash", "END CERT")
        first = pane.shown.at
        assert "END CERT" in str(pane.copy_value())
        await pilot.press("n")
        assert pane.shown.at > first
        assert seq(app) == 1
        await pilot.press("shift+tab")
        assert waterfall.has_focus
        assert waterfall.at == 1
        await type_in(pilot, "slash", "logo")
        assert waterfall.item is not None
        assert waterfall.item.seq == 20

    in_run("first-run", tmp_path, act, size)


def test_a_mark_and_a_note_on_an_exchange(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press("down", "m")
        await type_in(pilot, "M", "why so [old]?")
        assert app.marks.marked(2)
        assert app.marks.note_of(2) == "why so [old]?"
        assert "why so [old]?" in screen_text(app)

    in_run("first-run", tmp_path, act)


def test_an_exchange_as_curl(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press("u")
        words = shlex.split(app.clipboard)
        assert "curl" in words
        assert any("/puppet-ca/v1/certificate/ca" in word for word in words)
        assert "copied" in screen_text(app)

    in_run("first-run", tmp_path, act)


def test_the_value_under_the_cursor(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press("tab", "y")
        assert app.clipboard
        assert "copied" in screen_text(app)

    in_run("first-run", tmp_path, act)


def test_a_body_is_saved_once(tmp_path: Path) -> None:
    target = tmp_path / "body.pem"

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await type_in(pilot, "S", str(target))
        assert target.read_bytes().startswith(b"-----BEGIN CERTIFICATE-----")
        assert stat.S_IMODE(target.stat().st_mode) == 0o600
        await type_in(pilot, "S", str(target))
        assert "already" in screen_text(app)

    in_run("first-run", tmp_path, act)


@pytest.mark.slow
@pytest.mark.parametrize("typed", ["", "~nobody-of-this-name/x", "no/such/directory/x.har", "a\0b"])
@pytest.mark.parametrize("key", ["S", "e"])
def test_what_can_be_no_file_is_reported(tmp_path: Path, key: str, typed: str) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await type_in(pilot, key, typed)
        assert ("Use an absolute path" if typed.startswith("~") else "Choose another") in screen_text(app)

    in_run("first-run", tmp_path, act)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["out.jsonl", "out.mitm", "out.har"])
def test_what_is_shown_is_exported(tmp_path: Path, name: str) -> None:
    target = tmp_path / name

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await type_in(pilot, "f", "phase:certificates")
        await type_in(pilot, "e", str(target))
        assert "wrote 4 records to" in screen_text(app)

    in_run("first-run", tmp_path, act)
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


@pytest.mark.parametrize(("key", "screen"), [("F", Files), ("C", Catalog), ("O", Connections), ("B", Bootstrap)])
@pytest.mark.parametrize("size", SIZES)
def test_the_other_views_of_a_run(tmp_path: Path, key: str, screen: type, size: tuple[int, int]) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press(key)
        await settled(pilot)
        assert isinstance(app.screen, screen)
        assert len(screen_text(app).split()) > 30
        await pilot.press("escape")
        assert isinstance(app.screen, RunView)

    in_run("first-run", tmp_path, act, size)


def test_the_runs_before_and_after(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        assert view(app).number == 1
        await pilot.press("ctrl+down")
        await settled(pilot)
        assert view(app).number == 2
        await pilot.press("ctrl+down")
        await settled(pilot)
        assert view(app).number == 2
        await pilot.press("ctrl+up", "escape")
        await settled(pilot)
        assert not isinstance(app.screen, RunView)

    in_run("out-of-sync", tmp_path, act)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["revoked", "mismatched-key", "bootstrap-waiting", "out-of-sync"])
@pytest.mark.parametrize("size", SIZES)
def test_every_sample_can_be_walked_through(tmp_path: Path, name: str, size: tuple[int, int]) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        number = len(view(app).query_one(Waterfall).items)
        for _ in range(number):
            await pilot.press("down")
        await settled(pilot)
        await pilot.press("w", "end", "home", "z", "z", "i", "i", "space", "space")
        await settled(pilot)
        assert view(app).query_one(Sequence).items

    in_run(name, tmp_path, act, size)


def test_the_frame_names_the_state_of_the_agent_and_the_record_again(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        frame = view(app).query_one("#left")
        for title in ("Record 1", "Agent state", "Record 1"):
            assert frame.border_title == title
            await pilot.press("i")
            await settled(pilot)

    in_run("first-run", tmp_path, act)


def test_records_are_sorted_by_their_duration(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        waterfall = view(app).query_one(Waterfall)
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

    in_run("first-run", tmp_path, act)


def test_help_lists_only_what_a_list_can_do(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        def listed() -> set[str]:
            return {binding.description for _, binding in keys(app.screen)}

        assert "Sort by the next column" in listed()
        await pilot.press("w")
        await settled(pilot)
        assert "Sort by the next column" not in listed()
        assert "Columns" in listed()

    in_run("first-run", tmp_path, act)


def test_marked_records_are_gone_through(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        def seq() -> int | None:
            return view(app).record()

        await pilot.press("apostrophe")
        await pilot.pause()
        assert "No record of this run is marked; m marks one." in screen_text(app)
        first, last = 3, 9
        for marked in (first, last):
            view(app).timed.go(marked)
            await pilot.press("m")
        await pilot.press("home")
        await settled(pilot)
        for key, wanted in (
            ("apostrophe", first),
            ("apostrophe", last),
            ("apostrophe", first),
            ("quotation_mark", last),
        ):
            await pilot.press(key)
            await settled(pilot)
            assert seq() == wanted

    in_run("first-run", tmp_path, act)


def test_the_frame_says_what_the_time_of_the_selected_record_was(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view(app).timed.go(1)
        await settled(pilot)
        spent = str(view(app).query_one("#top").border_subtitle)
        found = re.fullmatch(r"TLS with the agent \d+ ms, then (\d+) ms = connect \d+ \+ TLS \d+ \+ .*", spent)
        assert found, spent
        parts = [int(figure) for figure in re.findall(r" (\d+)(?: \+|$)", spent)]
        assert abs(sum(parts) - int(found[1])) <= len(parts) // 2 + 1
        assert spent in screen_text(app)
        await pilot.press("w")
        await settled(pilot)
        await pilot.press("down")
        await settled(pilot)
        assert view(app).query_one("#top").border_subtitle == ""

    in_run("compile-error", tmp_path, act)


def test_what_a_masters_logs_say_is_drawn_and_what_they_do_not_say_is_shown(tmp_path: Path) -> None:
    times = MasterTimes({11: MasterTime(0.46, 0.26, 0.2)}, ("Access log: 1 of 22 requests found in it.",))

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        while times.notes[0] not in screen_text(app):
            await pilot.pause(0.05)
        app.open_run(1, 11)
        await settled(pilot)
        await settled(pilot)
        (spent,) = [line for line in screen_text(app).splitlines() if "compile 200" in line]
        assert "queue 198 + serve 60 + compile 200" in spent
        assert "▒" in screen_text(app)

    play(sample("first-run", tmp_path), act, times=times, start="")


def test_an_open_request_is_a_bar_that_grows_and_no_verdict_is_shown(tmp_path: Path) -> None:
    agent = Agent(leg="1", time=time.time() - 20).node().plugins()
    asked = OpenRequest("a.example-1", agent.time + 5, "POST", agent.url("catalog/a.example"))
    with recording(tmp_path / "c.sqlite", *agent.records, requests=(asked,)) as capture:

        async def act(pilot: Pilot[None], app: Inspector) -> None:
            await pilot.press("home", "enter")
            await settled(pilot)
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
            await settled(pilot)  # the sequence has only what is over
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

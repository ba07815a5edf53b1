"""The certificate bootstrap on the screen: the same steps as `bootstrap` prints, and the keys to move in them."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest
from rich.console import Group
from rich.table import Table

from inspector.analysis.analyzer import Analyzer
from inspector.explain import bootstrap_reading
from inspector.explain.bootstrap import Bootstraps
from inspector.model import Severity
from inspector.pages import palette
from inspector.runs.examples import (
    ca,
    catalog,
    crl,
    csr,
    issued,
    not_issued,
    refused,
    report,
    talk,
)
from inspector.summaries.source import Source
from inspector.tui import bootstrap_tables
from inspector.tui.bootstrap import Bootstrap
from inspector.tui.rows import Rows
from tests.support.captures import save
from tests.support.conversations import Agent, together
from tests.tui.screens import SIZES, indexed, look, play, sample, screen_text, shared_sample

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from pathlib import Path
    from typing import Any

    from textual.pilot import Pilot

    from inspector.explain.bootstrap import AgentBootstrap
    from inspector.model import Record
    from inspector.runs.examples import ExamplePart
    from inspector.tui.app import Inspector

HOSTILE = "[bold]x[/] \x1b[2J \u202e"
AT = "2027-03-02"
WELL = (ca(), crl(), csr(), issued(), catalog(), report())
WIDE, NARROW = (200, 60), (80, 24)


def written(records: Iterable[Record], path: Path) -> Path:
    return indexed(save(path, *records))


async def opened(pilot: Pilot[None], app: Inspector, certname: str | None = None) -> Bootstrap:
    view = Bootstrap(certname)
    await app.push_screen(view)
    await app.workers.wait_for_complete()
    await pilot.pause()
    return view


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "texts"),
    [
        ("bootstrap-waiting", ["NeedSubmitCSR", "x3 over 4 s", "one key in all", "breaks on 2031-11-20", "A  "]),
        ("mismatched-key", ["stops at certificate", "key mismatch", "A  ", "B  ", "62669e4fc76cca99", "no CA bundle"]),
        ("revoked", ["stops at TLS refused", "TLS refused"]),
        ("first-run", ["NeedCACerts", "unverified: an attacker in between", "2041-"]),
        ("compile-error", ["run", "node1.example"]),
    ],
)
def test_everything_stands_on_a_wide_screen(name: str, texts: list[str]) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await opened(pilot, app)
        steps: Rows[object] = view.query_one("#step-list", Rows)
        first = screen_text(app)
        steps.move_to(0)
        await pilot.pause()
        text = f"{first}\n{screen_text(app)}"
        for expected in texts:
            assert expected in text, text
        assert "1 agent in" in text

    look(shared_sample(name), act, WIDE)


@pytest.mark.slow
def test_a_narrow_screen_has_tabs_by_key_and_by_mouse() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await opened(pilot, app)
        text = screen_text(app)
        assert "1 Agents  2 Steps  3 Trust and identity  4 Keys  5 Forecast" in text
        assert "certificate ──▶ 404" in text, "the only agent's bootstrap is shown at once"
        assert "fingerprint" not in text.partition("CA (NeedCACerts)")[0]
        await pilot.press("4")
        assert "in the issued certificate" in screen_text(app)
        assert app.focused is view.query_one("#sightings")
        await pilot.press("5")
        assert "● works on" in screen_text(app)
        await pilot.click("PaneTabs", offset=(3, 0))
        text = screen_text(app)
        assert "node2.example" in text
        assert "works on" not in text
        await pilot.press("enter")
        assert app.focused is view.query_one("#step-list")
        assert "certificate ──▶ 404" in screen_text(app)
        app.pop_screen()
        await opened(pilot, app)
        lines = screen_text(app).splitlines()
        at = next(at for at, line in enumerate(lines) if line.startswith(" certificates "))
        assert lines[at + 1].startswith(" " * 14)
        await pilot.press("end")
        await pilot.pause()
        assert " run (Done)  run 1" in screen_text(app)

    look(shared_sample("bootstrap-waiting"), act, NARROW)


def revoked(path: Path) -> Path:
    """A node that worked, and was revoked."""
    well = Agent(records=[*talk(*WELL)])
    alert = refused("certificate_revoked", by="proxy", certificate=True)
    return written(together(well, Agent(records=[*talk(alert, after=3600)])), path)


@pytest.mark.slow
@pytest.mark.parametrize("size", [NARROW, (120, 40), WIDE])
def test_a_revoked_node_is_not_green_and_each_tab_names_it(tmp_path: Path, size: tuple[int, int]) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await opened(pilot, app)
        for key in "12345":
            await pilot.press(key)
            await pilot.pause()
            assert screen_text(app).splitlines()[0].strip() == "bootstrap of node1.example: 1 agent in revoked.sqlite"
        assert "✗ refused by the proxy: revoked; " in screen_text(app)
        await pilot.press("1")
        if size != (120, 40):
            assert "revoked, by the proxy" in screen_text(app)
        await pilot.press("2")
        assert "─ TLS refused ──✗ revoked" in screen_text(app)
        await pilot.press("3")
        assert "issued by CN=" in screen_text(app)

    play(revoked(tmp_path / "revoked.sqlite"), act, size)


@pytest.mark.parametrize(
    ("parts", "mark", "style"),
    [
        (WELL, "●", palette.OUTCOMES["complete"]),
        ((ca(), crl(), csr(), not_issued()), "●", palette.SEVERITIES[Severity.WARNING]),
        (
            (*WELL, refused("certificate_revoked", by="master", certificate=True)),
            "✗",
            palette.SEVERITIES[Severity.ERROR],
        ),
        ((ca(), crl(), csr(), issued(key="another")), "✗", palette.SEVERITIES[Severity.ERROR]),
        ((ca(), crl(expired=True), catalog(), report()), "✗", palette.SEVERITIES[Severity.ERROR]),
    ],
    ids=["works", "waits", "refused", "another key", "expired"],
)
def test_only_what_works_is_green_in_the_forecast(parts: Sequence[ExamplePart], mark: str, style: str) -> None:
    analyzer, bootstraps, records = Analyzer(), Bootstraps(), talk(*parts)
    for record in records:
        bootstraps.add(analyzer.feed(record))
    analyzer.finish()
    drawn = bootstrap_tables.dates(bootstraps.of("node1.example", records[-1].ended))
    assert isinstance(drawn, Group)
    judgement = drawn.renderables[0]
    assert isinstance(judgement, Table)
    (first,) = judgement.columns[0].cells
    assert (str(first), getattr(first, "style", "")) == (mark, style)


@pytest.mark.slow
def test_a_step_and_a_key_open_their_record(monkeypatch: pytest.MonkeyPatch) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        asked: list[tuple[int | None, int]] = []
        monkeypatch.setattr(app, "open_exchange", lambda run, seq: asked.append((run, seq)))
        view = await opened(pilot, app)
        await pilot.press("2", "home", "down", "down", "enter")
        bootstrap = view.bootstrap
        assert bootstrap
        assert asked == [(1, bootstrap.steps[2].seqs[0])]
        await pilot.press("4", "down", "enter")
        assert asked[1:] == [(1, bootstrap.keys[1].seqs[0])]
        await pilot.press("2")
        await pilot.click("#step-list", offset=(2, 2), times=2)
        assert asked[2:] == [(1, bootstrap.steps[1].seqs[0])]

    look(shared_sample("bootstrap-waiting"), act)


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_what_is_to_come_is_shown_with_its_day_and_keeps_its_indent(size: tuple[int, int]) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await opened(pilot, app)
        await pilot.press("5")
        text = screen_text(app)
        assert "2031-11-20 the certificate 'CN=proxy.example' expires" in text
        assert "has expired" not in text
        line = next(line for line in text.splitlines() if "2041-11-17 the CRL" in line)
        after = text.splitlines()[text.splitlines().index(line) + 1]
        assert line.index("the CRL") == after.index("the certificate")

    look(shared_sample("bootstrap-waiting"), act, size)


@pytest.mark.slow
def test_a_narrow_screen_has_sixteen_digits_of_keys_and_the_whole_below() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await opened(pilot, app)
        await pilot.press("4")
        assert view.bootstrap
        key, lines = view.bootstrap.keys[0], screen_text(app).splitlines()
        assert key.key[:16] in lines[3]
        assert key.fingerprint[:23] in lines[3]
        below = "".join(" ".join(lines[6:]).split())
        assert key.key in below
        assert key.fingerprint in below
        await pilot.press("y")
        assert app.clipboard == key.fingerprint

    look(shared_sample("bootstrap-waiting"), act, NARROW)


@pytest.mark.slow
@pytest.mark.parametrize("size", [NARROW, (120, 40)])
def test_a_request_that_was_accepted_and_sent_again_shows_that_it_was_accepted(
    tmp_path: Path, size: tuple[int, int]
) -> None:
    again = csr(status=400, text="already has a signed certificate")
    records = talk(ca(), crl(), csr(), not_issued(), again, issued(), catalog(), report())

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await opened(pilot, app)
        await pilot.press("2")
        (row,) = (line for line in screen_text(app).splitlines() if "─ CSR PUT ─" in line)
        assert "▶ 200, 400" in row

    look(written(records, tmp_path / "again.sqlite"), act, size)


@pytest.mark.slow
def test_each_step_says_its_run(tmp_path: Path) -> None:
    agent = Agent("node1.example").bootstrap().run().wait(60).ca().crl().csr().poll()

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await opened(pilot, app)
        await pilot.press("2")
        assert view.bootstrap
        runs = [step.run for step in view.bootstrap.steps]
        assert set(runs) == {1, 2}
        lines = [line.rstrip(" │").rpartition("│")[2].split() for line in screen_text(app).splitlines()]
        assert [int(line[0]) for line in lines if len(line) > 2 and line[1][:2] == "20" and line[0].isdigit()] == runs

    play(written(agent.records, tmp_path / "again.sqlite"), act)


@pytest.mark.slow
def test_an_index_that_grew_while_bootstraps_were_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        original = bootstrap_reading.read

        def read(source: Source, progress: Any, only: str | None = None) -> Bootstraps:
            monkeypatch.setattr(bootstrap_reading, "read", original)
            source.revision += 1  # it came to know more in the meantime
            return original(source, progress, "nobody.example")

        monkeypatch.setattr(bootstrap_reading, "read", read)
        monkeypatch.setattr(Bootstrap, "set_timer", lambda *_: None)
        view = await opened(pilot, app)
        assert "reading ..." in screen_text(app)
        assert "No agent" not in screen_text(app)
        monkeypatch.undo()
        view._rests = 0.0
        view.update()
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert view.bootstrap

    play(sample("first-run", tmp_path), act)


@pytest.mark.slow
def test_another_date_is_judged() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await opened(pilot, app)
        await pilot.press("5", "t", *"soon", "enter")
        assert "'soon' is not a date; write it as 2027-03-02." in screen_text(app)
        await pilot.press("t", *"2031-11-21", "enter")
        await app.workers.wait_for_complete()
        await pilot.pause()
        text = screen_text(app)
        assert "as of 2031-11-21 00:00:00 UTC" in text
        assert "refuses on 2031-11-21" in text
        assert "no date" not in text
        assert view.bootstrap
        assert view.bootstrap.now
        assert view.bootstrap.now.problems
        await pilot.press("t", *["backspace"] * 10, "enter")
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert "as of" not in screen_text(app)
        assert "● works on" in screen_text(app)

    look(shared_sample("first-run"), act)


@pytest.mark.slow
def test_the_certname_that_was_asked_for_is_chosen(tmp_path: Path) -> None:
    agents = [Agent(f"node{n}.example", f"192.0.2.{n}").bootstrap().run(f"u-{n}") for n in range(1, 6)]
    path = written(together(*agents), tmp_path / "five.sqlite")

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await opened(pilot, app, "node4.example")
        assert view.bootstrap
        assert view.bootstrap.certname == "node4.example"
        assert "5 agents" in screen_text(app)
        agents: Rows[AgentBootstrap] = view.query_one("#agent-list", Rows)
        agents.focus()
        await pilot.press("up")
        await pilot.pause()
        assert view.bootstrap.certname == "node3.example"
        steps: Rows[Any] = view.query_one("#step-list", Rows)
        assert steps.items == list(view.bootstrap.steps)
        await pilot.press("escape")
        await opened(pilot, app, "nobody.example")
        assert "No certificate requests of nobody.example are in this capture." in screen_text(app)

    play(path, act, WIDE)


@pytest.mark.slow
def test_reading_shows_how_far_it_is_and_ends_with_the_view(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    goes_on = threading.Event()
    outcome: list[bool] = []

    def read(source: Source, progress: Any, only: str | None = None) -> Bootstraps:
        progress(12_000, 100_000)
        goes_on.wait(300)
        outcome.append(progress(13_000, 100_000))
        raise bootstrap_reading.ReadingCancelled

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        monkeypatch.setattr(bootstrap_reading, "read", read)
        await app.push_screen(Bootstrap())
        limit = time.monotonic() + 300
        while "reading 12,000 of 100,000" not in screen_text(app) and time.monotonic() < limit:
            await pilot.pause(0.01)
        assert "reading 12,000 of 100,000" in screen_text(app)
        await pilot.press("escape")
        await pilot.pause()
        assert not isinstance(app.screen, Bootstrap)
        goes_on.set()
        while not outcome and time.monotonic() < limit:
            await pilot.pause(0.01)
        assert outcome == [False]

    play(sample("first-run", tmp_path), act)


@pytest.mark.slow
def test_a_capture_that_is_not_indexed_yet_is_followed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = save(tmp_path / "new.sqlite", *Agent("a.example").bootstrap().run().records)
    monkeypatch.setattr(Source, "_begin", lambda _: None)

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await opened(pilot, app, "a.example")
        assert "reading 0 of 10 records" in screen_text(app)
        assert "No " not in screen_text(app)
        indexed(path)
        app.poll()
        limit = time.monotonic() + 300
        view = app.screen
        assert isinstance(view, Bootstrap)
        while view.bootstrap is None and time.monotonic() < limit:
            await pilot.pause(0.01)
        assert view.bootstrap
        assert view.bootstrap.certname == "a.example"
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert "No certificate requests" not in screen_text(app)

    play(path, act)


@pytest.mark.slow
def test_captured_text_never_reaches_the_terminal(tmp_path: Path) -> None:
    records = [*talk(*WELL)]
    hostile = Agent(HOSTILE.replace(" ", "%20"), "192.0.2.66").csr(status=400, text=f"no {HOSTILE}")
    hostile.refused(HOSTILE)
    path = written(together(Agent(records=[*records]), hostile), tmp_path / "hostile.sqlite")

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await opened(pilot, app)
        text = ""
        for at in range(len(view.query_one("#agent-list", Rows).items)):
            view.query_one("#agent-list", Rows).move_to(at)
            for key in "1234":
                await pilot.press(key)
                await pilot.pause()
                text += screen_text(app)
            steps: Rows[Any] = view.query_one("#step-list", Rows)
            await pilot.press("2")
            for step in range(len(steps.items)):
                steps.move_to(step)
                await pilot.pause()
                text += screen_text(app)
        assert "[bold]x[/]" in text
        assert "\x1b" not in text
        assert "\u202e" not in text

    play(path, act)

"""What is different between two runs, on the screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from rich.table import Table
from textual.widgets import Static

from inspector.runs.examples import catalog, refused, report, talk, together
from inspector.tui.causes import Causes
from inspector.tui.differences import DifferencesView
from inspector.tui.exchange import ExchangeView
from inspector.tui.run import RunView
from inspector.tui.runs import Runs
from tests.support.captures import save
from tests.support.compared import file
from tests.tui.screens import SIZES, indexed, look, play, sample, screen_text, settled, shared_sample, written

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot

    from inspector.tui.app import Inspector

HOSTILE = "\x1b[2J[bold]\u202e"


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """A good run, and one that failed after a change."""
    facts = {"uptime": "1 day", "os": "a"}
    good = talk(catalog(resources=[file("/a", content="one\ntwo\n", mode="1")], facts=facts), report())
    changed = catalog(
        resources=[file("/a", content="one\nthree\n", mode="2"), file(f"/{HOSTILE}", owner=HOSTILE)],
        facts={"uptime": "2 days", "os": "b"}, uuid="a-2",
    )  # fmt: skip
    failed = talk(changed, report(result="failed", uuid="a-2"), after=7200)
    return written(tmp_path, together(good, failed))


def details(view: DifferencesView) -> str:
    table = view.query_one("#details Static", Static).content
    assert isinstance(table, Table)
    cells = [[str(cell) for cell in column.cells] for column in table.columns]
    return "\n".join("  ".join(row) for row in zip(*cells, strict=True))


async def opened(pilot: Pilot[None], app: Inspector, *keys: str) -> DifferencesView:
    await pilot.press(*keys)
    await settled(pilot, app)
    assert isinstance(app.screen, DifferencesView), screen_text(app)
    return app.screen


@pytest.mark.slow
def test_from_the_last_good_run(made: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        assert isinstance(app.screen, Causes)
        view = await opened(pilot, app, "d")
        assert (view.before, view.number) == (1, 2)
        found = [(line.section, line.what) for line in view.rows.items]
        assert ("run", "outcome") in found
        assert ("catalog", "File[/a]/mode") in found
        assert ("facts", "os") in found
        assert ("facts", "uptime") not in found
        assert HOSTILE not in screen_text(app)
        await pilot.press("d")
        assert ("facts", "uptime") in [(line.section, line.what) for line in view.rows.items]
        app.pop_screen()
        await settled(pilot, app)
        await pilot.press("enter")
        await settled(pilot, app)
        assert isinstance(app.screen, RunView)
        view = await opened(pilot, app, "d")
        assert (view.before, view.number) == (1, 2)
        assert "Differences: node1.example, run 1 (complete), now run 2 (failed)" in screen_text(app)

    play(made, act, start="")


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_a_refused_run_begins_with_what_refused_it(tmp_path: Path, size: tuple[int, int]) -> None:
    good = talk(catalog(resources=[file("/a")]), report())
    bad = talk(*[refused("certificate_revoked", by="proxy", certificate=True)] * 2, after=7200)

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await opened(pilot, app, "d")
        first, second, *_ = view.rows.items
        assert (first.section, second.section) == ("refused", "refused")
        assert first.what == "T05 the certificate of the node is revoked: the proxy refuses it"
        assert second.what == "never got that far: catalog, facts, report, 2 requests"
        text = screen_text(app)
        assert second.what in text
        line = next(line for line in text.splitlines() if "T05" in line)
        assert "T05 the certificate of the node is revoked: the proxy refuses it" in line
        assert [line.section for line in view.rows.items[2:]] == []
        shown = details(view)
        assert "node1.example was refused: T05 the certificate of node1.example (serial" in shown
        assert "puppetserver ca clean --certname node1.example" in shown
        await pilot.press("d")
        assert "requests" in {line.section for line in view.rows.items}
        await pilot.press("home", "enter")
        await settled(pilot, app)
        assert isinstance(app.screen, ExchangeView)
        assert app.screen.record() == 3

    play(indexed(save(tmp_path / "made.sqlite", *together(good, bad))), act, size, start="")


@pytest.mark.slow
def test_a_narrow_screen_has_the_values_behind_what_differs(made: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await opened(pilot, app, "d")
        text = screen_text(app)
        assert '~ File[/a]/mode: "1" -> "2"' in text
        assert "~ outcome: complete -> failed" in text
        assert "before" not in text.partition("Details")[0]
        await pilot.resize_terminal(120, 40)
        await settled(pilot, app)
        assert "before" in screen_text(app).partition("Details")[0]

    play(made, act, SIZES[0], start="")


@pytest.mark.slow
def test_details_and_the_record(made: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await opened(pilot, app, "d", "f")
        while view.rows.items[0].section != "catalog":
            await pilot.press("f")
        assert {line.section for line in view.rows.items} == {"catalog"}
        assert [line.what for line in view.rows.items][:2] == ["File[/a]/content", "File[/a]/mode"]
        shown = details(view)
        assert "-two\n+three" in shown
        assert "/m/site.pp:1" in shown
        await pilot.press("down")
        await pilot.pause()
        assert 'before  "1"' in " ".join(details(view).split(" "))
        await pilot.press("enter")
        await pilot.pause()
        assert isinstance(app.screen, ExchangeView)
        assert app.screen.record() == 3

    play(made, act, start="")


@pytest.mark.slow
def test_marked_runs(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        assert isinstance(app.screen, Runs)
        await pilot.press("home", "m", "end")
        view = await opened(pilot, app, "d")  # a marked one and the selected one
        assert (view.before, view.number) == (1, 2)
        await pilot.press("escape", "m", "home")
        view = await opened(pilot, app, "d")  # both marked
        assert (view.before, view.number) == (1, 2)

    play(sample("out-of-sync", tmp_path), act)


@pytest.mark.slow
def test_no_good_run_before() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press("home", "d")
        await settled(pilot, app)
        assert isinstance(app.screen, Runs)
        assert "No earlier run of this node in the capture went well" in screen_text(app)

    look(shared_sample("out-of-sync"), act)


@pytest.mark.slow
def test_no_difference(tmp_path: Path) -> None:
    def run(number: int) -> list[object]:
        made = catalog(resources=[file("/a")], uuid=f"a-{number}")
        return talk(made, report(uuid=f"a-{number}"), after=number * 7200)  # type: ignore[return-value]

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press("end")
        view = await opened(pilot, app, "d")
        assert view.rows.items == []
        assert "There is no difference." in screen_text(app)

    play(written(tmp_path, together(run(0), run(1))), act)  # type: ignore[arg-type]

"""Files, catalog and connections of one run on the screen."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest
from rich.table import Table
from textual.widgets import Static

from inspector.errors import CaptureError
from inspector.explain import file_transfers
from inspector.runs.examples import asked, catalog, content, metadata, report, talk
from inspector.summaries.source import Source
from inspector.tui.app import Inspector
from inspector.tui.catalog import Catalog
from inspector.tui.connections import Connections
from inspector.tui.doc_widgets import Sheet
from inspector.tui.exchange import ExchangeView
from inspector.tui.files import Files
from inspector.tui.part import PartView, middle
from tests.tui.screens import look, play, screen_text, settled, shared_sample, written

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot


HOSTILE = "[bold]x[/] \x1b[2J \u202e"
FILE = "modules/demo/app.conf"


@pytest.fixture
def opened(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int | None, int]]:
    """The exchanges that were opened."""
    found: list[tuple[int | None, int]] = []
    monkeypatch.setattr(Inspector, "open_exchange", lambda _, number, seq, _place=None: found.append((number, seq)))
    return found


async def show[V: PartView[Any]](pilot: Pilot[None], app: Inspector, view: V) -> V:
    """Open a view and wait until it has read."""
    app.push_screen(view)
    await settled(pilot, app)
    return view


def totals(view: PartView[Any]) -> str:
    return str(view.query_one("#totals", Static).render())


def details(view: PartView[Any]) -> str:
    """The details, also what of them is off the screen."""
    table = view.query_one("#details Static", Static).content
    assert isinstance(table, Table)
    cells = [[str(cell) for cell in column.cells] for column in table.columns]
    return "\n".join("  ".join(row) for row in zip(*cells, strict=True))


def lines(view: PartView[Any]) -> list[str]:
    return [view.rows.plain(item) for item in view.rows.items]


# -- files --------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_files_by_keyboard(opened: list[tuple[int | None, int]]) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await show(pilot, app, Files(2))
        assert "Files of run 2 of node1.example: complete" in screen_text(app)
        assert totals(view) == "13 requested, 4 in sync, 1 fetched (+2 repeated), 27 B, 0 wrong, 0 missing"
        await pilot.press("d")
        assert [use.name for use in view.rows.items] == ["modules/demo/single.txt"]
        assert "3x" in screen_text(app)
        assert "right" in screen_text(app)
        await pilot.press("enter")
        assert opened == [(2, 17)]
        await pilot.press("d", *"/fallback", "enter")
        assert view.rows.item is not None
        assert view.rows.item.name == "modules/demo/fallback.txt"
        assert "in sync" in details(view)
        await pilot.press("up")
        assert "modules/demo/fallback.txt" in details(view)  # taken instead of the one that is not there
        assert "404" in details(view)
        await pilot.press("f")
        assert {use.state for use in view.rows.items} == {"fetched"}
        assert "Files, fetched of run 2" in screen_text(app)
        await pilot.press("f")
        assert len(view.rows.items) == 4
        await pilot.press("escape")
        assert app.screen is not view

    look(shared_sample("out-of-sync"), act)


@pytest.mark.slow
def test_files_by_mouse(opened: list[tuple[int | None, int]]) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await show(pilot, app, Files(1))
        before = [use.name for use in view.rows.items]
        await pilot.click("#items", offset=(2, 0))
        assert [use.name for use in view.rows.items] == sorted(before)
        await pilot.click("#items", offset=(2, 3))
        assert view.rows.at == 2
        await pilot.click("#items", offset=(2, 4), times=2)
        assert opened == [(1, view.rows.items[3].seq)]

    look(shared_sample("first-run"), act)


@pytest.mark.slow
def test_wrong_digests_and_missing_files_are_shown(tmp_path: Path) -> None:
    odd = {"path": "/srv/x", "type": "file", "owner": HOSTILE, "checksum": {"type": "mtime", "value": HOSTILE}}
    records = talk(
        catalog(), metadata(FILE, b"old"), content(FILE, b"newer"), asked("file_metadata/modules/x/y", odd),
        content("modules/x/y"), content("modules/x/y"), metadata("modules/x/z", status=404), report(),
    )  # fmt: skip

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await show(pilot, app, Files(1))
        assert totals(view) == "3 requested, 0 in sync, 2 fetched (+1 repeated), 19 B, 1 wrong, 1 missing"
        assert "WRONG" in screen_text(app)
        assert "fetch 3  200, 5 B, digest wrong" in details(view)
        await pilot.press("down")
        assert "state  missing" in details(view)
        await pilot.press("down")
        assert "checksum mtime" in details(view)
        assert r"[bold]x[/] \x1b[2J \x202e" in details(view)
        assert not {"\x1b", "\u202e"} & set(screen_text(app))
        await pilot.press("s")
        names = [use.name for use in view.rows.items]
        assert names == sorted(names)

    play(written(tmp_path, records), act, (80, 24))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["revoked", "bootstrap-waiting"])
def test_a_run_that_asked_for_no_file(name: str) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await show(pilot, app, Files(1))
        if any(brief.phase == "plugins" for brief in app.source.briefs(1)):
            assert totals(view).startswith("13 requested, ")
        else:
            assert totals(view) == "The agent requested no files."
            await pilot.press("enter", "d", "f", "down", "s")

    look(shared_sample(name), act, (80, 24))


@pytest.mark.slow
def test_a_run_that_grows_is_read_again_and_the_cursor_stays(tmp_path: Path) -> None:
    records = talk(catalog(), metadata(FILE), metadata("modules/x/y"), metadata("modules/x/z"), report())
    path = written(tmp_path, records[:3])

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await show(pilot, app, Files(1))
        await pilot.press("down")
        assert view.rows.item is not None
        assert view.rows.item.name == "modules/x/y"
        view._shown_state = None
        whole = written(tmp_path / "more", records)
        app.source.close()
        app.source = Source(whole)
        view.update()
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert [use.name for use in view.rows.items] == [FILE, "modules/x/y", "modules/x/z"]
        assert view.rows.item.name == "modules/x/y"

    (tmp_path / "more").mkdir()
    play(path, act)


@pytest.mark.slow
def test_while_it_reads_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    go_on = threading.Event()
    files = file_transfers.files
    monkeypatch.setattr(file_transfers, "files", lambda steps: files(steps) if go_on.wait(300) else [])

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = Files(1)
        app.push_screen(view)
        await pilot.pause()
        assert "reading files ..." in screen_text(app)
        await pilot.press("down", "d", "d")  # nothing is frozen
        go_on.set()
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert totals(view).startswith("13 requested")

    look(shared_sample("first-run"), act)


def test_what_can_not_be_read_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def steps(*_: object) -> None:
        raise CaptureError("It can't be read.", "Check its disk.")

    monkeypatch.setattr(Source, "steps", steps)

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await show(pilot, app, Files(1))
        assert "It can't be read. Check its disk." in screen_text(app)
        assert totals(view) == "could not be read: It can't be read. Check its disk."

    look(shared_sample("first-run"), act)


# -- catalog ------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_catalog_of_a_first_run(opened: list[tuple[int | None, int]]) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await show(pilot, app, Catalog(1))
        assert totals(view).startswith("catalog 1 of 1: 23 resources, evaluated in ")
        assert totals(view).endswith("; 10 changed, 8 unchanged, 5 not reported")
        await pilot.press(*"/single.txt", "enter")
        text = details(view)
        assert "source  puppet:///modules/demo/single.txt" in text
        assert "contained in  Stage[main] / Class[Demo]" in text
        assert "event success" in text
        await pilot.press("enter", "o", "home", "enter")
        assert opened == [(1, 22), (1, 11), (1, 11)]
        await pilot.press("d")
        assert {item.status for item in view.rows.items} == {"changed"}
        assert "Resources (changed only) of run 1" in screen_text(app)
        await pilot.press("d", "less_than_sign")
        assert "This run has no earlier catalog." in screen_text(app)
        lines = (line.removeprefix("│") for line in screen_text(app).splitlines())
        titles = next(line for line in lines if line.startswith("type "))
        await pilot.click("#items", offset=(titles.index("time"), 0))
        times = [item.time or -1 for item in view.rows.items]
        assert times == sorted(times, reverse=True)

    look(shared_sample("first-run"), act)


@pytest.mark.slow
@pytest.mark.parametrize("size", [(80, 24), (200, 60)])
def test_the_line_of_a_resource_can_always_be_read(size: tuple[int, int]) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await show(pilot, app, Catalog(1))
        view.rows.move_to(next(at for at, item in enumerate(view.rows.items) if item.line == 11))
        await pilot.pause()
        text = screen_text(app)
        assert "init.pp:11" in text
        assert not view.rows.show_horizontal_scrollbar
        if size[0] == 200:
            assert "/srv/puppet/code/environments/production/modules/demo/manifests/init.pp:12" in text

    look(shared_sample("first-run"), act, size)


@pytest.mark.slow
def test_enter_on_a_resource_opens_the_report_at_it() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await show(pilot, app, Catalog(1))
        view.rows.move_to(next(at for at, item in enumerate(view.rows.items) if item.line == 11))
        await pilot.press("enter")
        for _ in range(3):
            await app.workers.wait_for_complete()
            await pilot.pause()
        assert isinstance(app.screen, ExchangeView)
        rows = app.screen.query_one(Sheet).rows
        selected = rows.plain(rows.item) if rows.item is not None else ""
        assert "File[/srv/agent/node1.example/managed/logo.bin]" in selected
        line = next(line for line in screen_text(app).splitlines() if "logo.bin]" in line)
        assert "init.pp:11" in line
        assert "2026-11-21T12:10:44.510+00:00" in line

    look(shared_sample("first-run"), act, (120, 40))


@pytest.mark.slow
def test_a_run_without_a_catalog_says_so() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await show(pilot, app, Catalog(1))
        assert totals(view).startswith(
            "This run has no catalog: node1.example failed: S01 no catalog for node1.example"
        )
        assert "This run has no catalog" in details(view)
        assert "no role for this node" in details(view)
        await pilot.press("less_than_sign")
        assert view.rows.items == []

    look(shared_sample("compile-error"), act, (80, 24))


def made(title: str, **parameters: Any) -> dict[str, Any]:
    return {"type": "File", "title": title, "parameters": parameters, "file": "/srv/m.pp", "line": 3}


@pytest.mark.slow
def test_a_failed_resource_and_its_secrets(tmp_path: Path) -> None:
    resource = made("/a", content="hunter2", owner=HOSTILE) | {"sensitive_parameters": ["content"]}
    event = {"status": "failure", "property": "owner", "message": f"could not find user {HOSTILE}"}
    failed = {"failed": True, "evaluation_time": 1.5, "events": [event]}
    records = talk(
        catalog(resources=[made("/b"), resource]), report(result="failed", resource_statuses={"File[/a]": failed})
    )

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await show(pilot, app, Catalog(1))
        assert totals(view) == "catalog 1 of 1: 2 resources, evaluated in 1.5 s; 1 failed, 1 not reported"
        assert [item.title for item in view.rows.items] == ["/a", "/b"]
        view.rows.sort_by(1)
        view.rows.sort_by(1)  # by title, the other way round
        assert [item.title for item in view.rows.items] == ["/b", "/a"]
        await pilot.press("end")
        assert "hunter2" not in details(view)
        assert "  content  •••••" in "\n" + details(view).replace("\n", "\n  ")
        assert r"owner: could not find user [bold]x[/] \x1b[2J \x202e" in details(view)
        assert not {"\x1b", "\u202e"} & set(screen_text(app))

    play(written(tmp_path, records), act, (80, 24))


@pytest.mark.slow
def test_without_a_report_the_catalog_is_there(tmp_path: Path, opened: list[tuple[int | None, int]]) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await show(pilot, app, Catalog(1))
        assert totals(view) == "catalog 1 of 1, no report: 1 resources; 1 not reported"
        await pilot.press("enter")
        assert opened == [(1, 1)]

    play(written(tmp_path, talk(catalog(resources=[made("/a")]))), act)


@pytest.mark.slow
def test_earlier_catalogs(tmp_path: Path, opened: list[tuple[int | None, int]]) -> None:
    records = talk(
        catalog(resources=[made("/a")], environment="testing"),
        catalog(resources=[made("/b"), made("/c")], asks="testing", environment="testing"),
        report(resource_statuses={"File[/b]": {"changed": True}}),
    )

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await show(pilot, app, Catalog(1))
        assert totals(view) == "catalog 2 of 2: 2 resources, evaluated in 0 ms; 1 changed, 1 not reported"
        await pilot.press("less_than_sign")
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert totals(view) == "catalog 1 of 2, no report: 1 resources; 1 not reported"
        assert [item.title for item in view.rows.items] == ["/a"]
        await pilot.press("enter", "o")
        assert opened == [(1, 1), (1, 1)]
        await pilot.press("less_than_sign")
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert [item.title for item in view.rows.items] == ["/b", "/c"]

    play(written(tmp_path, records), act)


# -- connections --------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_connections_of_a_first_run(opened: list[tuple[int | None, int]]) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await show(pilot, app, Connections(1))
        assert totals(view).startswith("4 from the agent, 4 to the master, 22 requests, ")
        assert [item.side for item in view.rows.items] == ["agent", "master"] * 4
        text = details(view)
        assert "the agent presented none, was presented proxy.example" in text
        assert "TLSv1.3 TLS_AES_256_GCM_SHA384 SNI proxy.example, not resumed" in text
        assert "closed by: agent" in text
        await pilot.press("end", "enter")
        assert opened == [(1, 5)]
        assert "identity used  node1.example" in details(view)
        assert "KKK" in screen_text(app)
        await pilot.click("#items", offset=(3, 3))
        assert view.rows.at == 2

    look(shared_sample("first-run"), act)


@pytest.mark.slow
def test_failed_handshakes_say_why(opened: list[tuple[int | None, int]]) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await show(pilot, app, Connections(1))
        assert totals(view) == "3 from the agent, 3 failed, 0 requests"
        assert (
            "failed  Certificate 'CN=node2.example' is revoked (alert certificate_revoked from the proxy)"
            in details(view)
        )
        assert "the agent presented node2.example" in details(view)
        await pilot.press("d", "end", "enter")
        assert len(view.rows.items) == 3
        assert opened == [(1, 3)]

    look(shared_sample("revoked"), act)


@pytest.mark.slow
def test_connections_of_an_agent_that_waits() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        view = await show(pilot, app, Connections(1))
        assert [len(item.requests) > 0 for item in view.rows.items] == [True] * len(view.rows.items)
        assert view.rows.items[-2].shown == "node2.example"
        await pilot.press("d")
        assert lines(view) == []

    look(shared_sample("bootstrap-waiting"), act, (80, 24))


def test_the_middle_of_long_names_is_left_out() -> None:
    assert middle("modules/demo/a.txt", 18) == "modules/demo/a.txt"
    assert middle("modules/demo/a.txt", 12) == "modu…o/a.txt"
    assert len(middle("x" * 99, 20)) == 20
    assert middle("a\x1bb", 9) == r"a\x1bb"

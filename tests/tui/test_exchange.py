"""One record on the screen: its tabs by keys and by mouse, bodies, secrets, searching, and where evidence is."""

from __future__ import annotations

import dataclasses
import json
import threading
from typing import TYPE_CHECKING

import pytest

from inspector.capture.store import Capture
from inspector.cli import main as cli
from inspector.model import Connection, Exchange, Finding, Handshake, Place, Response, Severity
from inspector.pages import tabs
from inspector.pages.content import Content
from inspector.pages.model import Field, Table, item_of
from inspector.pages.tabs import Tab, TabPart
from inspector.privacy.secrets import MASK
from inspector.runs.examples import catalog, talk
from inspector.tui import exchange_pane
from inspector.tui.bytes import Bytes
from inspector.tui.doc_widgets import Bar, Leaves, Sheet
from inspector.tui.exchange import ExchangeView
from inspector.tui.exchange_pane import ExchangePane
from tests.bench.analysis import catalog as big_catalog
from tests.support.conversations import Agent, together
from tests.support.hostile import harmless, hostile_records
from tests.support.secrets import WORD, hiding
from tests.support.tab_words import same_words
from tests.tui.screens import SIZES, indexed, look, play, screen_text, settled, shared_sample

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from textual.pilot import Pilot

    from inspector.model import Record
    from inspector.pages.message import Body
    from inspector.tui.app import Inspector

NARROW = SIZES[0]


def capture(records: Sequence[Record], folder: Path) -> Path:
    """A capture of these records, indexed."""
    path = folder / "made.sqlite"
    with Capture.create(path) as made:
        for record in records:
            if isinstance(record, Exchange | Handshake):
                legs = [record.agent, record.master] if isinstance(record, Exchange) else [record.leg]
                for leg in legs:
                    if leg:
                        made.note(Connection(leg))
            made.append(record)
    return indexed(path)


async def opened(pilot: Pilot[None], app: Inspector, seq: int, finding: Finding | None = None) -> ExchangePane:
    owner = app.source.owner(seq)
    app.push_screen(ExchangeView(list(app.source.seqs(owner.number)) if owner else [seq], seq, finding))
    await settled(pilot, app)
    return app.screen.query_one(ExchangePane)


async def press(pilot: Pilot[None], app: Inspector, *keys: str) -> str:
    await pilot.press(*keys)
    await settled(pilot, app)
    return screen_text(app)


MEANS = [
    ("first-run", 1, "signed by: CN=Puppet Root CA"),
    ("first-run", 3, "signing request"),
    ("first-run", 4, "key match: same as in the signing request of this run"),
    ("first-run", 7, "demo_rack.yaml"),
    ("first-run", 8, "sha256: "),
    ("first-run", 11, "Stage[main]"),
    ("first-run", 22, "changed"),
    ("compile-error", 4, "Error while evaluating a Function Call"),
    ("compile-error", 5, "Could not retrieve catalog; skipping run"),
    ("bootstrap-waiting", 4, "node2.example"),
    ("bootstrap-waiting", 5, "already has a requested certificate"),
    ("mismatched-key", 2, "key match: not the key of the signing request of this run"),
    ("out-of-sync", 19, "verdict: right"),
    ("revoked", 2, "Certificate 'CN=node2.example' is revoked"),
]


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({name for name, _, _ in MEANS}))
def test_what_a_record_means_is_shown_first(name: str) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        for capture, seq, words in MEANS:
            if capture == name:
                await opened(pilot, app, seq)
                assert words in screen_text(app)
                app.pop_screen()

    look(shared_sample(name), act, NARROW)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({name for name, _, _ in MEANS}))
def test_show_prints_what_the_pane_has(capsys: pytest.CaptureFixture[str], name: str) -> None:
    path = shared_sample(name)
    shown = {}
    for seq in [seq for capture, seq, _ in MEANS if capture == name]:
        assert cli.main(["show", str(path), str(seq)]) == 0
        shown[seq] = capsys.readouterr().out.splitlines()

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        for seq, lines in shown.items():
            pane = await opened(pilot, app, seq)
            assert same_words(lines, pane.tabs) > 5
            app.pop_screen()

    look(path, act, NARROW)


@pytest.mark.slow
def test_every_tab_has_a_key() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        pane = await opened(pilot, app, 11)
        assert "Class[Settings]" in screen_text(app)
        assert "X-Puppet-Version" in await press(pilot, app, "2")
        assert "HTTP/1.1 200" in await press(pilot, app, "3")
        assert "presented by the agent" in await press(pilot, app, "4")
        assert "waiting for the master" in await press(pilot, app, "5")
        assert "send the facts, get the catalog" in await press(pilot, app, "6")
        assert pane.tab == "Explain"
        assert "Class[Settings]" in await press(pilot, app, "1")
        message = await press(pilot, app, "]", "]", "]")
        assert "kernel: Linux" in message
        assert "[Facts]" in message
        assert "[Form]" in await press(pilot, app, "]")
        assert "[Catalog]" in await press(pilot, app, "]")
        assert "[Form]" in await press(pilot, app, "[")

    look(shared_sample("first-run"), act, NARROW)


@pytest.mark.slow
def test_tabs_parts_and_branches_are_clicked() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        pane = await opened(pilot, app, 11)
        await pilot.click("#tabs", offset=(12, 0))
        await settled(pilot, app)
        assert pane.tab == "Request"
        await pilot.click("#parts", offset=(12, 0))
        await settled(pilot, app)
        assert isinstance(pane.shown, Bytes)
        assert '"family": "Debian"' in screen_text(app)
        await pilot.click("#tabs", offset=(2, 0))
        await pilot.click("#parts", offset=(13, 0))
        await settled(pilot, app)
        tree = pane.shown
        assert isinstance(tree, Leaves)
        await pilot.click(tree, offset=(4, 1))
        await settled(pilot, app)
        assert "/srv/agent/node1.example/managed" in screen_text(app)

    look(shared_sample("first-run"), act, NARROW)


@pytest.mark.slow
def test_a_body_is_pretty_raw_or_hexadecimal() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        pane = await opened(pilot, app, 11)
        assert '"name": "node1.example"' in await press(pilot, app, "3", "]")
        # It came compressed: that is what is on the wire.
        message = await press(pilot, app, "v")
        assert "raw  application/" in message
        assert 'node1.example"' not in message.partition("raw  ")[2]
        assert "00000000  1f 8b 08" in await press(pilot, app, "v")
        assert '"name": "node1.example"' in await press(pilot, app, "v")
        found = pane.body()
        assert found
        name, body = found
        assert name == "11-catalog-response.json"
        assert json.loads(body)["name"] == "node1.example"

    look(shared_sample("first-run"), act, NARROW)


@pytest.mark.slow
def test_other_records_of_the_run_are_a_key_away() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        pane = await opened(pilot, app, 4)
        title = screen_text(app).split("\n")[0].strip()
        assert title.startswith("4 POST ")
        assert " 500 - 4 of 5 - run 1 of " in title
        await press(pilot, app, "greater_than_sign")
        assert pane.seq == 5
        assert "This is the last record." in await press(pilot, app, "greater_than_sign")
        await press(pilot, app, "3")
        await press(pilot, app, "less_than_sign")
        assert (pane.seq, pane.tab) == (4, "Response")
        await press(pilot, app, "less_than_sign", "less_than_sign", "less_than_sign")
        assert "This is the first record." in await press(pilot, app, "less_than_sign")

    look(shared_sample("compile-error"), act, NARROW)


@pytest.mark.slow
def test_searching_goes_through_branches_that_are_closed() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        pane = await opened(pilot, app, 11)
        await press(pilot, app, "]", "]", "]")
        await press(pilot, app, "slash", *"fqdn", "enter")
        assert "fqdn: node1.example" in screen_text(app)
        assert pane.copy_value() == "node1.example"
        await press(pilot, app, "slash", *"major", "enter")
        assert pane.copy_value() == "12"
        assert "No match here for" in await press(pilot, app, "slash", *"nowhere", "enter")
        await press(pilot, app, "2")
        assert pane.search("Accept-Encoding")
        assert pane.copy_value() == "gzip;q=1.0,deflate;q=0.6,identity;q=0.3"
        await press(pilot, app, "]")
        assert pane.search("debian")
        assert '"name": "Debian"' in (pane.copy_value() or "")
        assert pane.search("debian", again=True)
        assert '"family": "Debian"' in (pane.copy_value() or "")
        assert pane.search("debian", forward=False, again=True)
        assert '"name": "Debian"' in (pane.copy_value() or "")
        await press(pilot, app, "home", "slash", *"debian", "enter")
        assert '"name": "Debian"' in (pane.copy_value() or "")
        await press(pilot, app, "n")
        assert '"family": "Debian"' in (pane.copy_value() or "")
        await press(pilot, app, "N")
        assert '"name": "Debian"' in (pane.copy_value() or "")

    look(shared_sample("first-run"), act, NARROW)


@pytest.mark.slow
def test_what_came_while_something_was_typed_gets_the_focus(monkeypatch: pytest.MonkeyPatch) -> None:
    gate = threading.Event()

    def content(body: Body) -> Content:
        gate.wait(60)
        return body.content(body.mode)

    monkeypatch.setattr(exchange_pane, "_content", content)

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        pane = await opened(pilot, app, 11)
        await press(pilot, app, "3")
        await pilot.press("]", "slash")
        assert pane.shown is None
        gate.set()
        await press(pilot, app, *"debian", "enter")
        assert isinstance(pane.shown, Bytes)
        assert pane.shown.has_focus

    look(shared_sample("first-run"), act, NARROW)


@pytest.mark.slow
def test_a_line_of_a_table_that_is_too_long_is_shown_in_full_below() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        pane = await opened(pilot, app, 25)
        await press(pilot, app, "]", "]")
        assert pane.search("@@ ")
        await settled(pilot, app)
        message = screen_text(app)
        # A message of several lines: one line in the table, its own lines below.
        assert any(line.strip().startswith("+++ ") for line in message.splitlines())
        assert "\\x0a" not in message
        assert (pane.copy_value() or "").startswith("\n--- ")

    look(shared_sample("out-of-sync"), act, (120, 40))


@pytest.mark.slow
def test_nothing_to_show() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        pane = await opened(pilot, app, 4)
        pane.show(None)
        await settled(pilot, app)
        assert (pane.tabs, pane.shown, pane.body(), pane.copy_value()) == ([], None, None, None)
        assert not pane.search("x")
        pane.show(999)
        await settled(pilot, app)
        assert "There is no record 999." in screen_text(app)

    look(shared_sample("compile-error"), act, NARROW)


# -- secrets ---------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_secret_is_shown_when_it_is_asked_for_and_hidden_again_later(tmp_path: Path) -> None:
    (record,) = hiding()
    records = [record, *together(Agent(leg="1").plugins())[:1]]

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        app.push_screen(ExchangeView([1, 2], 1))
        await settled(pilot, app)
        pane = app.screen.query_one(ExchangePane)
        await press(pilot, app, "]")
        assert pane.search("password")
        assert f"password: {MASK} (press x to show it)" in screen_text(app)
        assert pane.copy_value() == MASK
        message = await press(pilot, app, "x")
        assert f"password: {WORD}" in message
        assert pane.copy_value() == WORD
        assert pane.search("content")
        assert f"content: {MASK}" in screen_text(app)
        await press(pilot, app, "3", "]")
        for mode in ("pretty", "raw", "hex"):
            assert WORD not in screen_text(app), mode
            assert "other-secret" not in screen_text(app), mode
            await press(pilot, app, "v")
        message = await press(pilot, app, "x")
        assert f'"password": "{WORD}"' in message
        assert "other-secret" in message
        # Another record, and back: hidden again.
        await press(pilot, app, "greater_than_sign")
        assert WORD not in await press(pilot, app, "less_than_sign", "3", "]")
        await press(pilot, app, "1", "]")
        assert pane.search("password")
        assert WORD not in screen_text(app)

    play(capture(records, tmp_path), act, (140, 60))


@pytest.mark.slow
def test_the_secret_in_a_text_is_shown_when_it_is_asked_for(tmp_path: Path) -> None:
    text = "user = app\npassword = hunter2-horse\nport = 1\n"
    resource = {"type": "File", "title": "/a", "parameters": {"content": text}}
    (record,) = talk(catalog(resources=[resource]))
    assert isinstance(record, Exchange)
    refused = Response((("Content-Type", "text/plain"),), b"password: hunter2-horse is wrong", status=500)

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        pane = await opened(pilot, app, 1)
        assert pane.search("password =")
        assert f"password = {MASK}" in screen_text(app)
        await settled(pilot, app)
        assert "Show secret" in screen_text(app)
        shown = await press(pilot, app, "x")
        assert "password = hunter2-horse" in shown
        assert "port = 1" in shown
        pane = await opened(pilot, app, 2)
        assert "hunter2" not in screen_text(app)
        assert "password: hunter2-horse is wrong" in await press(pilot, app, "x")

    play(capture([record, dataclasses.replace(record, response=refused)], tmp_path), act, (140, 40))


@pytest.mark.slow
def test_a_click_shows_a_secret(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        pane = await opened(pilot, app, 1)
        await press(pilot, app, "]")
        assert pane.search("password")
        tree = pane.shown
        assert isinstance(tree, Leaves)
        await pilot.click(tree, offset=(12, tree.cursor_line))
        await settled(pilot, app)
        assert f"password: {WORD}" in screen_text(app)
        await press(pilot, app, "3")
        assert pane.search("Set-Cookie")
        assert WORD not in screen_text(app)
        assert WORD in await press(pilot, app, "enter")

    play(capture(hiding(), tmp_path), act, (140, 40))


# -- evidence ----------------------------------------------------------------------------------------------


@pytest.mark.slow
@pytest.mark.parametrize("name", ["compile-error", "first-run", "out-of-sync", "mismatched-key", "revoked"])
def test_a_finding_opens_where_its_evidence_is(name: str) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        app.push_screen(ExchangeView([1], 1))
        await settled(pilot, app)
        pane = app.screen.query_one(ExchangePane)
        for run in app.source.runs:
            for finding in run.findings:
                for seq in finding.seqs[:2]:
                    step = app.source.step(seq)
                    assert step
                    pane.show(seq, finding)
                    await settled(pilot, app)
                    place = tabs.locate(finding.places, pane.tabs)
                    assert place
                    assert pane.tab.lower() == place.tab
                    assert finding.rule in screen_text(app)
                    if place.part and place.needle:
                        assert place.needle.lower() in (_line(pane) or "").lower()

    look(shared_sample(name), act, (200, 60))


def _line(pane: ExchangePane) -> str | None:
    shown = pane.shown
    if isinstance(shown, Sheet):
        row = shown.rows.item
        return None if row is None else shown.rows.plain(row)
    if isinstance(shown, Leaves):
        node = shown.cursor_node
        return node.data.text if node and node.data else None
    if isinstance(shown, Bytes):
        # A phrase may go on in the next lines.
        lines = [shown.plain(line) for line in range(shown.at, min(shown.at + 6, len(shown.items)))]
        return " ".join(" ".join(lines).split())
    return None


@pytest.mark.slow
def test_evidence_far_down_is_shown_in_the_middle() -> None:
    facts = {f"fact{number:04}": number for number in range(400)}
    tree, table = item_of("", facts), Table((Field("name", 20),), [(name,) for name in facts])
    text = Content("", "\n".join(facts).encode())

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        pane = await opened(pilot, app, 3)  # no findings take room above it
        for model in (tree, table, text):
            pane._clear()
            pane.tabs = [Tab("Meaning", (TabPart("Facts", lambda model=model: model),))]  # type: ignore[misc]
            pane._wanted = ("Meaning", 0), ("fact0200",)
            pane._open("Meaning")
            await settled(pilot, app)
            lines = screen_text(app).split("\n")
            (at,) = [at for at, line in enumerate(lines) if "fact0200" in line]
            assert 8 <= at <= 16
            assert "fact0195" in "\n".join(lines)
            assert "fact0204" in "\n".join(lines)

    look(shared_sample("compile-error"), act, NARROW)


def test_the_evidence_of_a_compile_error_is_its_text() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        (finding,) = [finding for run in app.source.runs for finding in run.findings if finding.rule == "S01"]
        pane = await opened(pilot, app, finding.seqs[0], finding)
        assert (pane.tab, pane._tab(pane.tab).parts[pane._part[pane.tab]].title) == ("Meaning", "Error")

    look(shared_sample("compile-error"), act, NARROW)


@pytest.mark.slow
def test_a_header_of_two_cells_is_found(tmp_path: Path) -> None:
    (record, *_) = together(Agent(leg="1").catalog())
    assert isinstance(record, Exchange)
    closing = dataclasses.replace(record.request, headers=(*record.request.headers, ("Connection", "close")))
    at = (Place("request", "headers", "Connection  close"),)
    finding = Finding("T13", Severity.NOTICE, "the agent sends 'Connection: close' in its run", (1,), places=at)

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        pane = await opened(pilot, app, 1, finding)
        assert pane.tab == "Request"
        assert pane.copy_value() == "close"

    play(capture([dataclasses.replace(record, request=closing)], tmp_path), act, NARROW)


# -- hostile and large -----------------------------------------------------------------------------------


@pytest.mark.slow
def test_hostile_records_do_nothing_to_the_terminal(tmp_path: Path) -> None:
    evil = "[bold]x[/] \x1b[2J \u202e[@click=app.quit]y[/]"
    (record, *_) = together(Agent(leg="1").catalog())
    assert isinstance(record, Exchange)
    assert record.response
    resource = {"type": evil, "title": evil, "parameters": {evil: [evil, {evil: 1}]}}
    edges = [{"source": evil, "target": evil}]
    body = json.dumps({"name": evil, "resources": [resource], "classes": [evil], "edges": edges}).encode()
    headers = (("Content-Type", "application/json"), (evil, evil))
    made = dataclasses.replace(record, response=dataclasses.replace(record.response, headers=headers, body=body))
    records = [*hostile_records(), made]

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        app.push_screen(ExchangeView(list(range(1, len(records) + 1)), 1))
        await settled(pilot, app)
        pane = app.screen.query_one(ExchangePane)
        for number in range(1, len(records) + 1):
            assert pane.seq == number
            for place, tab in enumerate(pane.tabs):
                await press(
                    pilot, app, str(("Meaning", "Request", "Response", "TLS", "Timing", "Explain").index(tab.name) + 1)
                )
                for _ in tab.parts:
                    lines = screen_text(app).split("\n")
                    assert all(harmless(line) for line in lines), (number, place)
                    await press(pilot, app, "]")
            await press(pilot, app, "greater_than_sign")
        assert "[bold]x[/]" in await press(pilot, app, "3")

    play(capture(records, tmp_path), act, NARROW)


@pytest.mark.slow
def test_a_large_catalog_and_a_large_file_open(tmp_path: Path) -> None:
    (record, *_) = together(Agent(leg="1").catalog())
    assert isinstance(record, Exchange)
    assert record.response
    request = dataclasses.replace(record.request, method="GET", target="/puppet/v3/file_content/modules/a/b", body=b"")
    response = dataclasses.replace(record.response, headers=(), body=b"\x00" * 20 + b"many words in here\n" * 500_000)
    records = [dataclasses.replace(record, response=big_catalog(3_000_000)),
               dataclasses.replace(record, request=request, response=response)]  # fmt: skip

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        app.push_screen(ExchangeView([1, 2], 1))
        await settled(pilot, app)
        pane = app.screen.query_one(ExchangePane)
        assert "1 to 500: File[/etc/app/0.conf]" in screen_text(app)
        assert pane.search("/etc/app/4321.conf")
        assert "File[/etc/app/4321.conf]" in screen_text(app)
        await press(pilot, app, "greater_than_sign", "3", "]")
        assert "00000000  00 00" in screen_text(app)
        await press(pilot, app, "G")
        assert "6e 20 68 65 72 65 0a" in screen_text(app).replace("  ", " ")
        await press(pilot, app, "v")
        assert "many words in here" in await press(pilot, app, "G")

    play(capture(records, tmp_path), act, NARROW)


@pytest.mark.slow
def test_where_tabs_do_not_fit_their_names_stay_whole_and_arrows_lead_to_the_others() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await opened(pilot, app, 4)
        bar = app.screen.query_one("#tabs", Bar)
        assert "[1 Meaning] 2 Request  3 Response  4 TLS  5 Timing  6 Explain" in screen_text(app)
        await pilot.resize_terminal(30, 24)
        await settled(pilot, app)
        assert bar.render().plain == "[1 Meaning] 2 Request  ▸"
        await pilot.press("3")
        await settled(pilot, app)
        assert bar.render().plain == "◂  2 Request [3 Response] ▸"
        await pilot.click(bar, offset=(0, 0))
        await settled(pilot, app)
        assert bar.render().plain.startswith("[1 Meaning]")

    look(shared_sample("compile-error"), act, NARROW)


@pytest.mark.slow
def test_hexadecimal_hides_what_it_is_to_hide_and_finds_the_rest() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await opened(pilot, app, 4)
        shown = Bytes(Content("x", b"0123456789abcdef-secret-0123", hexed=True, hidden=((17, 23),)))
        await app.screen.query_one("#content").mount(shown)
        await settled(pilot, app)
        lines = [shown.plain(line) for line in shown.items]
        assert not any("s" in line or "73" in line for line in lines)
        assert sum(line.count("•") for line in lines) == 6 * 3
        assert not shown.search("secret")
        assert shown.search("-0123")
        assert shown.search("0123", again=True)

    look(shared_sample("compile-error"), act, NARROW)


@pytest.mark.slow
def test_the_meaning_of_a_record_begins_with_all_findings_that_it_shows() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        pane = await opened(pilot, app, 4)
        findings = pane.query_one("#finding")
        assert pane.tab == "Meaning"
        text = screen_text(app)
        assert 0 <= text.index("error S01 no catalog for node1.example") < text.index("error R20 ")
        await press(pilot, app, "2")
        assert not findings.display, "elsewhere they would take room"
        await press(pilot, app, "1")
        assert findings.display
        pane.show(3)
        await settled(pilot, app)
        assert not findings.display, "nothing is wrong with it"

    look(shared_sample("compile-error"), act, NARROW)


@pytest.mark.slow
def test_a_long_finding_is_shown_and_scrolls() -> None:
    finding = Finding("S01", Severity.ERROR, " ".join(f"word{number:03}" for number in range(45)), (4,))

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await opened(pilot, app, 4, finding)
        assert "word044" in screen_text(app)
        app.pop_screen()
        longer = dataclasses.replace(finding, message=finding.message * 3)
        await opened(pilot, app, 4, longer)
        assert app.screen.query_one("#finding").size.height == 8
        assert app.screen.query_one("#finding").max_scroll_y > 0

    look(shared_sample("compile-error"), act, NARROW)


@pytest.mark.slow
def test_x_is_offered_only_where_something_is_hidden(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        pane = await opened(pilot, app, 1)
        await press(pilot, app, "]")
        assert not pane.check_action("reveal", ())
        assert pane.search("password")
        await settled(pilot, app)
        assert pane.check_action("reveal", ())
        assert "Show secret" in screen_text(app)
        await press(pilot, app, "x")
        assert not pane.check_action("reveal", ())
        await press(pilot, app, "2")
        assert not pane.check_action("reveal", ())
        await press(pilot, app, "3", "]")
        assert pane.check_action("reveal", ())
        await press(pilot, app, "x")
        assert not pane.check_action("reveal", ())

    play(capture(hiding(), tmp_path), act, (140, 40))


@pytest.mark.slow
def test_enter_folds_a_branch_and_a_line_that_is_too_long_is_shown_in_full_below() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        pane = await opened(pilot, app, 1)
        tree = pane.shown
        assert isinstance(tree, Leaves)
        node = tree.cursor_node
        assert node
        assert node.is_expanded
        await press(pilot, app, "space")
        assert node.is_expanded
        await press(pilot, app, "enter")
        assert not node.is_expanded
        await press(pilot, app, "enter")
        assert pane.search("fingerprint")
        await settled(pilot, app)
        value = pane.copy_value() or ""
        lower = app.screen.query_one("#full")
        assert lower.display
        message = "".join(screen_text(app).split("\n")[lower.region.y : lower.region.bottom])
        assert value in "".join(message.split())
        assert pane.search("serial")
        await settled(pilot, app)
        assert not lower.display

    look(shared_sample("first-run"), act, NARROW)


@pytest.mark.slow
def test_a_record_is_copied_as_what_is_chosen() -> None:
    wanted = (
        ("SSLDIR=", "curl --globoff"),
        ("{", '"seq": 4'),
        ("### Record 4", "- error S01"),
        ("1. Correct the code", "\n     puppet agent -t --noop\n"),
    )

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await opened(pilot, app, 4)
        for downs, (begins, contains) in enumerate(wanted):
            await pilot.press("Y")
            await pilot.pause()
            assert "Copy record 4 as" in screen_text(app)
            await pilot.press(*["down"] * downs, "enter")
            await pilot.pause()
            assert app.clipboard.startswith(begins)
            assert contains in app.clipboard
        before = app.clipboard
        await pilot.press("Y", "escape")
        await pilot.pause()
        assert app.clipboard == before
        app.pop_screen()
        await opened(pilot, app, 1)
        await pilot.press("Y", "down", "down", "down", "enter")
        await pilot.pause()
        assert "Nothing is wrong with this record." in screen_text(app)
        assert app.clipboard == before

    look(shared_sample("compile-error"), act)

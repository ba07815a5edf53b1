"""A run in time: entries, pieces, the axis; and how waterfall and sequence draw them."""

from __future__ import annotations

import asyncio
import math
import random
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from textual.app import App
from textual.events import MouseScrollDown, MouseScrollUp

from inspector.explain.master_log.measured import MasterTime, MasterTimes
from inspector.explain.timeline import (
    SILENCES,
    Axis,
    Entry,
    HandshakeLine,
    ResponseArrow,
    arranged,
    entries,
    folds,
    opening,
    pieces,
)
from inspector.model import Phase, Severity
from inspector.summaries.source import Source
from inspector.summaries.summary import Brief, RunBrief, Sign, Times
from inspector.text import clean
from inspector.tui.ascii import TABLE
from inspector.tui.sequence import Sequence
from inspector.tui.waterfall import LEGEND, MASTER_LEGEND, WORK, Waterfall
from tests.tui.screens import SIZES, sample

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from textual.app import ComposeResult
    from textual.pilot import Pilot

    from inspector.explain.timeline import Work
    from inspector.tui.rows import Rows
    from inspector.tui.timed import Timed

    type Kind = Callable[..., Waterfall | Sequence]

NAMES = ["first-run", "bootstrap-waiting", "out-of-sync", "mismatched-key", "revoked", "compile-error"]
HOSTILE = "[bold]x[/] \x1b[2J \u202e"


def of(name: str, folder: Path, number: int = 1) -> tuple[RunBrief, list[Brief]]:
    """A run of a sample."""
    with Source(sample(name, folder)) as source:
        run = source.run(number)
        assert run is not None
        return run, source.briefs(number)


def exchange(seq: int, at: float, took: float = 0.02, **fields: Any) -> Brief:
    """A plain exchange of an agent with its certificate."""
    given: dict[str, Any] = {
        "seq": seq, "kind": "exchange", "time": at, "ended": at + took, "phase": Phase.FILES, "method": "GET",
        "target": f"/puppet/v3/file_metadata/modules/demo/{seq}", "status": 200, "authenticated": True,
        "leg": "a", "master": "m", "times": Times(request_began=at, response_ended=at + took),
    }  # fmt: skip
    return Brief(**(given | fields))


def run_of(briefs: list[Brief]) -> RunBrief:
    """The run that these records are."""
    return RunBrief(
        number=1, certname="node1.example", started=briefs[0].time, ended=max(brief.ended for brief in briefs)
    )


def plugin(seq: int, at: float, took: float = 0.02, **fields: Any) -> Brief:
    """The download of a plugin."""
    return exchange(seq, at, took, endpoint="plugin_file", phase=Phase.PLUGINS, **fields)


# -- what is folded -------------------------------------------------------------------------------------------


def folded(*briefs: Brief) -> list[tuple[str, list[int], float]]:
    """The words, records and seconds of each fold of a run."""
    found = folds(entries(run_of([*briefs]), briefs))
    return [(fold.text, [brief.seq for brief in fold.briefs], round(fold.took, 3)) for fold in found]


def test_many_plugins_in_a_row_are_one_line_with_their_number_and_time() -> None:
    listing = exchange(1, 0.0)
    plugins = [plugin(seq, seq * 0.1) for seq in range(2, 42)]
    after = exchange(42, 5.0)
    assert folded(listing, *plugins, after) == [("40 plugins", [*range(2, 42)], 0.8)]
    assert folded(listing, *plugins[:19], after) == []


def test_what_failed_and_what_took_long_is_not_hidden_in_a_fold() -> None:
    plugins = [plugin(seq, seq * 0.1) for seq in range(1, 61)]
    plugins[30] = plugin(31, 3.1, status=404)
    assert [seqs for _, seqs, _ in folded(*plugins)] == [[*range(1, 31)], [*range(32, 61)]]
    plugins[30] = plugin(31, 3.1, signs=(Sign("F02", Severity.ERROR),))
    assert [seqs for _, seqs, _ in folded(*plugins)] == [[*range(1, 31)], [*range(32, 61)]]
    plugins[30] = plugin(31, 3.1, signs=(Sign("F02", Severity.NOTICE),))
    assert [seqs for _, seqs, _ in folded(*plugins)] == [[*range(1, 61)]]
    plugins[59] = plugin(60, 6.0, 12.5)
    assert [text for text, _, _ in folded(*plugins)] == ["60 plugins, the slowest 12.5 s"]
    later = [plugin(100 + seq, 30.0 + seq) for seq in range(30)]  # a second of silence each, and twelve before them
    assert [len(seqs) for _, seqs, _ in folded(*plugins, *later)] == [60, 30]


def test_silences_are_in_a_fold_only_between_its_records() -> None:
    briefs = [*(plugin(seq, float(seq)) for seq in range(1, 31)), exchange(31, 31.0)]
    (fold,) = folds(entries(run_of(briefs), briefs))
    assert [entry.kind for entry in fold.inside] == ["record", *["silence", "record"] * 29]
    (fold,) = folds(arranged(entries(run_of(briefs), briefs)))
    assert len(fold.briefs) == 30
    assert fold.inside[-1].seq == 30


# -- entries --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_all_records_are_there_in_the_order_in_which_they_began(name: str, tmp_path: Path) -> None:
    run, briefs = of(name, tmp_path)
    output = entries(run, reversed(briefs))
    assert [entry.seq for entry in output if entry.kind == "record"] == [brief.seq for brief in briefs]
    assert [entry.began for entry in output] == sorted(entry.began for entry in output)
    assert all(entry.ended >= entry.began for entry in output)


@pytest.mark.parametrize("name", [name for name in NAMES if name != "revoked"])
def test_silences_are_what_the_run_counts_as_waits(name: str, tmp_path: Path) -> None:
    run, briefs = of(name, tmp_path)
    found: dict[str, float] = {}
    words: dict[str, str] = {text: what for what, text in SILENCES.items()}
    words[SILENCES["request"]] = "certificate"
    for entry in entries(run, briefs):
        if entry.kind == "silence":
            found[words[entry.text]] = found.get(words[entry.text], 0.0) + entry.ended - entry.began
    assert found == pytest.approx(run.waits)


def test_an_agent_whose_handshake_failed_does_not_wait_for_its_certificate(tmp_path: Path) -> None:
    output = entries(*of("revoked", tmp_path))
    assert [entry.text for entry in output if entry.kind == "silence"] == [SILENCES["other"]]


def certificates(endpoint: str, seq: int, **fields: Any) -> Brief:
    """An exchange before an agent has its certificate; one begins every two seconds."""
    return exchange(seq, seq * 2.0, phase=Phase.CERTIFICATES, endpoint=endpoint, **fields)


def silences(*briefs: Brief) -> list[str]:
    """The words for the silent times between records."""
    return [entry.text for entry in entries(run_of([*briefs]), briefs) if entry.kind == "silence"]


def test_nobody_waits_for_a_certificate_that_it_has_not_asked_for() -> None:
    ca, crl = certificates("ca", 1), certificates("crl", 2)
    asks, polls = certificates("certificate_request", 3, method="PUT"), certificates("certificate", 4, status=404)
    assert silences(ca, crl) == [SILENCES["other"]]
    assert silences(crl, asks) == [SILENCES["request"]]
    assert silences(asks, polls) == [SILENCES["certificate"]]
    looks = certificates("certificate_request_lookup", 3, status=404)
    assert silences(crl, looks, polls) == [SILENCES["request"], SILENCES["other"]]
    looks.status = 200  # sent before this run
    assert silences(crl, looks, polls) == [SILENCES["request"], SILENCES["certificate"]]
    assert silences(polls, certificates("certificate", 5)) == [SILENCES["certificate"]]


def test_a_first_run_makes_its_key(tmp_path: Path) -> None:
    output = entries(*of("first-run", tmp_path))
    at = next(at for at, entry in enumerate(output) if entry.brief and entry.brief.endpoint == "certificate_request")
    assert output[at - 1].text == "generates its key and its request"


def test_each_phase_is_noted_where_it_begins(tmp_path: Path) -> None:
    output = entries(*of("first-run", tmp_path))
    phases = [(output[at + 1].seq, entry.text) for at, entry in enumerate(output) if entry.kind == "phase"]
    assert phases == [(1, "certificates"), (5, "node"), (6, "plugins"), (11, "catalog"), (12, "files"), (22, "report")]


def test_a_handshake_that_fails_in_the_midst_of_a_run_begins_no_phase() -> None:
    failed = exchange(2, 1.1, kind="handshake", phase=Phase.CERTIFICATES)
    output = entries(RunBrief(number=1), [exchange(1, 1.0), failed, exchange(3, 1.2)])
    assert [entry.text for entry in output if entry.kind == "phase"] == ["files"]


def test_without_a_catalog_nothing_is_applied() -> None:
    briefs = [
        exchange(1, 1.0, phase=Phase.CATALOG, endpoint="catalog", status=500),
        exchange(2, 2.0, phase=Phase.REPORT, endpoint="report"),
    ]
    assert [entry.text for entry in entries(run_of(briefs), briefs) if entry.kind == "silence"] == [SILENCES["other"]]
    briefs[0].status = 200
    assert [entry.text for entry in entries(run_of(briefs), briefs) if entry.kind == "silence"] == [
        SILENCES["applying"]
    ]


# -- pieces ---------------------------------------------------------------------------------------------------

NEW = Times(0.0, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.8, 1.0)


def test_a_first_exchange_shows_connect_and_tls_and_what_is_the_proxys() -> None:
    brief = exchange(1, 0.15, times=NEW, ended=1.0)
    output = [
        (piece.kind, piece.began, piece.ended) for piece in pieces(brief, opens_agent_leg=True, opens_master_leg=True)
    ]
    assert output == [
        ("tls", 0.0, 0.1),
        ("sending", 0.15, 0.2),
        ("proxy", 0.2, 0.3),
        ("connect", 0.3, 0.4),
        ("tls", 0.4, 0.5),
        ("waiting", 0.5, 0.8),
        ("receiving", 0.8, 1.0),
    ]


def test_a_later_exchange_shows_neither() -> None:
    brief = exchange(2, 2.0, times=Times(0.0, 0.1, 2.0, 2.1, 0.3, 0.4, 0.5, 2.8, 3.0), ended=3.0)
    assert [piece.kind for piece in pieces(brief, opens_agent_leg=False, opens_master_leg=False)] == [
        "sending",
        "waiting",
        "receiving",
    ]


def test_until_the_master_could_have_it_the_time_is_the_proxys() -> None:
    output = pieces(exchange(1, 0.15, times=NEW, ended=1.0), opens_agent_leg=False, opens_master_leg=False)
    assert [(piece.kind, piece.began, piece.ended) for piece in output][1] == ("proxy", 0.2, 0.5)


def test_a_master_that_was_never_reached_was_not_waited_for() -> None:
    brief = exchange(1, 1.0, master=None, status=None, times=Times(request_began=1.0, request_ended=1.1), ended=2.0)
    assert [piece.kind for piece in pieces(brief, opens_agent_leg=True, opens_master_leg=True)] == ["sending", "proxy"]
    brief.times = Times(request_began=1.0, request_ended=1.1, master_connecting=1.2)
    assert [piece.kind for piece in pieces(brief, opens_agent_leg=True, opens_master_leg=True)] == [
        "sending",
        "proxy",
        "connect",
    ]


def test_whatever_the_times_are_pieces_are_in_order_and_not_negative() -> None:
    moments = [None, -5.0, 0.0, 1.0, 1.0, 2.0, 3.0, 1e12, math.inf, -math.inf, math.nan]
    dice = random.Random(5)  # noqa: S311 - any will do
    for _ in range(3000):
        times = Times(*(dice.choice(moments) for _ in range(9)))
        brief = exchange(1, dice.choice([0.0, 1.0, math.inf]), times=times, ended=dice.choice([0.0, 2.0, math.nan]))
        brief.kind = dice.choice(["exchange", "handshake", "gap"])
        brief.status = dice.choice([None, 200])
        output = pieces(brief, opens_agent_leg=dice.random() < 0.5, opens_master_leg=dice.random() < 0.5)
        ends = [moment for piece in output for moment in (piece.began, piece.ended)]
        assert ends == sorted(ends)
        assert all(piece.ended > piece.began for piece in output)


def test_only_the_first_exchange_on_a_connection_opens_it(tmp_path: Path) -> None:
    opens = opening(entries(*of("first-run", tmp_path)))
    assert [seq for seq, (agent, _) in opens.items() if agent] == [1, 2, 3, 5]
    assert [seq for seq, (_, master) in opens.items() if master] == [1, 2, 3, 5]


def test_a_connection_that_another_run_opened_is_not_opened_here() -> None:
    brief = exchange(1, 1000.0, times=Times(agent_connected=1.0, request_began=1000.0))
    assert opening(entries(run_of([brief]), [brief]))[1][0] is False


# -- the axis -------------------------------------------------------------------------------------------------


def test_the_axis_is_linear_where_silence_is_short() -> None:
    axis = Axis.of([(0.0, 4.0), (5.0, 10.0)])
    assert [axis.place(at) for at in (-1, 0, 2.5, 5, 10, 11)] == pytest.approx([0, 0, 0.25, 0.5, 1, 1])
    assert axis.shortened == []


def test_long_silences_are_shortened_and_marked() -> None:
    axis = Axis.of([(0.0, 1.0), (1000.0, 1001.0), (1002.0, 1003.0)])
    assert axis.place(1.0) > 0.2
    assert axis.short(1.0, 1000.0)
    assert axis.place(1000.0) - axis.place(1.0) < 0.4
    assert axis.moment(axis.place(1000.5)) == pytest.approx(1000.5)


def test_an_axis_of_nothing_has_one_place() -> None:
    assert Axis.of([]).place(5.0) == 0.0
    assert Axis.of([(3.0, 3.0)]).place(5.0) == 0.0


# -- the lists ------------------------------------------------------------------------------------------------


class Shown(App[None]):
    """One list of entries, and what it posted."""

    def __init__(self, kind: Kind, run: RunBrief, briefs: list[Brief]) -> None:
        super().__init__()
        self.rows: Timed = kind(id="rows")
        self.given = run, briefs
        self.posted: list[tuple[str, Entry]] = []

    def compose(self) -> ComposeResult:
        yield self.rows

    def on_mount(self) -> None:
        self.rows.load(*self.given)
        self.rows.focus()

    def on_rows_moved(self, event: Rows.Moved[Entry]) -> None:
        self.posted.append(("moved", event.item))

    def on_rows_chosen(self, event: Rows.Chosen[Entry]) -> None:
        self.posted.append(("chosen", event.item))

    def text(self) -> str:
        """What is drawn."""
        lines = self.screen._compositor.render_strips()
        return "\n".join("".join(segment.text for segment in strip).rstrip() for strip in lines)


type Act = Callable[[Pilot[None], Shown], Awaitable[None]]


def show(kind: Kind, run: RunBrief, briefs: list[Brief], act: Act, size: tuple[int, int] = (80, 24)) -> None:
    """Show a run in a list and do something with it."""

    async def go() -> None:
        app = Shown(kind, run, briefs)
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await act(pilot, app)

    asyncio.run(go())


def drawn(kind: Kind, run: RunBrief, briefs: list[Brief], size: tuple[int, int] = (80, 24)) -> str:
    """What a list draws of a run."""
    output: list[str] = []

    async def act(pilot: Pilot[None], app: Shown) -> None:
        output.append(app.text())

    show(kind, run, briefs, act, size)
    return output[0]


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("kind", [Waterfall, Sequence])
@pytest.mark.parametrize("name", NAMES)
def test_every_sample_is_drawn(name: str, kind: Kind, size: tuple[int, int], tmp_path: Path) -> None:
    run, briefs = of(name, tmp_path)
    text = drawn(kind, run, briefs, size)
    assert all(len(line) <= size[0] for line in text.splitlines())
    assert str(briefs[0].phase) in text


def test_the_waterfall_says_what_came_of_each_and_draws_it_in_time(tmp_path: Path) -> None:
    lines = drawn(Waterfall, *of("compile-error", tmp_path)).splitlines()
    assert "-0" not in lines[0]
    assert lines[0].index("0.00 s") == lines[0].index("time ") + 5  # nothing is drawn before that
    assert "0.70 s" in lines[0]
    catalog = next(line for line in lines if "catalog/~" in line)
    assert "500" in catalog
    assert "E S01" in catalog
    assert "▆▆" in catalog
    first = next(line for line in lines if "file_met" in line)
    assert "┼" in first
    assert first.index("┼") < catalog.index("▆")
    assert any("gathers facts" in line and ".." in line for line in lines)


def test_the_axis_begins_with_the_first_connection() -> None:
    times = Times(agent_connected=0.0, agent_secured=8.0, request_began=10.0, response_ended=10.2)
    briefs = [exchange(1, 10.0, 0.2, times=times)]
    lines = drawn(Waterfall, run_of(briefs), briefs).splitlines()
    zero = lines[0].index("0.00 s")
    assert zero == lines[0].index("time") + 5
    assert "10.20 s" in lines[0]
    assert lines[2].index("┼") == zero


def test_the_parts_of_a_records_time_add_up() -> None:
    times = Times(
        agent_connected=9.9, agent_secured=9.95, request_began=10.0, request_ended=10.01, master_connecting=10.01,
        master_connected=10.03, master_secured=10.06, response_began=10.16, response_ended=10.2,
    )  # fmt: skip
    briefs = [exchange(1, 10.0, 0.2, times=times)]
    spent: list[str] = []

    async def act(pilot: Pilot[None], app: Shown) -> None:
        app.rows.go(1)
        spent.append(app.rows.spent())

    show(Waterfall, run_of(briefs), briefs, act)
    assert spent == [
        "TLS with the agent 50 ms, then 200 ms = connect 20 + TLS 30 + request 10 + waiting 100 + answer 40"
    ]


def test_a_masters_logs_say_what_waiting_was() -> None:
    times = Times(request_began=10.0, request_ended=10.0, response_began=13.0, response_ended=13.0)
    briefs = [exchange(1, 10.0, 3.0, times=times), exchange(2, 13.5)]
    known = MasterTimes({1: MasterTime(2.8, 1.8, 1.5)})
    (parts,) = [pieces(briefs[0], opens_agent_leg=False, opens_master_leg=False, master=known.get(1))]
    assert [(piece.kind, round(piece.ended - piece.began, 9)) for piece in parts] == [
        ("network", 0.1), ("queue", 1.0), ("serve", 0.3), ("compile", 1.5), ("network", 0.1),
    ]  # fmt: skip
    assert parts[0].began == 10.0
    assert parts[-1].ended == 13.0

    async def act(pilot: Pilot[None], app: Shown) -> None:
        assert isinstance(app.rows, Waterfall)
        await pilot.press("home")
        await pilot.press("down")  # below the heading of the phase
        assert app.rows.spent() == "3.00 s = network 0.20 + queue 1.00 + serve 0.30 + compile 1.50"
        lines = app.text().splitlines()
        first = next(line for line in lines if "demo/1" in line)
        assert first.index("▒") < first.index("▪") < first.index("█")
        assert MASTER_LEGEND.plain[:60] in lines[-1]

    show(partial(Waterfall, times=known), run_of(briefs), briefs, act, size=(160, 20))


def test_the_last_line_says_what_the_glyphs_mean_if_there_is_room() -> None:
    briefs = [exchange(seq, float(seq)) for seq in range(1, 23)]
    whole = run_of(briefs)
    assert drawn(Waterfall, whole, briefs[:3]).splitlines()[-1] == LEGEND.plain
    assert "connect" not in drawn(Waterfall, whole, briefs)
    assert "connect" not in drawn(Sequence, whole, briefs[:3])


@pytest.mark.parametrize("kind", [Waterfall, Sequence])
def test_marked_records_have_a_star(kind: Kind) -> None:
    class Marks:
        def marked(self, seq: int) -> bool:
            return seq == 2

    briefs = [exchange(1, 0.0), exchange(2, 0.5)]

    async def act(pilot: Pilot[None], app: Shown) -> None:
        assert "*" not in app.text()
        app.marks = Marks()  # type: ignore[attr-defined]
        app.rows.refresh()
        await pilot.pause()
        starred = [line.split()[0] for line in app.text().splitlines() if "*" in line]
        assert starred == ["*2"]

    show(kind, run_of(briefs), briefs, act)


def test_of_a_filtered_run_only_the_lines_are_fewer(tmp_path: Path) -> None:
    run, briefs = of("first-run", tmp_path)
    few = [brief for brief in briefs if brief.endpoint == "file_content"]

    async def act(pilot: Pilot[None], app: Shown) -> None:
        whole = app.text().splitlines()
        app.rows.load(run, few, briefs)
        await pilot.pause()
        lines = app.text().splitlines()
        assert [item.text for item in app.rows.items if item.kind != "record"] == ["files"]
        assert [item.seq for item in app.rows.items if item.kind == "record"] == [brief.seq for brief in few]
        assert lines[0] == whole[0]
        assert all(line in whole for line in lines[2 : 2 + len(few)])
        assert not any("┼" in line for line in lines[1 : 2 + len(few)])  # they opened no connection
        app.rows.load(run, briefs, briefs)
        await pilot.pause()
        assert app.text().splitlines() == whole

    show(Waterfall, run, briefs, act, (160, 60))


def test_shortened_silences_are_marked(tmp_path: Path) -> None:
    text = drawn(Waterfall, *of("bootstrap-waiting", tmp_path))
    assert any("waits for" in line and "2.0 s" in line and "≈" in line for line in text.splitlines())


def test_what_was_not_verified_and_what_was_anonymous_is_shown(tmp_path: Path) -> None:
    run, briefs = of("first-run", tmp_path)
    waterfall = drawn(Waterfall, run, briefs, (200, 60)).splitlines()
    assert [line.split()[0] for line in waterfall if "unverified" in line] == ["1"]
    assert [line.split()[0] for line in waterfall if "no certif" in line] == ["1", "2", "3", "4"]
    sequence = drawn(Sequence, run, briefs).splitlines()
    assert [line.split()[0] for line in sequence if "unverified" in line] == ["1"]
    assert [line.split()[0] for line in sequence if "anonymous" in line] == ["1", "2", "3", "4"]


def test_the_sequence_has_lanes_with_arrows_there_and_back(tmp_path: Path) -> None:
    lines = drawn(Sequence, *of("compile-error", tmp_path)).splitlines()
    agent, proxy, master = (lines[0].index(name) for name in ("agent", "proxy", "master"))
    at = next(at for at, line in enumerate(lines) if "POST catalog/~" in line)
    asked, answered = lines[at], lines[at + 1]
    assert asked[agent] == asked[proxy + 2] == asked[master + 5] == "│"
    assert asked[proxy + 1] == asked[master + 4] == "▶"
    assert answered[agent + 1] == answered[proxy + 3] == "◀"
    assert "500" in answered[:proxy]
    assert "E S01" in answered
    assert "── catalog ──" in lines[at - 1]
    assert "gathers facts, 92 ms" in lines[at - 2]


def test_a_failed_handshake_is_an_arrow_that_breaks(tmp_path: Path) -> None:
    run, briefs = of("revoked", tmp_path)
    line = next(line for line in drawn(Sequence, run, briefs).splitlines() if "TLS" in line)
    assert "─ TLS ✗◀ certificate_revoked" in line
    assert "from the proxy" in line
    wide = next(line for line in drawn(Sequence, run, briefs, (200, 60)).splitlines() if "TLS" in line)
    assert "alert certificate_revoked" in wide
    assert "Certificate 'CN=node2" in wide


def test_alerts_go_the_way_they_went() -> None:
    def handshake(**fields: Any) -> str:
        given: dict[str, Any] = {"kind": "handshake", "method": "", "status": None, "alert": "unknown_ca"}
        brief = exchange(1, 1.0, **(given | fields))
        lines = drawn(Sequence, run_of([brief]), [brief]).splitlines()
        return next(line for line in lines if "TLS" in line)

    by_agent = handshake(alert_by="agent", times=Times(agent_connected=0.9))
    assert "TLS ✗─ alert unknown_ca" in by_agent
    assert "▶│ from the agent" in by_agent
    by_master = handshake(alert_by="master", times=Times(master_connected=0.9))
    assert by_master.index("alert") < by_master.index("unknown_ca") < by_master.index("─ TLS ─✗")
    silent = handshake(alert=None, reason="the agent hung up", times=Times(agent_connected=0.9))
    assert "the agent hung up" in silent
    assert "no alert recor" in silent


def test_no_answer_and_a_master_not_reached_are_shown() -> None:
    brief = exchange(1, 1.0, status=None, master=None, reason="timed out")
    lines = drawn(Sequence, run_of([brief]), [brief]).splitlines()
    assert "✗ not reached" in next(line for line in lines if "GET" in line)
    assert "no answer: timed out" in next(line for line in lines if "◀" in line)
    assert "none" in drawn(Waterfall, run_of([brief]), [brief])


@pytest.mark.parametrize("kind", [Waterfall, Sequence])
def test_hostile_text_is_drawn_as_text(kind: Kind) -> None:
    briefs = [
        exchange(1, 1.0, target=f"/{HOSTILE}", method="G\x1b"),
        exchange(2, 1.1, kind="handshake", reason=HOSTILE, alert="\x1b[2J", alert_by="agent"),
        exchange(3, 1.2, status=None, reason=HOSTILE, identity_missing=HOSTILE, stripped=(HOSTILE,)),
        exchange(4, math.inf, kind="gap", reason=HOSTILE),
    ]
    text = drawn(kind, run_of(briefs[:3]), briefs, (200, 60))
    assert clean(text.replace("\n", "")) == text.replace("\n", "")
    assert "[bold]x[/]" in text


@pytest.mark.parametrize("kind", [Waterfall, Sequence])
def test_until_a_moment_only_what_had_begun_is_shown(kind: Kind, tmp_path: Path) -> None:
    run, briefs = of("compile-error", tmp_path)
    catalog = next(brief for brief in briefs if brief.endpoint == "catalog")

    async def act(pilot: Pilot[None], app: Shown) -> None:
        app.rows.until = catalog.time + 0.01
        await pilot.pause()
        text = app.text()
        assert "catalog/~" in text
        assert "500" not in text  # its answer had not come
        assert "S01" not in text
        assert "report" not in text
        app.rows.until = catalog.ended
        await pilot.pause()
        assert "500" in app.text()
        app.rows.until = catalog.time - 0.001
        await pilot.pause()
        assert "gathers facts" in app.text()
        assert "92 ms" not in app.text()  # it was not over
        app.rows.until = run.started - 1
        await pilot.pause()
        assert app.rows.items == []
        app.rows.until = None
        await pilot.pause()
        assert "report/~" in app.text()

    show(kind, run, briefs, act)


def test_bars_grow_with_the_moment() -> None:
    briefs = [exchange(1, 0.0, 10.0, times=Times(request_began=0.0, request_ended=0.0, response_began=10.0))]

    async def act(pilot: Pilot[None], app: Shown) -> None:
        long = []
        for app.rows.until in (2.0, 5.0, None):
            await pilot.pause()
            long.append(app.text().removesuffix(LEGEND.plain).count("▆"))
        assert long[0] < long[1] < long[2]
        assert long[0] == pytest.approx(long[2] / 5, abs=1)

    show(Waterfall, run_of(briefs), briefs, act)


def test_of_pieces_that_share_a_cell_the_longest_is_shown() -> None:
    times = Times(request_began=0.0, request_ended=0.001, response_began=0.099, response_ended=0.1)
    briefs = [exchange(1, 0.0, 0.1, times=times), exchange(2, 20.0, 20.0)]
    line = next(line for line in drawn(Waterfall, run_of(briefs), briefs).splitlines() if "100 ms" in line)
    assert "▆" in line
    assert "▸" not in line
    assert "◂" not in line


def test_an_answer_stands_below_its_request_and_above_what_came_after_it() -> None:
    briefs = [exchange(1, 0.0, 0.0), exchange(2, 0.0, 1.0), exchange(3, 0.5, 1.0)]
    lines = drawn(Sequence, run_of(briefs), briefs).splitlines()[2:8]
    assert [("▶" in line, "◀" in line) for line in lines] == [
        (True, False), (False, True), (True, False), (True, False), (False, True), (False, True),
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Waterfall, Sequence])
def test_the_cursor_tells_of_entries(kind: Kind, tmp_path: Path) -> None:
    run, briefs = of("first-run", tmp_path)

    async def act(pilot: Pilot[None], app: Shown) -> None:
        assert app.rows.at == 0
        app.posted.clear()
        await pilot.press("down", "enter")
        assert [(what, entry.seq) for what, entry in app.posted] == [("moved", 1), ("chosen", 1)]
        assert app.rows.go(11)
        assert app.rows.item is not None
        assert app.rows.item.text == "POST catalog/~"
        await pilot.click(app.rows, offset=(60, 0))  # a title: there is nothing to sort by
        assert app.rows.items[0].kind == "phase"
        await pilot.click(app.rows, offset=(10, 3))
        await pilot.pause()
        assert app.posted[-1][0] == "moved"

    show(kind, run, briefs, act)


def test_a_live_run_that_grows_takes_the_cursor_along_if_it_was_at_the_end() -> None:
    briefs = [exchange(seq, float(seq)) for seq in range(1, 4)]

    async def act(pilot: Pilot[None], app: Shown) -> None:
        app.rows.load(run_of(briefs), briefs)
        assert app.rows.item is not None
        assert app.rows.item.kind == "phase"
        app.rows.action_to(-1)
        app.rows.load(run_of(briefs), [*briefs, exchange(4, 4.0)])
        assert app.rows.item.seq == 4

    show(Waterfall, run_of(briefs), briefs[:2], act)


def test_the_time_axis_is_zoomed_around_the_cursor(tmp_path: Path) -> None:
    run, briefs = of("first-run", tmp_path)

    async def act(pilot: Pilot[None], app: Shown) -> None:
        def wide() -> int:
            catalog = next(line for line in app.text().splitlines() if "catalog/~" in line)
            return catalog.count("▆")

        app.rows.go(11)
        await pilot.pause()
        before, title = wide(), app.text().splitlines()[0]
        await pilot.press("greater_than_sign")
        assert wide() > before
        assert app.text().splitlines()[0] != title
        await pilot.press("less_than_sign")
        assert wide() == before
        # widget, x and y, what it moved by, button, shift, meta, ctrl
        app.rows.post_message(MouseScrollUp(app.rows, 9, 9, 0, 0, 0, False, False, True))
        await pilot.pause()
        assert wide() > before
        app.rows.post_message(MouseScrollDown(app.rows, 9, 9, 0, 0, 0, False, False, True))
        await pilot.pause()
        assert wide() == before
        await pilot.press("greater_than_sign", "greater_than_sign", "0")
        assert wide() == before
        assert app.text().splitlines()[0] == title

    show(Waterfall, run, briefs, act)


def test_all_that_is_drawn_has_a_likeness_in_ascii_of_its_own() -> None:
    plain = [glyph.translate(TABLE) for glyph, _, _ in WORK.values()]
    assert len({*plain}) == len(plain)
    assert "?" not in LEGEND.plain.translate(TABLE)
    kinds: list[Work] = ["connect", "tls", "sending", "waiting", "receiving", "proxy"]
    assert all(WORK[kind][0] in LEGEND.plain for kind in kinds)


@pytest.mark.slow
@pytest.mark.parametrize("kind", [Waterfall, Sequence])
def test_of_ten_thousand_records_only_what_is_on_the_screen_is_drawn(kind: Kind) -> None:
    briefs = [exchange(seq, seq * 0.03) for seq in range(1, 10_001)]

    async def act(pilot: Pilot[None], app: Shown) -> None:
        asked: list[Entry] = []
        rows = app.rows
        original = rows.over
        rows.over = lambda entry: asked.append(entry) or original(entry)  # type: ignore[method-assign, func-returns-value]
        rows.action_to(-1)
        await pilot.pause()
        assert "10000" in app.text()
        assert len({id(entry) for entry in asked}) < 100

    show(kind, run_of(briefs), briefs, act)


def test_an_answer_follows_its_request_and_a_handshake_precedes_it(tmp_path: Path) -> None:
    found = [line for line in arranged(entries(*of("mismatched-key", tmp_path))) if line.kind == "record"]
    assert [(type(line), line.seq) for line in found] == [
        (HandshakeLine, 1), (Entry, 1), (ResponseArrow, 1), (HandshakeLine, 2) if len(found) == 6 else (Entry, 2),
        *([(Entry, 2)] if len(found) == 6 else []), (ResponseArrow, 2),
    ]  # fmt: skip
    assert len({line.key for line in found}) == len(found)


def test_lines_of_a_diagram_are_in_the_order_of_time(tmp_path: Path) -> None:
    found = arranged(entries(*of("first-run", tmp_path)))
    assert [line.began for line in found] == sorted(line.began for line in found)
    assert sum(isinstance(line, ResponseArrow) for line in found) == 22

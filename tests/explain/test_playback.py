"""A run that is played, and the line that says where it stands."""

from __future__ import annotations

import asyncio
import datetime
from typing import TYPE_CHECKING

import pytest
from textual.app import App

from inspector.errors import InspectorError
from inspector.explain.playback import SPEEDS, Player
from inspector.explain.timeline import entries
from inspector.model import Phase, Severity
from inspector.pages import palette
from inspector.summaries.summary import Brief, RunBrief, Sign
from inspector.tui.playback import Knowledge, Transport

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from textual.app import ComposeResult
    from textual.pilot import Pilot

    from inspector.explain.timeline import Entry

START = datetime.datetime(2026, 3, 4, 12, 0, 0, 500_000).astimezone().timestamp()


def record(seq: int, at: float, phase: Phase, *, rule: str = "") -> Brief:
    """A record of half a second that begins so many seconds after the start."""
    return Brief(
        seq=seq, kind="exchange", time=START + at, ended=START + at + 0.5, phase=phase, method="GET", status=200,
        signs=(Sign(rule, Severity.ERROR),) if rule else (),
    )  # fmt: skip


BRIEFS = [
    record(1, 0.0, Phase.PLUGINS),
    record(2, 2.0, Phase.PLUGINS),
    record(3, 4.0, Phase.CATALOG, rule="S01"),
    record(4, 64.5, Phase.REPORT),
]
"""With a silence of 60 seconds before the report."""


def made(briefs: list[Brief] = BRIEFS) -> list[Entry]:
    """Their entries."""
    return entries(RunBrief(number=1, started=START), briefs)


def stands(player: Player) -> float:
    """Seconds from the run's start."""
    return round(player.at - player.start, 3)


def test_it_plays_at_the_speed_that_is_set_and_pauses() -> None:
    player = Player(made())
    player.tick(1)
    assert stands(player) == 0
    player.toggle()
    player.tick(1)
    assert stands(player) == 1
    player.faster()
    player.tick(1)
    assert (player.speed, stands(player)) == (2.0, 3.0)
    player.toggle()
    player.tick(1)
    assert stands(player) == 3


def test_speeds_go_from_a_tenth_to_a_hundred() -> None:
    player = Player(made())
    for _ in range(20):
        player.slower()
    slow = [player.speed]
    for _ in range(20):
        player.faster()
        slow.append(player.speed)
    assert tuple(dict.fromkeys(slow)) == SPEEDS == (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100)


def test_a_long_silence_goes_by_in_a_second_unless_it_is_not_to_be_skipped() -> None:
    player = Player(made())
    player.to(START + 4.5)
    player.toggle()
    assert player.skipping
    player.tick(0.5)
    assert stands(player) == 34.5
    player.tick(0.6)
    assert stands(player) == pytest.approx(64.6)
    assert not player.skipping
    player.to(START + 4.0)
    player.tick(1.0)  # half a second of the answer, half a second of the silence
    assert stands(player) == pytest.approx(34.5)
    player.skip = False
    player.to(START + 4.5)
    player.tick(0.5)
    assert stands(player) == 5.0
    assert not player.skipping


def test_short_silences_are_played_as_they_were() -> None:
    player = Player(made())
    player.toggle()
    player.tick(1.5)
    assert stands(player) == 1.5
    assert not player.skipping


def test_it_stops_at_the_end_and_begins_anew() -> None:
    player = Player(made())
    player.to(START + 64.9)
    player.toggle()
    player.tick(5)
    assert player.at_end
    assert not player.playing
    assert stands(player) == 65
    player.toggle()
    assert player.playing
    assert stands(player) == 0


def test_it_steps_from_exchange_to_exchange() -> None:
    player = Player(made())
    player.toggle()
    places = []
    while player.next_exchange():
        places.append(stands(player))
    assert places == [2.0, 4.0, 64.5]
    assert player.at_end
    assert not player.playing
    assert player.previous_exchange()
    assert stands(player) == 64.5
    player.to(START + 2.1)
    assert player.previous_exchange()
    assert stands(player) == 2.0
    player.begin()
    assert not player.previous_exchange()
    assert stands(player) == 0


def test_it_steps_to_phases_and_findings() -> None:
    player = Player(made())
    assert player.phase is Phase.PLUGINS
    assert player.next_phase()
    assert (stands(player), player.phase) == (4.0, Phase.CATALOG)
    assert player.next_finding()
    assert stands(player) == 4.5  # it is proved once the answer is there
    assert not player.next_finding()
    assert stands(player) == 4.5
    assert player.next_phase()
    assert stands(player) == 64.5
    assert not player.next_phase()
    assert player.at_end


def test_a_time_that_was_typed_is_jumped_to() -> None:
    rows: list[tuple[str, float]] = [
        ("12.5", 12.5),
        (" 12.5 s ", 12.5),
        ("0", 0.0),
        ("50%", 32.5),
        ("100 %", 65.0),
        ("12:00:10", 9.5),
        ("12:00:10.25", 9.75),
        ("12:00:00", 0.0),  # within the second in which it began
        ("12:01", 59.5),
    ]
    for text, place in rows:
        player = Player(made())
        player.jump(text)
        assert stands(player) == pytest.approx(place), text


def test_a_time_of_day_may_be_tomorrows() -> None:
    late = datetime.datetime(2026, 3, 4, 23, 59, 50).astimezone().timestamp()
    brief = record(1, 0.0, Phase.OTHER)
    brief.time, brief.ended = late, late + 60
    player = Player(made([brief]))
    player.jump("00:00:20")
    assert stands(player) == 30


@pytest.mark.parametrize(
    "text", ["", "soon", "101%", "900", "11:00:00", "25:00:00", "-5", "12:00:99", "9" * 400, "nan"]
)
def test_what_is_no_moment_of_the_run_is_refused_with_a_hint(text: str) -> None:
    player = Player(made())
    with pytest.raises(InspectorError) as caught:
        player.jump(text)
    assert caught.value.hint
    assert stands(player) == 0


def test_at_the_end_of_a_live_run_it_goes_along() -> None:
    player = Player(made(BRIEFS[:2]))
    player.end()
    player.extend(made())
    assert player.at_end
    assert stands(player) == 65
    player.to(START + 1)
    player.extend(made([*BRIEFS, record(5, 70.0, Phase.OTHER)]))
    assert stands(player) == 1
    assert player.finish == START + 70.5


def test_a_run_without_records_can_be_played_too() -> None:
    player = Player([])
    player.toggle()
    player.tick(1)
    assert player.at_end
    assert not player.playing
    assert not player.next_exchange()
    assert not player.previous_exchange()
    assert player.phase is None
    player.extend(made())
    assert stands(player) == 65


# -- the line -------------------------------------------------------------------------------------------------


class Line(App[None]):
    """The line, what it posted, and what was known."""

    def __init__(self, player: Player) -> None:
        super().__init__()
        self.player = player
        self.posted: list[object] = []

    def compose(self) -> ComposeResult:
        yield Knowledge(id="knowledge")
        yield Transport(id="line")

    def on_mount(self) -> None:
        self.query_one(Transport).show(self.player)

    def on_transport_sought(self, event: Transport.Sought) -> None:
        self.posted.append(event.moment - self.player.start)

    def on_transport_pressed(self, event: Transport.Pressed) -> None:
        self.posted.append(event.action)

    def text(self) -> list[str]:
        """What stands on the screen."""
        lines = self.screen._compositor.render_strips()
        return ["".join(segment.text for segment in strip).rstrip() for strip in lines]


def show(player: Player, act: Callable[[Pilot[None], Line], Awaitable[None]], width: int = 80) -> None:
    """Show the line, and do something with it."""

    async def go() -> None:
        app = Line(player)
        async with app.run_test(size=(width, 12)) as pilot:
            await pilot.pause()
            await act(pilot, app)

    asyncio.run(go())


@pytest.mark.parametrize("width", [80, 200])
def test_the_line_says_where_it_stands(width: int) -> None:
    player = Player(made())
    player.to(START + 32.5)
    player.faster()

    async def act(pilot: Pilot[None], app: Line) -> None:
        line = app.text()[-1]
        assert "paused" in line
        assert "x2 " in line
        assert "32.5 s of 65.0 s" in line
        assert "catalog" in line
        assert "shortened" in line
        before, _, after = line.partition("●")
        assert before.count("━") == pytest.approx(after.count("─"), abs=2)
        player.toggle()
        player.begin()
        app.query_one(Transport).show(player)
        await pilot.pause()
        assert "▶ playing" in app.text()[-1]
        assert "shortened" not in app.text()[-1]
        assert "━" not in app.text()[-1]

    show(player, act, width)


def test_the_time_line_has_the_phases_and_the_findings() -> None:
    briefs = [record(1, 0.0, Phase.PLUGINS), record(2, 40.0, Phase.CATALOG), record(3, 60.0, Phase.REPORT)]
    briefs[1].signs = (Sign("S01", Severity.ERROR), Sign("R21", Severity.NOTICE))
    player = Player(made(briefs))

    async def act(pilot: Pilot[None], app: Line) -> None:
        text = app.query_one(Transport).render()
        bar = text.plain[text.plain.index("●") :]
        assert bar.count("◆") == 1
        at = text.plain.index("◆")
        styles = {span.style for span in text.spans if span.start <= at < span.end}
        assert styles == {palette.SEVERITIES[Severity.ERROR]}
        drawn = {span.style for span in text.spans if text.plain[span.start : span.end] in ("━", "─")}
        assert {palette.PHASES[phase][1] for phase in (Phase.PLUGINS, Phase.CATALOG, Phase.REPORT)} <= drawn
        assert "} finding" in text.plain

    show(player, act, 160)


def test_moments_of_a_short_run_are_shown_to_the_millisecond() -> None:
    briefs = [record(1, 0.0, Phase.PLUGINS), record(2, 2.4, Phase.PLUGINS)]
    player = Player(made(briefs))
    player.to(START + 1.25)

    async def act(pilot: Pilot[None], app: Line) -> None:
        assert "1.250 s of 2.900 s" in app.text()[-1]

    show(player, act)


def test_the_line_is_clicked_and_dragged() -> None:
    player = Player(made())

    async def act(pilot: Pilot[None], app: Line) -> None:
        line = app.text()[-1]
        await pilot.click("#line", offset=(2, 0))
        await pilot.click("#line", offset=(line.index(" - ") + 1, 0))
        await pilot.click("#line", offset=(line.index(" + ") + 1, 0))
        assert app.posted == ["play", "speed(-1)", "speed(1)"]
        app.posted.clear()
        first, last = line.index("●"), line.rindex("─")
        await pilot.mouse_down("#line", offset=(first, 0))
        await pilot.hover("#line", offset=((first + last) // 2, 0))
        await pilot.hover("#line", offset=(last, 0))
        await pilot.mouse_up("#line", offset=(last, 0))
        assert app.posted[0] == 0
        assert app.posted[1] == pytest.approx(32.5, abs=2)
        assert app.posted[2] == 65
        app.posted.clear()
        await pilot.hover("#line", offset=(first, 0))
        assert app.posted == []

    show(player, act)


def test_what_was_known_is_shown_as_text() -> None:
    async def act(pilot: Pilot[None], app: Line) -> None:
        app.query_one(Knowledge).show([("CA", "downloaded: [bold]2[/] certificates"), ("CRL", "not seen")])
        await pilot.pause()
        assert app.text()[0].split() == ["CA", "downloaded:", "[bold]2[/]", "certificates"]
        assert app.text()[1].split() == ["CRL", "not", "seen"]

    show(Player(made()), act)
